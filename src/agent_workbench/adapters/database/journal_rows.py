"""Rows of copied journals, bounded in size and written in batches; and the leases of sessions: one writer at a time."""

from collections.abc import AsyncGenerator, Callable, Sequence

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.errors import JournalError, LockedError, StorageError
from agent_workbench.core.events.codec import kind_of
from agent_workbench.core.history.git_objects import NAMING_EVENTS
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SESSION_ID, SessionId
from agent_workbench.core.ports.shared_state import BlobName, JournalCopies, StoredLine

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

MOST_LINE_BYTES = 8_000_000
MOST_BLOB_BYTES = 256_000_000
MOST_JOURNAL_BYTES = 1_000_000_000
MOST_SESSIONS = 500
"""Sessions of other machines that a list has, the newest."""
_PAGE_LINES = 500
_PUT_LINE = """\
INSERT INTO agent_lines (repository, session, seq, hash, line) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (repository, session, seq) DO UPDATE SET hash = excluded.hash, line = excluded.line"""
_PUT_HEAD = """\
INSERT INTO agent_heads (repository, session, fence, seq, hash, worker, signature) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (repository, session, fence) DO UPDATE
SET seq = excluded.seq, hash = excluded.hash, worker = excluded.worker, signature = excluded.signature,
    copied = clock_timestamp()"""
_NEWEST = """\
SELECT session, fence, seq, left(hash, 100), left(worker, 200), left(signature, 10000) FROM agent_heads
WHERE repository = %s AND session = %s ORDER BY fence DESC LIMIT 1"""
_ALL_NEWEST = """\
SELECT DISTINCT ON (session)
    session, fence, seq, left(hash, 100), left(worker, 200), left(signature, 10000) FROM agent_heads
WHERE repository = %s ORDER BY session DESC, fence DESC LIMIT %s"""
# The sizes are summed before a line is sent, so that a page is bounded whatever somebody put into the table.
_LINES = """\
SELECT seq, line FROM (
    SELECT seq, line, sum(octet_length(line)) OVER (ORDER BY seq) AS total FROM agent_lines
    WHERE repository = %(repository)s AND session = %(session)s
        AND seq > %(after)s AND seq <= least(%(through)s, %(after)s + %(lines)s)
) AS page WHERE total <= %(bytes)s ORDER BY seq"""
_FORGET = (
    "DELETE FROM agent_lines WHERE repository = %s AND session = %s",
    "DELETE FROM agent_heads WHERE repository = %s AND session = %s",
    "DELETE FROM agent_leases WHERE repository = %s AND session = %s",
)

NAMES_GIT = frozenset(map(kind_of, NAMING_EVENTS))
"""Kinds of events whose lines follow the git objects that they name."""
_CHANGES_FILES = frozenset({"patch_applied", "step_undone"})
"""Kinds whose content is only in the checkpoint that follows."""
_SETTLES = frozenset({"checkpoint_taken", "action_finished", "trouble_met", "task_finished", "session_left"})
BATCH_BYTES = 1_000_000


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


