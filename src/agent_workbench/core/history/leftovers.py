"""Leftovers of past work: what `agent clean` lists and removes."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field

from agent_workbench.core.errors import UsageError
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.text.amounts import quoted


class LeftoverKind(StrEnum):
    """Kind of a leftover: a task's branch with its worktree, a session's checkpoints, or a session."""

    BRANCH = "branch"
    CHECKPOINTS = "checkpoints"
    SESSION = "session"


class Leftover(Struct, frozen=True):
    """Something that can be removed, unless `kept` says why not.

    `name` is a branch, `refs/agent/<session>`, or a session. `safe`: its work is merged or over, so `all` includes it.
    `seen` is the state that was listed: whatever changed since is not removed. `anchors` are the sessions of which
    proofs are lost with it. `session` is whose it is, `refs` the refs with their objects that machines share of it.
    """

    kind: LeftoverKind
    name: str
    state: str
    size_bytes: int = 0
    safe: bool = False
    kept: str = ""
    seen: str = ""
    anchors: tuple[SessionId, ...] = ()
    session: SessionId | None = None
    refs: Mapping[str, str] = field(default_factory=dict)


class Tombstone(Struct, frozen=True):
    """Record that anchors of a session were removed, and when; `journal`: its journal was removed too."""

    session: SessionId
    removed: tuple[str, ...]
    time: str
    journal: bool = False

    @property
    def note(self) -> str:
        """The record as a sentence for a proof."""
        what = "its journal" if self.journal else "anchors of it"
        return f"`agent clean` removed {what} on {self.time[:10]}: {', '.join(self.removed)}"


def is_over(summary: SessionSummary) -> bool:
    """Return True if the session has nothing left to go on with."""
    return summary.status in {TaskStatus.DONE, TaskStatus.FAILED} and not summary.waits


class SessionFacts(Struct, frozen=True):
    """Facts about the sessions here. `elsewhere` returns the folder of one that another checkout has."""

    summaries: Mapping[SessionId, SessionSummary]
    elsewhere: Callable[[SessionId], str]
    before: str

    def holder(self, session: SessionId) -> str:
        """Return why nothing of a session may be removed, empty if it may."""
        summary = self.summaries.get(session)
        if summary is not None and summary.holder:
            return f"session {session} is open: {summary.holder}"
        place = self.elsewhere(session) if summary is None else ""
        return f"session {session} is in {shown(place)}" if place else ""

    def unfinished(self, session: SessionId) -> bool:
        """Return True if the session, or a fork of it, has something left to go on with."""
        family = [each for each in self.summaries.values() if session in (each.id, each.parent)]
        return any(not is_over(each) and each.tasks for each in family)


def select_leftovers(found: Iterable[Leftover], wanted: Iterable[str]) -> tuple[Leftover, ...]:
    """Return the leftovers with these names or numbers (from 1, `2-4`), or all safe ones for `all`.

    Raises `UsageError` for a word that names none, and for one that cannot be removed.
    """
    listed = tuple(found)
    chosen: dict[str, Leftover] = {}
    for word in wanted:
        for each in _named(listed, word):
            if each.kept:
                raise UsageError(f"{each.name} cannot be removed: {each.kept}")
            chosen[each.name] = each
    return tuple(chosen.values())


def _named(listed: tuple[Leftover, ...], word: str) -> tuple[Leftover, ...]:
    if word == "all":
        return tuple(each for each in listed if each.safe and not each.kept)
    if exact := tuple(each for each in listed if each.name == word):
        return exact
    first, dash, last = word.partition("-")
    if all(each.isascii() and each.isdigit() and len(each) < 7 for each in (first, last if dash else first)):
        numbers = range(int(first), int(last if dash else first) + 1)
        if numbers and numbers[0] >= 1 and numbers[-1] <= len(listed):
            return tuple(listed[number - 1] for number in numbers)
    raise UsageError(f"{quoted(word)} is nothing that can be removed", advice="`agent clean` lists what there is")
