"""`agent new`: the short form of `agent plan new`."""

from agent_workbench.cli.verbs.plan import add_new as add

__all__ = ["add"]
