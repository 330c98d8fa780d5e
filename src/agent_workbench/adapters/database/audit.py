"""The port `AuditIndex` in a database that machines share: a row counts as far as a signed journal has it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import LiteralString, TypeVar

import msgspec
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.history.audit_records import (
    AuditCost,
    AuditDecision,
    AuditEntry,
    AuditPage,
    AuditProblem,
    AuditQuery,
    AuditRecord,
    CostPage,
    CostQuery,
    DecisionPage,
    DecisionQuery,
    check_query,
    oldest_day,
    oldest_time,
    sum_costs,
    total_cost,
)
from agent_workbench.core.ids import SESSION_ID, SessionId
from agent_workbench.core.ports.audit_index import AuditProofs, JournalGrowth

MOST_COSTS = 200_000
"""Most rows of costs that are summed for one answer."""
_INSERT = """\
INSERT INTO agent_audit_records VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING RETURNING 1"""
_DROP: LiteralString = "DELETE FROM agent_audit_records WHERE repository = %s"
_FORGET: LiteralString = "DELETE FROM agent_audit_sessions WHERE repository = %s"
_KEEP = """\
INSERT INTO agent_audit_sessions VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (repository, session) DO UPDATE
SET seq = excluded.seq, parent = excluded.parent, parent_seq = excluded.parent_seq"""
# A fork's journal begins with its parent's events, which count once: there, unless they are missing there.
_FITS: LiteralString = """
FROM agent_audit_records r
LEFT JOIN agent_audit_sessions own ON own.repository = r.repository AND own.session = r.session
LEFT JOIN agent_audit_sessions parent ON parent.repository = r.repository AND parent.session = own.parent
  AND r.seq <= own.parent_seq AND r.seq <= parent.seq
