"""Protocol of the index of finished tasks. `tests/contracts` holds every implementation to it."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import TaskStatus

MAX_ENTRIES = 1_000
MAX_DAYS = 365
MAX_FAILURE_DAYS = 90


class AuditEntry(Struct, frozen=True):
    """One task's end in one session. `ended` is UTC in ISO 8601; `seq` and `hash` name the journal's line of it."""

    session: SessionId
    task: TaskId
    status: TaskStatus
    ended: str
    seq: int
    hash: str
    service: str = ""
    intent: str = ""
    reason: str = ""


class AuditQuery(Struct, frozen=True):
    """Filters that an entry must all fit (an empty one fits everything), and the page that is wanted."""

    status: TaskStatus | None = None
    service: str = ""
    intent: str = ""
    days: int = 30
    limit: int = 100
    offset: int = 0


class AuditPage(Struct, frozen=True):
    """A page of entries, and `total`: how many fit the query in all."""

    entries: tuple[AuditEntry, ...]
    total: int


class AuditIndex(Protocol):
    """Index of finished tasks. It holds no truth of its own: the journals do, and it can be rebuilt from them.

    Any method may raise `StorageError`, which says so when the index itself is damaged and has to be rebuilt.
    """

    async def add(self, entry: AuditEntry) -> bool:
        """Add an entry; return False and change nothing if there is one of this session and `seq`."""

    async def query(self, query: AuditQuery, now: str) -> AuditPage:
        """Return the entries of the last `query.days` before `now` (UTC), newest first; raise what `check_query` does.

        Entries of the same time are ordered by session and `seq`, so that pages do not overlap.
        """

    async def rebuild(self, entries: Iterable[AuditEntry]) -> None:
        """Replace the whole content at once: a query at the same time sees all of the old content or of the new."""


def check_query(query: AuditQuery) -> None:
    """Raise `UsageError` for a page or a span outside of the bounds."""
    most_days = MAX_FAILURE_DAYS if query.status is TaskStatus.FAILED else MAX_DAYS
    for name, value, least, most in (
        ("limit", query.limit, 1, MAX_ENTRIES),
        ("days", query.days, 1, most_days),
        ("offset", query.offset, 0, None),
    ):
        if value < least or (most is not None and value > most):
            bounds = f"from {least} to {most}" if most is not None else f"{least} or more"
            raise UsageError(f"{name} is {value}", advice=f"{name} must be {bounds}")
