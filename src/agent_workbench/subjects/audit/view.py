"""Answers of the audit as list entries: ends of tasks, decisions, and sums of costs."""

from collections.abc import Sequence

from agent_workbench.core.history.audit_records import (
    AnyPage,
    AuditDecision,
    AuditEntry,
    AuditPage,
    CostPage,
    CostSum,
    DecisionPage,
)
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Block, Entry, Tone

TONES = {TaskStatus.DONE: Tone.GOOD, TaskStatus.FAILED: Tone.BAD}
LINE_CHARS = 300
INDENT = 2


def audit_entries(page: AnyPage) -> tuple[Entry, ...]:
    """Return an entry for each row of a page."""
    match page:
        case AuditPage():
            return tuple(Entry(f"{each.session}:{each.seq}", _task(each)) for each in page.entries)
        case DecisionPage():
            return tuple(Entry(f"{each.session}:{each.seq}", _decision(each)) for each in page.decisions)
        case CostPage():
            return tuple(Entry(str(number), _cost(each)) for number, each in enumerate(page.sums))


def audit_line(page: AnyPage, filters: Sequence[str]) -> str:
    """Return how many rows fit, the filters, and what is missing of the answer."""
    what = {AuditPage: "task", DecisionPage: "decision", CostPage: "sum"}[type(page)]
    shown = len(audit_entries(page))
    part = f"the newest {shown:,} of " if shown < page.total else ""
    overall = _amounts(page.overall) if isinstance(page, CostPage) and page.total else ""
    damaged = f"{counted_text(len(page.problems), 'journal')} damaged" if page.problems else ""
    told = (f"{part}{counted_text(page.total, what)}", *filters, overall, damaged, *page.notes)
    return " · ".join(sanitize_line(each, LINE_CHARS) for each in told if each)


def _task(entry: AuditEntry) -> tuple[Block, ...]:
    about = "/".join(filter(None, (entry.service, entry.intent)))
    head = "  ".join(filter(None, (_when(entry.ended), str(entry.status), entry.task, about, entry.reason)))
    rest = (_line(entry), entry.worker, entry.commit[:10], _unproved(entry.unproved))
    return _blocks(head, rest, TONES.get(entry.status, Tone.PLAIN), entry.unproved)


def _decision(each: AuditDecision) -> tuple[Block, ...]:
    by = f"{each.by} ({each.via})" if each.via else each.by
    head = f"{_when(each.time)}  {each.verdict.past}  {each.kind}  {each.subject}"
    rest = (f"by {by}", each.task, each.reason, _line(each), each.worker, _unproved(each.unproved))
    return _blocks(head, rest, Tone.PLAIN if each.verdict is Verdict.APPROVE else Tone.WARN, each.unproved)


def _cost(each: CostSum) -> tuple[Block, ...]:
    names = (each.day, each.endpoint, each.model)
    unproved = f"{each.unproved:,} answers" if each.unproved else ""
    rest = (_amounts(each), counted_text(each.answers, "answer"), each.service, each.worker, _unproved(unproved))
    return _blocks("  ".join(filter(None, names)), rest, Tone.PLAIN, unproved)


def _blocks(head: str, rest: Sequence[str], tone: Tone, unproved: str) -> tuple[Block, ...]:
    below = " · ".join(each for each in rest if each)
    return (
        Block(sanitize_line(head, LINE_CHARS), tone),
        Block(sanitize_line(below, LINE_CHARS), Tone.WARN if unproved else Tone.DIM, indent=INDENT),
    )


def _amounts(each: CostSum) -> str:
    dollars = dollars_text(each.dollars) if each.dollars else "$0"
    return f"{dollars}, {each.prompt_tokens:,} + {each.answer_tokens:,} tokens"


def _when(time: str) -> str:
    return f"{time[:10]} {time[11:16]}"


def _line(record: AuditEntry | AuditDecision) -> str:
    return f"{record.session}:{record.seq}"


def _unproved(why: str) -> str:
    return f"UNPROVED: {why}" if why else ""
