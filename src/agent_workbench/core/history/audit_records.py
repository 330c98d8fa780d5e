"""Records of the audit and their text: ends of tasks, decisions and costs, each with its journal's line."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import counted_text, dollars_text, quoted

MAX_ENTRIES = 1_000
MAX_DAYS = 365
MAX_FAILURE_DAYS = 90
MAX_OFFSET = 10**9 - 1
MAX_SUBJECT_CHARS = 120
"""Longest text of a record; the journal's line has all of it."""

NONE = "-"


class AuditEntry(Struct, frozen=True):
    """One task's end in one session. `ended` is UTC in ISO 8601; `seq` and `hash` name the journal's line of it.

    `worker` is the machine that did the task (empty: the one whose journal it is), `commit` the task's commit.
    `unproved` says why the entry cannot be relied on (empty: its journal is this machine's, or validly signed).
    """

    session: SessionId
    task: TaskId
    status: TaskStatus
    ended: str
    seq: int
    hash: str
    service: str = ""
    intent: str = ""
    reason: str = ""
    worker: str = ""
    commit: str = ""
    unproved: str = ""


class AuditDecision(Struct, frozen=True):
    """One decision about a proposal: who decided what when; reads that nobody was asked about are left out.

    `by` is `user` or `policy:<rule>`, `via` the way it came if not from the screen. `subject` names what was decided:
    the command, the paths of a diff, or the first line of a message.
    """

    session: SessionId
    task: TaskId
    proposal: ProposalId
    kind: Permission
    verdict: Verdict
    by: str
    time: str
    seq: int
    hash: str
    via: str = ""
    reason: str = ""
    subject: str = ""
    service: str = ""
    intent: str = ""
    worker: str = ""
    unproved: str = ""


class AuditCost(Struct, frozen=True):
    """Tokens and dollars of one answer, or of `answers` of the same task, day and model; the line is the last one's.

    `endpoint` is the one that answered, as the journal names it.
    """

    session: SessionId
    task: TaskId
    time: str
    seq: int
    hash: str
    endpoint: str
    model: str = ""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    dollars: float = 0.0
    service: str = ""
    intent: str = ""
    worker: str = ""
    answers: int = 1
    unproved: str = ""


AuditRecord = AuditEntry | AuditDecision | AuditCost


class AuditProblem(Struct, frozen=True):
    """A journal that could not be read whole: the records up to its damage are kept, what follows is unknown."""

    session: SessionId
    problem: str


class AuditQuery(Struct, frozen=True):
    """Filters that an entry must all fit (an empty one fits everything), and the page that is wanted."""

    status: TaskStatus | None = None
    service: str = ""
    intent: str = ""
    days: int = 30
    limit: int = 100
    offset: int = 0


class DecisionQuery(Struct, frozen=True):
    """Filters of decisions, and the page that is wanted. `by` fits decisions of whom it is the beginning of."""

    service: str = ""
    intent: str = ""
    task: str = ""
    by: str = ""
    days: int = 30
    limit: int = 100
    offset: int = 0


class CostKey(StrEnum):
    """What costs are summed by."""

    DAY = "day"
    ENDPOINT = "endpoint"
    MODEL = "model"
    SERVICE = "service"
    WORKER = "worker"


class CostQuery(Struct, frozen=True):
    """Filters of costs, what they are summed `by`, and the page of sums that is wanted.

    `days` are whole days of UTC, today included.
    """

    service: str = ""
    intent: str = ""
    by: tuple[CostKey, ...] = tuple(CostKey)
    days: int = 30
    limit: int = 100
    offset: int = 0


class CostSum(Struct, frozen=True):
    """Costs of the answers that share a day (UTC), endpoint, model, service and worker; empty where not summed by it.

    `unproved` is how many of the `answers` cannot be relied on.
    """

    day: str = ""
    endpoint: str = ""
    model: str = ""
    service: str = ""
    worker: str = ""
    answers: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    dollars: float = 0.0
    unproved: int = 0


class AuditPage(Struct, frozen=True):
    """A page of entries, and `total`: how many fit the query in all."""

    entries: tuple[AuditEntry, ...]
    total: int
    problems: tuple[AuditProblem, ...] = ()
    notes: tuple[str, ...] = ()


class DecisionPage(Struct, frozen=True):
    """A page of decisions, newest first, and how many fit the query in all."""

    decisions: tuple[AuditDecision, ...]
    total: int
    problems: tuple[AuditProblem, ...] = ()
    notes: tuple[str, ...] = ()


