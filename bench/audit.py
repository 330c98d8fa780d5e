"""How fast the audit answers over many sessions, beside reading all journals for each question."""

import asyncio
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent_workbench.adapters.journal.audit_source import JournalSource
from agent_workbench.adapters.journal.line_format import decode_line, encode_line
from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.core.events import ActionFinished, ActionResult, Event, ModelAnswered, RetryAsked
from agent_workbench.core.events.codec import encode_event
from agent_workbench.core.history.audit_records import AuditEntry, AuditQuery, CostQuery, DecisionQuery
from agent_workbench.core.history.audit_trail import AuditTrail
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.task_estimates import Intent
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from bench.figures import Figure, milliseconds, ratio, seconds_of
from tests.subjects.audit.sessions import session_name, task_events, write_session

SERVICES = ("shop", "till", "stock", "")
QUERY = AuditQuery(TaskStatus.FAILED, "shop", days=90)


def measure(sessions: int = 1_000, steps: int = 60, rounds: int = 7) -> list[Figure]:
    """Record `sessions` sessions of a task with `steps` steps; build the index, ask it, and ask the journals."""
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as place:
        folder, now = Path(place) / "sessions", datetime.now(UTC)
        for number in range(sessions):
            ended = (now - timedelta(minutes=number + 1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            write_session(folder, session_name(number), _events(number, steps), ended=ended)
        asked_at = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        size = sum(each.stat().st_size for each in folder.glob("*/journal.jsonl"))
        fresh = iter(range(100))

        def opened(name: str) -> SqliteAuditIndex:
            return SqliteAuditIndex(Path(place) / name, JournalSource(folder, lambda _: True))

        def rebuild() -> None:
            asyncio.run(opened(f"fresh-{next(fresh)}.sqlite").query(QUERY, asked_at))

        index = opened("audit.sqlite")
        right = asyncio.run(index.query(QUERY, asked_at)).total
        cold = seconds_of(lambda: asyncio.run(opened("audit.sqlite").query(QUERY, asked_at)), rounds)
        warm = seconds_of(lambda: asyncio.run(index.query(QUERY, asked_at)), rounds)
        who = seconds_of(lambda: asyncio.run(index.decisions(DecisionQuery(by="user"), asked_at)), rounds)
        spend = seconds_of(lambda: asyncio.run(index.costs(CostQuery(days=90), asked_at)), rounds)
        grown = seconds_of(lambda: _grow_and_ask(index, folder, asked_at), rounds)
        rebuilt = seconds_of(rebuild, max(1, rounds // 3))
        found: list[int] = []
        plain = seconds_of(lambda: found.append(_read_all(folder)), max(1, rounds // 3))
        if set(found) != {right}:
            raise RuntimeError(f"the journals tell of {found} failures, the index of {right}")
        return [
            Figure(f"{sessions:,} sessions on disk", size / 1e6, "MB"),
            milliseconds("query by status and service, new process", cold, "below 100"),
            milliseconds("query by status and service, again", warm, "below 100"),
            milliseconds("who decided, the newest 100", who, "below 100"),
            milliseconds("spend by all keys", spend, "below 100"),
            milliseconds("query after one journal grew", grown, "below 100"),
            milliseconds("rebuild and query", rebuilt, "below 60,000"),
            milliseconds("the same query by reading all journals", plain),
            ratio("reading all journals beside the index", plain, cold),
            ratio("rebuild beside reading all journals", rebuilt, plain),
        ]


def _events(number: int, steps: int) -> tuple[Event, ...]:
    status = TaskStatus.FAILED if number % 5 == 0 else TaskStatus.DONE
    service, intent = SERVICES[number % len(SERVICES)], tuple(Intent)[number % 3]
    begin, answer, *rest = task_events(f"T-{number}", status, service=service, intent=intent, dollars=0.01)
    worked: list[Event] = []
    for step in range(steps):
        figures = AnswerFigures(4_000, 3_500, 200)
        worked.append(ModelAnswered(step, f"thought {step} " * 40, figures, "box (http://10.0.0.2:8080)", "qwen"))
        worked.append(ActionFinished(ProposalId(f"P-{step}"), ActionResult.OK, "a line of output\n" * 40, 0.1))
    return (begin, answer, *worked, *rest)


def _grow_and_ask(index: SqliteAuditIndex, folder: Path, now: str) -> None:
    """Append one event to a journal, and ask."""
    journal = folder / session_name(0) / "journal.jsonl"
    last = decode_line(journal.read_bytes().splitlines()[-1])
    kind, body = encode_event(RetryAsked())
    with journal.open("ab") as file:
        file.write(encode_line(last.seq + 1, now, kind, body, last.hash)[0])
    asyncio.run(index.query(QUERY, now))


def _read_all(folder: Path) -> int:
    """Return what the query returns, by reading and proving every journal."""
    found = 0
    for directory in folder.iterdir():
        trail = AuditTrail()
        for recorded in read_journal(directory).events:
            for record in trail.add(recorded):
                fits = isinstance(record, AuditEntry) and record.status is QUERY.status
                found += fits and record.service == QUERY.service
    return found
