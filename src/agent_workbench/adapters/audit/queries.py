"""Queries of the audit index, each within one read transaction of its caller."""

import sqlite3
from collections.abc import Sequence

from agent_workbench.adapters.audit.rows import read_record
from agent_workbench.core.history.audit_records import (
    AuditDecision,
    AuditEntry,
    AuditPage,
    AuditProblem,
    AuditQuery,
    CostKey,
    CostPage,
    CostQuery,
    CostSum,
    DecisionPage,
    DecisionQuery,
    oldest_day,
    oldest_time,
    sorted_sums,
    total_cost,
)
from agent_workbench.core.ids import SessionId

# A fork's journal begins with its parent's events, which count once: there, unless they are missing there.
_SHOWN = """
  LEFT JOIN journals own ON own.session = r.session
  LEFT JOIN journals parent ON parent.session = own.parent AND r.seq <= own.parent_seq AND r.seq <= parent.seq
  WHERE parent.session IS NULL AND r.time > ?"""
# Names of columns, which are no text of the user's.
_KEYS = {
    CostKey.DAY: "substr(r.time, 1, 10)",
    CostKey.ENDPOINT: "r.endpoint",
    CostKey.MODEL: "r.model",
    CostKey.SERVICE: "r.service",
    CostKey.WORKER: "r.worker",
}
_SUMS = """coalesce(sum(r.answers), 0), coalesce(sum(r.prompt_tokens), 0), coalesce(sum(r.answer_tokens), 0),
  total(r.dollars), coalesce(sum(r.answers * (r.unproved != '' OR coalesce(own.ours, 1) = 0)), 0)"""

Value = str | int


def entries(connection: sqlite3.Connection, query: AuditQuery, now: str) -> AuditPage:
    """Return a page of entries."""
    status = query.status or ""
    rest, values = _filters(
        oldest_time(now, query.days), {"service": query.service, "intent": query.intent, "status": status}
    )
    rows, total = _page(connection, f"entries r {rest}", values, query.limit, query.offset)
    found = tuple(read_record(AuditEntry, *row) for row in rows)
    return AuditPage(found, total, problems(connection))


def decisions(connection: sqlite3.Connection, query: DecisionQuery, now: str) -> DecisionPage:
    """Return a page of decisions."""
    names = {"service": query.service, "intent": query.intent, "task": query.task}
    rest, values = _filters(oldest_time(now, query.days), names)
    if query.by:
        rest, values = f"{rest} AND substr(r.decider, 1, ?) = ?", [*values, len(query.by), query.by]
    rows, total = _page(connection, f"decisions r {rest}", values, query.limit, query.offset)
    found = tuple(read_record(AuditDecision, *row) for row in rows)
    return DecisionPage(found, total, problems(connection))


def costs(connection: sqlite3.Connection, query: CostQuery, now: str) -> CostPage:
    """Return a page of sums of costs."""
    rest, values = _filters(oldest_day(now, query.days), {"service": query.service, "intent": query.intent})
    keys = ", ".join(_KEYS[key] if key in query.by else "''" for key in CostKey)
    # Only names of columns and question marks are inserted.
    rows = connection.execute(f"SELECT {keys}, {_SUMS} FROM costs r {rest} GROUP BY 1, 2, 3, 4, 5", values)  # noqa: S608
    sums = sorted_sums(CostSum(*row) for row in rows)
    return CostPage(sums[query.offset : query.offset + query.limit], len(sums), total_cost(sums), problems(connection))


def problems(connection: sqlite3.Connection) -> tuple[AuditProblem, ...]:
    """Return the journals that could not be read whole."""
    rows = connection.execute("SELECT session, problem FROM journals WHERE problem != '' ORDER BY session DESC")
    return tuple(AuditProblem(SessionId(session), problem) for session, problem in rows)


def _filters(oldest: str, names: dict[str, str]) -> tuple[str, list[Value]]:
    """Return the condition for the rows that fit, and its values."""
    wanted = {name: value for name, value in names.items() if value}
    conditions = "".join(f" AND r.{name} = ?" for name in wanted)
    return _SHOWN + conditions, [oldest, *wanted.values()]


def _page(
    connection: sqlite3.Connection, rest: str, values: Sequence[Value], limit: int, offset: int
) -> tuple[list[tuple[object, object, object]], int]:
    """Return the rows of a page, newest first, and how many rows fit in all."""
    # Only names of columns and question marks are inserted.
    total = connection.execute(f"SELECT count(*) FROM {rest}", values).fetchone()[0]  # noqa: S608
    order = "ORDER BY r.time DESC, r.session, r.seq LIMIT ? OFFSET ?"
    rows = connection.execute(f"SELECT r.record, r.digest, own.ours FROM {rest} {order}", [*values, limit, offset])  # noqa: S608
    return rows.fetchall(), total
