"""Protocols of the stores of sessions and of decisions made in other processes.

One machine keeps them in files; many machines share them in a database. `tests/contracts` holds every implementation
to these docstrings.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.database_report import Backlog
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.history.journal_proof import VerifyReport
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxDecision, Reference


class Journal(Protocol):
    """Append-only log of one session, held by one writer."""

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Write the event durably and return it with its hash; raise `StorageError`, `JournalError`."""

    async def close(self) -> None:
        """Release the lock."""


class HeldSession(Struct, frozen=True):
    """A session whose journal is held now, and the events in it (none if it is `fresh`).

    `torn_bytes`: length of an unfinished last line that was set aside. `fence` is the number of the lease, 0 where
    the kernel holds the lock. `away_since` is the last event that this machine knew before another one continued the
    session (-1: none; None: it was not away), and stays so until an event is written here.
    """

    id: SessionId
    journal: Journal
    events: tuple[Recorded, ...] = ()
    torn_bytes: int = 0
    fresh: bool = False
    fence: int = 0
    away_since: int | None = None


class ForkJournal(Protocol):
    """The journal of a fork. It is no session before `keep`, and nothing is left of it after `drop`."""

    async def write(self, events: Sequence[tuple[int, str, Event]]) -> Recorded:
        """Write the first events (seq, time, event) and return the last; raise `JournalError`, `StorageError`."""

    async def keep(self, seq: int, time: str, event: Event) -> None:
        """Write one more event and make the whole a session, at once and durably."""

    async def drop(self) -> None:
        """Remove everything that was written, unless it was kept."""


class SessionStore(Protocol):
    """The sessions of one repository. Each has a journal with one writer at a time.

    Writers: `open` gives the journal to its caller until `close`, or until the caller's process dies. A second `open`
    of the same session raises `LockedError` naming the holder. Where a holder's death cannot be seen by the kernel (a
    store shared by machines), the journal is leased: the lease expires unless it is renewed, the next `open` gets a
    larger `HeldSession.fence`, and an `append` under a smaller one raises `LockedError` and appends nothing.
    The local store has no leases: the kernel frees its lock, and `fence` is 0.

    Order: events are numbered from 0 without a gap; `append` refuses any other number with `JournalError`. An event
    is durable before `append` returns and seen by `read` and `follow` of other processes only whole.

    Only sessions begun by this user on this machine can be opened: a journal holds approvals, and a repository can
    bring a forged one. Reading is open for all. Any method may raise `StorageError`.
    """

    async def summaries(self) -> tuple[SessionSummary, ...]:
        """Return all sessions, newest first, damaged ones with their `problem`."""

    async def summary(self, session: SessionId) -> SessionSummary:
        """Return one session as `summaries` does; raise `UsageError` if there is none."""

    async def locate(self, name: str = "") -> SessionId:
        """Return the session whose id, or its last six letters, begin with `name`; the newest for an empty name.

        Raises `UsageError` if there is none, or more than one.
        """

    async def find(self, query: SessionQuery) -> SessionId | None:
        """Return the session that `open` would resume, None if it would begin a new one.

        Raises `UsageError` for a name that fits none or several, `TrustError` for a session from elsewhere,
        `JournalError` for an unfinished session that is damaged.
        """

    async def open(self, query: SessionQuery) -> HeldSession:
        """Resume the session that `find` names, or begin a new one; a resumed journal is proved whole first.

        Of two callers at once one gets it. The other gets `LockedError` if it named the session, else another session.
        The caller of a new session writes the label of the query into its header, by which `find` finds it again.
        Raises what `find` raises. A cancelled call gives the journal back.
        """

    async def discard(self, opened: HeldSession) -> None:
        """Close the journal of a session in which nothing was done; one that was new is removed."""

    def fork(self) -> tuple[SessionId, ForkJournal]:
        """Return the id and the journal of a new session; nothing of it exists yet."""

    async def read(self, session: SessionId, *, whole: bool = False) -> tuple[Recorded, ...]:
        """Return the events recorded so far, each proved; long outputs as digests unless `whole`.

        Raises `JournalError` naming the first line that does not fit.
        """

    async def verify(self, session: SessionId) -> VerifyReport:
        """Return every line that does not fit; raise `JournalError` if there is no journal."""

    async def origins(self) -> Mapping[SessionId, tuple[SessionId, int] | None]:
        """Return, for each session, its parent and the last event they share; None if it is no fork."""

    def backlog(self) -> Backlog:
        """Return what the sessions that are open in this process have that other machines cannot read yet."""

    def follow(self, session: SessionId, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield the events after `after_seq`, then each new one until the caller stops; another process may write.

        Each event comes once and in order. Raises `JournalError` for a line that does not fit, or a journal that is
        gone.
        """


class Inbox(Protocol):
    """Decisions made outside the process that holds a session, until that process records or refuses them.

    The inbox checks the reference's form, and who decided where others can write to it: what a decision is worth is
    judged by the holder of the journal against the proposal that waits.
    """

    async def put(self, decision: InboxDecision) -> InboxDecision:
        """Keep a decision durably, whole or not at all; return it as it is kept, signed where others can write.

        Of two for the same reference the first that counts stays; the second raises `DecisionRefused`, which tells of
        the first. Raises `SigningError` where it must be signed and cannot be.
        """

    async def pending(self, session: SessionId) -> tuple[InboxDecision, ...]:
        """Return the decisions kept for a session, oldest first; what is none, or does not count, is left out."""

    def refused(self, session: SessionId) -> tuple[str, ...]:
        """Return why anything did not count at the last look at a session's decisions, a sentence for each."""

    async def wait(self, session: SessionId, known: Collection[Reference] = ()) -> tuple[InboxDecision, ...]:
        """Return the pending decisions that are not `known` as soon as there is one, within a second of its `put`.

        A cancelled call changes nothing.
        """

    async def remove(self, decision: InboxDecision) -> None:
        """Remove a decision that was recorded, refused or withdrawn; one that is gone already is no error."""
