"""The pending proposal: the gate bar, the diff pane, notes beside a proposal, and the rules it offers."""