WHERE r.repository = %(repository)s AND r.kind = %(kind)s AND parent.session IS NULL AND r.time > %(oldest)s
  AND %(service)s IN ('', r.service) AND %(intent)s IN ('', r.intent) AND %(task)s IN ('', r.task)
  AND %(status)s IN ('', r.status) AND starts_with(r.decider, %(by)s)"""
_PAGE: LiteralString = (
    "SELECT r.session, r.record" + _FITS + " ORDER BY r.time DESC, r.session, r.seq LIMIT %(limit)s OFFSET %(offset)s"
)
_COUNT: LiteralString = "SELECT count(*)" + _FITS
# Sessions whose signed head is newer than their records: some machine has not copied them yet, or rows were removed.
_BEHIND = """\
SELECT count(*) FROM (
  SELECT h.session, max(h.seq) AS seq FROM agent_heads h WHERE h.repository = %(repository)s GROUP BY h.session
) newest LEFT JOIN agent_audit_sessions known
ON known.repository = %(repository)s AND known.session = newest.session
WHERE newest.seq >= 0 AND coalesce(known.seq, -1) < newest.seq"""

Kept = TypeVar("Kept", AuditEntry, AuditDecision, AuditCost)
Values = Mapping[str, str | int]
_KINDS: dict[type[AuditRecord], str] = {AuditEntry: "entry", AuditDecision: "decision", AuditCost: "cost"}


class DatabaseAuditIndex:
    """Implements `core.ports.audit_index.AuditIndex` and `AuditCopies` for a repository.

    `proofs` tells which rows a signed journal has; without it none of them is proved.
    """

    def __init__(self, database: Database, repository: str, proofs: AuditProofs | None = None) -> None:
        self._database = database
        self._repository = repository
        self._proofs = proofs

    async def add(self, record: AuditRecord) -> bool:
        """Add a record, unless there is one of its kind and line."""
        async with self._database.connection() as connection:
            return await self._insert(connection, record)

    async def query(self, query: AuditQuery, now: str) -> AuditPage:
        """Return the entries that fit."""
        check_query(query)
        wanted = {"service": query.service, "intent": query.intent, "status": str(query.status or "")}
        values = self._values("entry", oldest_time(now, query.days), query.limit, query.offset, wanted)
        rows, total, notes = await self._page(values)
        found, problems = _read(AuditEntry, rows)
        return AuditPage(await self._judged(found), total, problems, notes)

    async def decisions(self, query: DecisionQuery, now: str) -> DecisionPage:
        """Return the decisions that fit."""
        check_query(query)
        wanted = {"service": query.service, "intent": query.intent, "task": query.task, "by": query.by}
        values = self._values("decision", oldest_time(now, query.days), query.limit, query.offset, wanted)
        rows, total, notes = await self._page(values)
        found, problems = _read(AuditDecision, rows)
        return DecisionPage(await self._judged(found), total, problems, notes)

    async def costs(self, query: CostQuery, now: str) -> CostPage:
        """Return sums of the costs that fit."""
        check_query(query)
        wanted = {"service": query.service, "intent": query.intent}
        values = self._values("cost", oldest_day(now, query.days), MOST_COSTS, 0, wanted)
        rows, total, notes = await self._page(values)
        if total > MOST_COSTS:
            notes = (*notes, f"the newest {MOST_COSTS:,} of {total:,} costs are summed; ask for fewer days")
        found, problems = _read(AuditCost, rows)
        sums = sum_costs(await self._judged(found), query.by)
        return CostPage(sums[query.offset : query.offset + query.limit], len(sums), total_cost(sums), problems, notes)

    async def rebuild(self, records: Iterable[AuditRecord]) -> None:
        """Replace everything of the repository in one transaction."""
        async with self._database.connection() as connection:
            await connection.execute(_DROP, (self._repository,))
            await connection.execute(_FORGET, (self._repository,))
            for record in records:
                await self._insert(connection, record)

    async def copied(self) -> Mapping[SessionId, int]:
        """Return the last event of each session whose records are here."""
        async with self._database.connection() as connection:
            rows = await connection.execute(
                "SELECT session, seq FROM agent_audit_sessions WHERE repository = %s", (self._repository,)
            )
            return {SessionId(str(session)): int(str(seq)) for session, seq in await rows.fetchall()}

    async def replace(self, session: SessionId, journal: JournalGrowth) -> None:
        """Replace the records of a session, in one transaction, by those of its whole journal."""
        async with self._database.connection() as connection:
            await connection.execute(_DROP + " AND session = %s", (self._repository, session))
            for record in journal.records:
                await self._insert(connection, record)
            head = (self._repository, session, journal.mark.seq, journal.parent, journal.parent_seq)
            await connection.execute(_KEEP, head)

    async def _insert(self, connection: Connection, record: AuditRecord) -> bool:
        names = (record.endpoint, record.model) if isinstance(record, AuditCost) else ("", "")
        time = record.ended if isinstance(record, AuditEntry) else record.time
        about = (
            *(_clean(record.service), _clean(record.intent), _clean(record.task)),
            str(record.status) if isinstance(record, AuditEntry) else "",
            _clean(record.by) if isinstance(record, AuditDecision) else "",
        )
        line = (self._repository, _KINDS[type(record)], record.session, record.seq, *map(_clean, names))
        # What a page says of its rows is found anew each time.
        text = msgspec.json.encode(replace(record, unproved="") if self._proofs is not None else record)
        done = await connection.execute(_INSERT, (*line, time, *about, text.decode("ascii", "backslashreplace")))
        return await done.fetchone() is not None

    def _values(self, kind: str, oldest: str, limit: int, offset: int, wanted: Mapping[str, str]) -> Values:
        filters = dict.fromkeys(("service", "intent", "task", "status", "by"), "") | dict(wanted)
        place: dict[str, str | int] = {"repository": self._repository, "kind": kind, "oldest": oldest}
        return {**place, "limit": limit, "offset": offset, **filters}

    async def _page(self, values: Values) -> tuple[Sequence[tuple[object, ...]], int, tuple[str, ...]]:
        """Return the rows of a page, how many there are in all, and what the reader should know."""
        async with self._database.connection() as connection:
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            count = await (await connection.execute(_COUNT, values)).fetchone()
            rows = await (await connection.execute(_PAGE, values)).fetchall()
            behind = await (await connection.execute(_BEHIND, values)).fetchone()
        total, late = (int(str(row[0])) if row is not None else 0 for row in (count, behind))
        sessions = "1 session has" if late == 1 else f"{late:,} sessions have"
        return rows, total, (f"{sessions} newer events than the shared audit",) if late else ()

    async def _judged(self, records: Sequence[Kept]) -> tuple[Kept, ...]:
        """Return the records, each marked if no signed journal has it."""
        if self._proofs is None:
            return tuple(records)
        reasons = await self._proofs.unproved(records)
        return tuple(replace(each, unproved=why) for each, why in zip(records, reasons, strict=True))


def _read(kind: type[Kept], rows: Sequence[tuple[object, ...]]) -> tuple[tuple[Kept, ...], tuple[AuditProblem, ...]]:
    """Return the records of the rows, and the rows that hold none."""
    found, problems = [], []
    for session, text in rows:
        name = SessionId(str(session))
        try:
            record = msgspec.json.decode(str(text), type=kind)
            if record.session != name or not SESSION_ID.fullmatch(name):
                raise ValueError("it names another session")
            found.append(record)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            problems.append(AuditProblem(name, f"a row of the database is no record: {error}"))
    return tuple(found), tuple(problems)


def _clean(text: str) -> str:
    """Return a text as PostgreSQL takes it: without NUL."""
    return text.replace("\0", "")
