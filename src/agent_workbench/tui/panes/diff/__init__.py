"""The diff pane: a proposal in full, how much of it was on screen, and which hunks of it are selected."""

from agent_workbench.tui.panes.diff.diff_pane import DiffPane

__all__ = ["DiffPane"]
