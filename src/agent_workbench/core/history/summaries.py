"""The sessions of a repo at a glance, and what can be asked of them from a screen."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus

if TYPE_CHECKING:  # what a comparison is made of is not needed to list sessions
    from agent_workbench.core.history.comparison import Comparison
    from agent_workbench.core.history.journal_proof import JournalProof


class SessionSummary(Struct, frozen=True):
    """A session as a list shows it.

    `started` and `last` are UTC times in ISO 8601; `tasks` in the order they were started; `status` of the task
    worked on last; `waits`: something is at its gate; `left` tells that it came to its own end; `holder` says who has
    it open, empty: nobody. `steps` and `tokens` are those of all tasks, with what a fork has of its `parent` (its
    events up to `parent_seq`). `ours`: it was begun here, so it can be taken up. `problem` is what of the lines looked
    at does not fit (all lines are looked at by a verification alone).
    """

    id: SessionId
    directory: Path
    started: str = ""
    last: str = ""
    parent: SessionId | None = None
    parent_seq: int | None = None
    tasks: tuple[TaskId, ...] = ()
    status: TaskStatus | None = None
    waits: bool = False
    left: bool = False
    events: int = 0
    steps: int = 0
    tokens: int = 0
    holder: str = ""
    torn_bytes: int = 0
    ours: bool = False
    problem: str = ""


class Onward(Struct, frozen=True):
    """A session to be shown in a tab, live or (`replayed`) as it was recorded; without a name one that is begun."""

    session: SessionId = NO_SESSION
    replayed: bool = False


class PastSessions(Protocol):
    """What a screen asks of the repo's sessions; each may raise `WorkbenchError`."""

    async def summaries(self) -> Sequence[SessionSummary]:
        """Return all sessions, newest first."""

    async def verify(self, session: SessionId) -> "JournalProof":
        """Return what the session's journal and the repository prove."""

    async def foresee_fork(self, session: SessionId, at: int | None) -> tuple[str, ...]:
        """Return what a fork after event `at` (None: the last) would go on from, line by line."""

    async def fork(self, session: SessionId, at: int | None) -> SessionId:
        """Make a new session that goes on from there; return its name."""

    async def export(self, session: SessionId) -> str:
        """Write the session as markdown into a file nothing else is in; return its path."""

    async def compare(self, first: SessionId, second: SessionId) -> "Comparison":
        """Return two sessions beside each other."""

    async def keep_picture(self, session: SessionId, seq: int, picture: str) -> str:
        """Write a picture of the screen at event `seq` into a file nothing else is in; return its path."""