class JournalRows:
    """Lines, heads and blobs of a repository's sessions in the database."""

    def __init__(self, database: Database, repository: str, leases: Leases) -> None:
        self._database = database
        self._repository = repository
        self._leases = leases

    async def copy(self, head: SignedHead, lines: Sequence[StoredLine] = ()) -> None:
        """Store lines and the head behind them, all or nothing; prolong the lease.

        Raises `LockedError` if the lease is another one's by now; nothing is stored then.
        """
        for each in lines:
            if len(each.data) > MOST_LINE_BYTES:
                raise StorageError(f"event {each.seq} has {len(each.data)} bytes, at most {MOST_LINE_BYTES} are copied")
        async with self._database.connection() as connection:
            if not await self._leases.renew(head.session, head.fence, connection):
                raise lease_lost(head.session, head.fence)
            if lines:
                await connection.cursor().executemany(
                    _PUT_LINE,
                    [(self._repository, head.session, each.seq, each.hash, each.data.decode()) for each in lines],
                )
            await connection.execute(
                _PUT_HEAD,
                (self._repository, head.session, head.fence, head.seq, head.hash, head.worker, head.signature),
            )

    async def missing_blobs(self, names: Sequence[BlobName]) -> tuple[BlobName, ...]:
        """Return the blobs that the database does not have."""
        if not names:
            return ()
        async with self._database.connection() as connection:
            asked = await connection.execute(
                "SELECT sha FROM agent_blobs WHERE sha = ANY(%s)", ([each.sha for each in names],)
            )
            known = {str(sha) for (sha,) in await asked.fetchall()}
        return tuple(each for each in dict.fromkeys(names) if each.sha not in known)

    async def put_blob(self, name: BlobName, data: bytes) -> None:
        """Store a blob under its hash."""
        if name.bytes > MOST_BLOB_BYTES:
            raise StorageError(f"blob {name.sha} has {name.bytes} bytes, at most {MOST_BLOB_BYTES} are copied")
        async with self._database.connection() as connection:
            await connection.execute(
                "INSERT INTO agent_blobs (sha, data) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name.sha, data)
            )

    async def blob(self, name: BlobName) -> bytes:
        """Return what the database has under a hash; raise `JournalError` if it is nothing, or of another length."""
        if name.bytes <= MOST_BLOB_BYTES:
            async with self._database.connection() as connection:
                asked = await connection.execute(
                    "SELECT data FROM agent_blobs WHERE sha = %s AND octet_length(data) = %s", (name.sha, name.bytes)
                )
                row = await asked.fetchone()
            if row is not None and isinstance(row[0], bytes):
                return row[0]
        raise JournalError(f"the database has no blob {name.sha} of {name.bytes} bytes")

    async def newest_head(self, session: SessionId) -> SignedHead | None:
        """Return the head of the newest lease, None if there is none; its signature was not looked at."""
        async with self._database.connection() as connection:
            row = await (await connection.execute(_NEWEST, (self._repository, session))).fetchone()
        return _head(row) if row is not None else None

    async def newest_heads(self) -> tuple[SignedHead, ...]:
        """Return the head of the newest lease of each session, newest sessions first; no signature was looked at."""
        async with self._database.connection() as connection:
            rows = await (await connection.execute(_ALL_NEWEST, (self._repository, MOST_SESSIONS))).fetchall()
        return tuple(head for row in rows if (head := _head(row)) is not None)

    async def lines(self, session: SessionId, after: int, through: int) -> AsyncGenerator[bytes]:
        """Yield the lines of the events behind `after` up to `through`.

        Raises `JournalError` for one that is missing, and for lines of more bytes than any journal has.
        """
        total = 0
        while after < through:
            async with self._database.connection() as connection:
                values = {
                    "repository": self._repository,
                    "session": session,
                    "after": after,
                    "through": through,
                    "lines": _PAGE_LINES,
                    "bytes": MOST_LINE_BYTES,
                }
                rows = await (await connection.execute(_LINES, values)).fetchall()
            if not rows:
                raise JournalError(f"the database has no line of event {after + 1}, or a longer one than any journal")
            for seq, text in rows:
                if seq != after + 1:
                    raise JournalError(f"the database has no line of event {after + 1}")
                line = str(text).encode("utf-8", "replace")
                after, total = after + 1, total + len(line)
                if total > MOST_JOURNAL_BYTES:
                    raise JournalError(f"the database has more than {MOST_JOURNAL_BYTES} bytes of session {session}")
                yield line

    async def forget(self, session: SessionId, fence: int) -> None:
        """Remove a session in which nothing was done, if the lease is still this one."""
        async with self._database.connection() as connection:
            if await self._leases.renew(session, fence, connection):
                for each in _FORGET:
                    await connection.execute(each, (self._repository, session))


def lease_lost(session: SessionId, fence: int) -> LockedError:
    """Return the error of a writer whose lease was given to another one."""
    return LockedError(
        f"session {session} was taken over by another machine: lease {fence} of this one ran out",
        holder="another machine",
        advice=f"`agent tui --session {session}` continues it here once it is free",
    )


def _head(row: Sequence[object]) -> SignedHead | None:
    session, fence, seq, digest, worker, signature = row
    if not SESSION_ID.fullmatch(str(session)):
        return None
    return SignedHead(SessionId(str(session)), int(str(seq)), str(digest), int(str(fence)), str(worker), str(signature))


def waiting_lines(copies: JournalCopies, session: SessionId, offset: int) -> tuple[StoredLine, ...]:
    """Return the next lines behind `offset`, so many that some of them can be copied. Blocks."""
    limit = BATCH_BYTES
    while True:
        batch = copies.lines(session, offset, limit)
        if not batch or ready_lines(batch) or batch[-1].end - offset < limit // 2 or limit > MOST_LINE_BYTES:
            return batch
        limit *= 10


def follows_push(line: StoredLine) -> bool:
    """Return True for a line whose git objects are pushed before it is copied."""
    return line.kind in NAMES_GIT or line.kind in _CHANGES_FILES


def ready_lines(lines: Sequence[StoredLine]) -> tuple[StoredLine, ...]:
    """Return the first lines that go to the database together.

    A line that names git objects begins a batch of its own, because they are pushed before it, and with the head that
    the database has then. A change of files waits for the checkpoint with its content.
    """
    end = len(lines)
    for place, line in enumerate(lines):
        if place and follows_push(line):
            end = place
            break
        if line.kind in _CHANGES_FILES:
            settled = next((at for at, each in enumerate(lines[1:], 1) if each.kind in _SETTLES), None)
            return tuple(lines[: settled + 1]) if settled is not None else ()
    return tuple(lines[:end])