class CostPage(Struct, frozen=True):
    """A page of sums, the newest day first, how many there are, and what all of them are together."""

    sums: tuple[CostSum, ...]
    total: int
    overall: CostSum
    problems: tuple[AuditProblem, ...] = ()
    notes: tuple[str, ...] = ()


AnyQuery = AuditQuery | DecisionQuery | CostQuery
AnyPage = AuditPage | DecisionPage | CostPage
SUBJECTS = ("tasks", "failures", "decisions", "costs")


def query_about(subject: str, *, service: str, task: str, by: str, days: int, limit: int) -> AnyQuery:
    """Return the query of a question about one of `SUBJECTS`; `task` and `by` are filters of decisions alone.

    Raises `UsageError` for another subject, and for a page or a span outside of the bounds.
    """
    query: AnyQuery
    match subject:
        case "tasks" | "failures":
            status = TaskStatus.FAILED if subject == "failures" else None
            query = AuditQuery(status, service, days=days, limit=limit)
        case "decisions":
            query = DecisionQuery(service, task=task, by=by, days=days, limit=limit)
        case "costs":
            query = CostQuery(service, days=days, limit=limit)
        case _:
            raise UsageError(f"the audit knows no {quoted(subject)}", advice=f"ask for {', '.join(SUBJECTS)}")
    check_query(query)
    return query


def check_query(query: AnyQuery) -> None:
    """Raise `UsageError` for a page or a span outside of the bounds."""
    failures = isinstance(query, AuditQuery) and query.status is TaskStatus.FAILED
    for name, value, least, most in (
        ("limit", query.limit, 1, MAX_ENTRIES),
        ("days", query.days, 1, MAX_FAILURE_DAYS if failures else MAX_DAYS),
        ("offset", query.offset, 0, MAX_OFFSET),
    ):
        if not least <= value <= most:
            about = " for failed tasks" if failures and name == "days" else ""
            raise UsageError(f"{name} is {value}", advice=f"{name} must be {least} to {most}{about}")


def utc_time(said: str) -> str:
    """Return a time in the form of the journal, so that times are ordered as their texts; raise `ValueError`."""
    time = datetime.fromisoformat(said)
    if time.utcoffset() != timedelta(0):
        raise ValueError(f"{said!r} is no time in UTC")
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def oldest_time(now: str, days: int) -> str:
    """Return the time so many days before `now`, in the form of the journal; records must be newer."""
    then = datetime.fromisoformat(now).replace(tzinfo=None) - timedelta(days=days)
    return then.isoformat(timespec="microseconds") + "Z"


def oldest_day(now: str, days: int) -> str:
    """Return the first of the last `days` days of UTC, the one of `now` included."""
    return (datetime.fromisoformat(now).date() - timedelta(days=days - 1)).isoformat()


def sum_costs(costs: Iterable[AuditCost], by: Collection[CostKey]) -> tuple[CostSum, ...]:
    """Return costs summed by the keys: the newest day first, then the most dollars, the most tokens, and by name."""
    sums: dict[tuple[str, ...], CostSum] = {}
    for each in costs:
        names = (each.time[:10], each.endpoint, each.model, each.service, each.worker)
        day, endpoint, model, service, worker = key = tuple(
            name if key in by else "" for key, name in zip(CostKey, names, strict=True)
        )
        before = sums.get(key, CostSum(day, endpoint, model, service, worker))
        sums[key] = replace(
            before,
            answers=before.answers + each.answers,
            prompt_tokens=before.prompt_tokens + each.prompt_tokens,
            answer_tokens=before.answer_tokens + each.answer_tokens,
            dollars=before.dollars + each.dollars,
            unproved=before.unproved + each.answers * bool(each.unproved),
        )
    return sorted_sums(sums.values())


def sorted_sums(sums: Iterable[CostSum]) -> tuple[CostSum, ...]:
    """Return sums of costs in the order in which they are told."""
    found = sorted(sums, key=lambda each: (each.endpoint, each.model, each.service, each.worker))
    found.sort(key=lambda each: (each.day, each.dollars, each.prompt_tokens + each.answer_tokens), reverse=True)
    return tuple(found)


def total_cost(sums: Iterable[CostSum]) -> CostSum:
    """Return what sums of costs are together."""
    total = CostSum()
    for each in sums:
        total = CostSum(
            answers=total.answers + each.answers,
            prompt_tokens=total.prompt_tokens + each.prompt_tokens,
            answer_tokens=total.answer_tokens + each.answer_tokens,
            dollars=total.dollars + each.dollars,
            unproved=total.unproved + each.unproved,
        )
    return total


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
