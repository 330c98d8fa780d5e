"""The diff pane: what waits at the gate in full, how much of it was on screen, and what of it is taken."""

from agent_workbench.tui.panes.diff.diff_pane import DiffPane

__all__ = ["DiffPane"]
