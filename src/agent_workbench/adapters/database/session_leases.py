"""Leases of sessions: one writer at a time among machines, each with a larger number than the one before."""

from collections.abc import Callable

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.errors import LockedError
from agent_workbench.core.ids import SessionId

LEASE_SECONDS = 30.0
RENEW_SECONDS = 10.0
# Heads have the numbers of former writers: none is given again, also if somebody removed or changed the row.
_CLAIM = """\
INSERT INTO agent_leases AS held (repository, session, fence, machine, holder, until)
VALUES (%(repository)s, %(session)s, 1 + (
    SELECT coalesce(max(fence), 0) FROM agent_heads WHERE repository = %(repository)s AND session = %(session)s
), %(machine)s, %(holder)s, agent_seconds(%(now)s) + %(seconds)s)
ON CONFLICT (repository, session) DO UPDATE
SET fence = greatest(held.fence + 1, excluded.fence), machine = excluded.machine, holder = excluded.holder,
    until = excluded.until
WHERE held.until <= agent_seconds(%(now)s) OR held.machine = excluded.machine
RETURNING fence"""
_RENEW = """\
UPDATE agent_leases SET until = agent_seconds(%(now)s) + %(seconds)s
WHERE repository = %(repository)s AND session = %(session)s AND fence = %(fence)s"""
_RELEASE = """\
UPDATE agent_leases SET until = 0, holder = ''
WHERE repository = %(repository)s AND session = %(session)s AND fence = %(fence)s"""
_HOLDERS = """\
SELECT session, left(holder, 200) FROM agent_leases
WHERE repository = %(repository)s AND session = ANY(%(sessions)s) AND machine <> %(machine)s
    AND until > agent_seconds(%(now)s)"""


class Leases:
    """The leases of a repository's sessions, as one machine takes them.

    A lease is free when it ran out by the database's clock, or if its holder was a process of the same `machine`: the
    kernel's lock on the local journal says that it is dead. `now` replaces the database's clock in tests.
    """

    def __init__(
        self, database: Database, repository: str, machine: str, holder: str, now: Callable[[], float] | None = None
    ) -> None:
        self._database = database
        self._repository = repository
        self._machine = machine
        self._holder = holder
        self._now = now

    async def claim(self, session: SessionId) -> int:
        """Take the lease of a session and return its number; raise `LockedError` naming the holder."""
        async with self._database.connection() as connection:
            row = await (await connection.execute(_CLAIM, self._values(session))).fetchone()
        if row is not None:
            return int(str(row[0]))
        holder = (await self.holders([session])).get(session) or "another machine"
        raise LockedError(
            f"session {session} is in use by {holder}",
            holder=holder,
            advice=f"wait until it was left there; a dead machine's lease runs out after {LEASE_SECONDS:.0f} s",
        )

    async def renew(self, session: SessionId, fence: int, connection: Connection | None = None) -> bool:
        """Prolong a lease, in the transaction of `connection` if there is one; return False if another was given."""
        values = self._values(session, fence)
        if connection is not None:
            return (await connection.execute(_RENEW, values)).rowcount == 1
        async with self._database.connection() as own:
            return (await own.execute(_RENEW, values)).rowcount == 1

    async def release(self, session: SessionId, fence: int) -> None:
        """Give a lease back; one that was taken over stays as it is."""
        async with self._database.connection() as connection:
            await connection.execute(_RELEASE, self._values(session, fence))

    async def holders(self, sessions: list[SessionId]) -> dict[SessionId, str]:
        """Return the other machines' processes that have these sessions open; one that nobody has is left out."""
        values = {**self._values(SessionId("")), "sessions": sessions}
        async with self._database.connection() as connection:
            rows = await (await connection.execute(_HOLDERS, values)).fetchall()
        wanted = {str(each): each for each in sessions}
        return {wanted[str(name)]: _printable(str(holder)) for name, holder in rows if str(name) in wanted}

    def _values(self, session: SessionId, fence: int = 0) -> dict[str, object]:
        return {
            "repository": self._repository,
            "session": session,
            "fence": fence,
            "machine": self._machine,
            "holder": self._holder,
            "seconds": LEASE_SECONDS,
            "now": self._time(),
        }

    def _time(self) -> float | None:
        return self._now() if self._now is not None else None


def _printable(holder: str) -> str:
    return "".join(filter(str.isprintable, holder)).strip() or "another machine"
