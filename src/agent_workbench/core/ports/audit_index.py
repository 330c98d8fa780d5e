"""Protocols of the audit: its index, the journals behind it, their proofs, and the records that machines share.

`tests/contracts` holds every implementation of the index to these docstrings.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.history.audit_records import (
    AnyPage,
    AnyQuery,
    AuditPage,
    AuditQuery,
    AuditRecord,
    CostPage,
    CostQuery,
    DecisionPage,
    DecisionQuery,
)
from agent_workbench.core.history.audit_trail import AuditTrail
from agent_workbench.core.ids import NO_SESSION, SessionId


class AuditIndex(Protocol):
    """Index of the ends of tasks, decisions and costs. It holds no truth of its own: the journals do.

    Records of the same line differ in their type, and costs of the same line in endpoint or model. Every query raises
    what `check_query` does. Any method may raise `StorageError`.
    """

    async def add(self, record: AuditRecord) -> bool:
        """Add a record; return False and change nothing if there is one of this kind and line."""

    async def query(self, query: AuditQuery, now: str) -> AuditPage:
        """Return the entries of the last `query.days` before `now` (UTC), newest first.

        Entries of the same time are ordered by session and `seq`, so that pages do not overlap.
        """

    async def decisions(self, query: DecisionQuery, now: str) -> DecisionPage:
        """Return the decisions of the last `query.days` before `now`, in the order of `query`."""

    async def costs(self, query: CostQuery, now: str) -> CostPage:
        """Return sums of the costs of the last `query.days` days of UTC, that of `now` included.

        The newest day comes first, then what costs the most dollars and has the most tokens, then names in order.
        """

    async def rebuild(self, records: Iterable[AuditRecord]) -> None:
        """Replace the whole content at once: a query at the same time sees all of the old content or of the new."""


async def ask(index: AuditIndex, query: AnyQuery, now: str) -> AnyPage:
    """Return the page that answers a query."""
    match query:
        case AuditQuery():
            return await index.query(query, now)
        case DecisionQuery():
            return await index.decisions(query, now)
        case CostQuery():
            return await index.costs(query, now)


class JournalStamp(Struct, frozen=True):
    """A journal's file as the system describes it: any change of the journal changes the stamp."""

    session: SessionId
    size: int
    modified_ns: int
    inode: int


class JournalMark(Struct, frozen=True):
    """The place up to which a journal was read: its bytes, its last line, and the reader of the next one."""

    position: int
    seq: int
    hash: str
    trail: AuditTrail


class JournalGrowth(Struct, frozen=True):
    """Records that a journal has behind a mark, or from its start if it is not `grown`: then earlier records are void.

    `problem` names the line at which reading stopped. `ours`: the session was begun by this user on this machine.
    `parent` and `parent_seq` are the session and the last event that a fork copied.
    """

    records: tuple[AuditRecord, ...]
    mark: JournalMark
    grown: bool = False
    problem: str = ""
    ours: bool = False
    parent: SessionId = NO_SESSION
    parent_seq: int = -1


class AuditSource(Protocol):
    """The journals of one repository, read for an index. Blocks."""

    def stamps(self) -> tuple[JournalStamp, ...]:
        """Return the stamp of every journal; raise `StorageError`."""

    def read(self, session: SessionId, mark: JournalMark | None) -> JournalGrowth:
        """Return what a journal has behind `mark`, or all of it if the line before the mark is another one.

        Every line is proved by its hash, number and predecessor. Never raises for a damaged journal.
        """


class AuditProofs(Protocol):
    """Judge of records that came from elsewhere."""

    async def unproved(self, records: Sequence[AuditRecord]) -> Sequence[str]:
        """Return, for each record, why no signed journal is known to have exactly it; empty if one has."""


class AuditCopies(Protocol):
    """Records of whole sessions in an index that machines share."""

    async def copied(self) -> Mapping[SessionId, int]:
        """Return the last event of each session whose records are there; raise `StorageError`."""

    async def replace(self, session: SessionId, journal: JournalGrowth) -> None:
        """Replace the records of a session by those of its whole journal; raise `StorageError`."""
