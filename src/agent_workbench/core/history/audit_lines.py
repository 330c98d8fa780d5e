"""Lines of text for the answers of the audit."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.history.audit_records import (
    AnyPage,
    AuditDecision,
    AuditEntry,
    AuditPage,
    CostPage,
    CostSum,
    DecisionPage,
)
from agent_workbench.core.text.amounts import counted_text, dollars_text

NONE = "-"


def page_lines(page: AnyPage) -> Iterator[str]:
    """Yield the lines of a page, then how many others there are, and what is missing of the answer."""
    rows = page_rows(page)
    yield from rows
    if page.total > len(rows):
        yield f"{page.total - len(rows):,} more are not shown"
    yield from page.notes
    yield from (f"{each.session} is damaged: {each.problem}" for each in page.problems)


def page_rows(page: AnyPage) -> tuple[str, ...]:
    """Return a line for each row of a page."""
    match page:
        case AuditPage():
            return tuple(map(entry_line, page.entries))
        case DecisionPage():
            return tuple(map(decision_line, page.decisions))
        case CostPage():
            return tuple(map(cost_line, page.sums))


def entry_line(entry: AuditEntry) -> str:
    """Return one line for the end of a task."""
    about = "/".join(filter(None, (entry.service, entry.intent))) or NONE
    told = (_time(entry.ended), f"{entry.status:<11}", f"{entry.task:<12}", f"{about:<18}", _line(entry), entry.worker)
    return "  ".join(filter(None, (*told, entry.reason, _unproved(entry.unproved))))


def decision_line(decision: AuditDecision) -> str:
    """Return one line for a decision: when, what came of it, by whom, and about what."""
    by = f"{decision.by} ({decision.via})" if decision.via else decision.by
    told = (_time(decision.time), f"{decision.verdict.past:<8}", f"{by:<24}", f"{decision.kind:<8}", decision.subject)
    reason = f"reason: {decision.reason}" if decision.reason else ""
    return "  ".join(filter(None, (*told, decision.task, _line(decision), reason, _unproved(decision.unproved))))


def cost_line(each: CostSum) -> str:
    """Return one line for a sum of costs."""
    names = (each.day, each.endpoint, each.model, each.service, each.worker)
    unproved = f"{each.unproved:,} of them unproved" if each.unproved else ""
    answers = counted_text(each.answers, "answer")
    return "  ".join(filter(None, (*names, f"{cost_text(each)} in {answers}", unproved)))


def cost_text(each: CostSum) -> str:
    """Return tokens and dollars, such as `1,200 + 80 tokens, $0.25`."""
    tokens = f"{each.prompt_tokens:,} + {each.answer_tokens:,} tokens"
    return f"{tokens}, {dollars_text(each.dollars) if each.dollars else '$0'}"


def page_line(shown: Sequence[object], total: int, offset: int, what: str) -> str:
    """Return a line that says which part of the answer a page is; empty if it is all of it."""
    if len(shown) == total:
        return ""
    first = f"{offset + 1:,} to {offset + len(shown):,}" if shown else "none"
    return f"{first} of {counted_text(total, what)}; --limit and --offset show others"


def _time(time: str) -> str:
    return f"{time[:10]} {time[11:19]}"


def _line(record: AuditEntry | AuditDecision) -> str:
    return f"{record.session}:{record.seq}:{record.hash[:12]}"


def _unproved(why: str) -> str:
    return f"UNPROVED: {why}" if why else ""
