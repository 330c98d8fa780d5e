"""Messages of the diff pane."""

from dataclasses import dataclass

from textual.message import Message

from agent_workbench.core.patch.values import Patch


@dataclass
class Looked(Message, namespace="diff_pane"):
    """More of the proposal was on screen; `unseen` lines were not yet."""

    unseen: int


class SelectionChanged(Message, namespace="diff_pane"):
    """Other hunks or lines are selected, or the result is shown instead of the diff."""


@dataclass
class ReasonWanted(Message, namespace="diff_pane"):
    """Ask the user why hunks are left out: for the first time, or again (`known`) to change `reason`."""

    ids: tuple[str, ...]
    what: str
    reason: str = ""
    known: bool = False


@dataclass
class HunkEditWanted(Message, namespace="diff_pane"):
    """The user edits a hunk; `outside` in an external editor."""

    patch: Patch
    hunk: str
    what: str
    outside: bool = False
