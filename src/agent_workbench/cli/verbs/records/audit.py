"""`agent audit`: which tasks ended how, who decided what, and what it cost, over all sessions of a repository."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.history.audit_records import (
    MAX_DAYS,
    MAX_ENTRIES,
    MAX_FAILURE_DAYS,
    AuditPage,
    AuditQuery,
    CostKey,
    CostPage,
    CostQuery,
    DecisionPage,
    DecisionQuery,
    check_query,
)
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.plan.needs import Intent

if TYPE_CHECKING:
    from agent_workbench.cli.options import Execute, Verbs

DEFAULT_DAYS = 30
DEFAULT_LIMIT = 100


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the verbs below it."""
    below = verb.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add(below, "failures", "list the tasks that failed", failures, "service", days=MAX_FAILURE_DAYS)
    service = _add(below, "service", "list the tasks of one service", of_service, "status")
    service.add_argument("name", metavar="NAME", help="the service, as the tasks name it")
    _add(below, "query", "list the tasks that fit all filters", query_tasks, "service", "status", "intent")
    _add(below, "count", "count the tasks that fit all filters", count, "service", "status", "intent", paged=False)
    who = _add(below, "who", "list the decisions: who approved what and when", who_decided, "service", "intent")
    who.add_argument("--task", default="", metavar="ID", help="only decisions of this task")
    who.add_argument("--by", default="", metavar="WHO", help="only decisions by whoever begins so: user, policy, …")
    spend = _add(below, "spend", "sum up tokens and dollars", spent, "service", "intent")
    spend.add_argument(
        "--by",
        action="append",
        choices=[str(key) for key in CostKey],
        help="sum by this only; may be repeated (default: by all of them)",
    )


def _add(
    below: "Verbs", name: str, summary: str, execute: "Execute", *filters: str, days: int = MAX_DAYS, paged: bool = True
) -> argparse.ArgumentParser:
    verb = add_verb(below, name, summary, execute)
    verb.add_argument(
        "--days", type=whole_number(1, days), default=DEFAULT_DAYS, metavar="N", help=f"1 to {days} (default: 30)"
    )
    if "service" in filters:
        verb.add_argument("--service", default="", metavar="S", help="only this service")
    if "status" in filters:
        known = [str(each) for each in TaskStatus]
        verb.add_argument("--status", choices=known, metavar="STATUS", help=f"only this status: {', '.join(known)}")
    if "intent" in filters:
        verb.add_argument("--intent", choices=[str(each) for each in Intent], default="", help="only this intent")
    if paged:
        verb.add_argument(
            "--limit",
            type=whole_number(1, MAX_ENTRIES),
            default=DEFAULT_LIMIT,
            metavar="N",
            help=f"1 to {MAX_ENTRIES} (default: 100)",
        )
        verb.add_argument(
            "--offset", type=whole_number(), default=0, metavar="N", help="leave out so many of the newest"
        )
    verb.add_argument("--json", action="store_true", help="print one object of JSON")
    return verb


def failures(options: argparse.Namespace) -> int:
    """Print the tasks that failed."""
    return _print_tasks(options, _query(options, status=TaskStatus.FAILED, service=options.service))


def of_service(options: argparse.Namespace) -> int:
    """Print the tasks of one service."""
    return _print_tasks(options, _query(options, status=_status(options), service=options.name))


def query_tasks(options: argparse.Namespace) -> int:
    """Print the tasks that fit all filters."""
    query = _query(options, status=_status(options), service=options.service, intent=options.intent)
    return _print_tasks(options, query)


def count(options: argparse.Namespace) -> int:
    """Print how many tasks fit all filters."""
    from agent_workbench.api.records.audit import audit_entries

    query = AuditQuery(_status(options), options.service, options.intent, options.days, limit=1)
    check_query(query)
    page = asyncio.run(audit_entries(_invocation(), query))
    if options.json:
        say_json({"total": page.total, **_remarks(page)})
    else:
        say(f"{page.total}")
    return _end(page)


def who_decided(options: argparse.Namespace) -> int:
    """Print the decisions that fit all filters."""
    from agent_workbench.api.records.audit import audit_decisions
    from agent_workbench.core.history.audit_lines import decision_line

    query = DecisionQuery(
        options.service, options.intent, options.task, options.by, options.days, options.limit, options.offset
    )
    check_query(query)
    page = asyncio.run(audit_decisions(_invocation(), query))
    if options.json:
        say_json({"decisions": to_builtins(page.decisions), **_place(page.total, options), **_remarks(page)})
        return _end(page)
    return _print(page, map(decision_line, page.decisions), page.decisions, options, "decision")


def spent(options: argparse.Namespace) -> int:
    """Print sums of tokens and dollars."""
    from agent_workbench.api.records.audit import audit_costs
    from agent_workbench.core.history.audit_lines import cost_line, cost_text

    by = tuple(CostKey(each) for each in options.by) if options.by else tuple(CostKey)
    query = CostQuery(options.service, options.intent, by, options.days, options.limit, options.offset)
    check_query(query)
    page = asyncio.run(audit_costs(_invocation(), query))
    if options.json:
        told = {"sums": to_builtins(page.sums), "overall": to_builtins(page.overall)}
        say_json({**told, **_place(page.total, options), **_remarks(page)})
        return _end(page)
    code = _print(page, map(cost_line, page.sums), page.sums, options, "sum")
    if page.sums:
        say(f"overall: {cost_text(page.overall)}")
    return code


def _print_tasks(options: argparse.Namespace, query: AuditQuery) -> int:
    from agent_workbench.api.records.audit import audit_entries
    from agent_workbench.core.history.audit_lines import entry_line

    check_query(query)  # before the repository is looked for
    page = asyncio.run(audit_entries(_invocation(), query))
    if options.json:
        say_json({"tasks": to_builtins(page.entries), **_place(page.total, options), **_remarks(page)})
        return _end(page)
    return _print(page, map(entry_line, page.entries), page.entries, options, "task")


def _print(
    page: AuditPage | DecisionPage | CostPage,
    lines: Iterable[str],
    shown: Sequence[object],
    options: argparse.Namespace,
    what: str,
) -> int:
    """Print the lines of a page; return the exit code."""
    from agent_workbench.core.history.audit_lines import page_line

    for line in lines:
        say(line)
    if not page.total:
        say(f"no {what} fits in the last {options.days} days")
    elif part := page_line(shown, page.total, options.offset, what):
        say(part)
    return _end(page)


def _end(page: AuditPage | DecisionPage | CostPage) -> int:
    """Tell what is missing of an answer; return the exit code."""
    for note in page.notes:
        say(f"note: {note}", to=sys.stderr)
    for each in page.problems:
        say(f"{each.session} is damaged, and records behind this are missing: {each.problem}", to=sys.stderr)
    return ExitCode.JOURNAL if page.problems else ExitCode.DONE


def _remarks(page: AuditPage | DecisionPage | CostPage) -> dict[str, object]:
    return {"problems": to_builtins(page.problems), "notes": to_builtins(page.notes)}


def _place(total: int, options: argparse.Namespace) -> dict[str, object]:
    return {"total": total, "limit": options.limit, "offset": options.offset}


def _query(options: argparse.Namespace, *, status: TaskStatus | None, service: str, intent: str = "") -> AuditQuery:
    return AuditQuery(status, service, intent, options.days, options.limit, options.offset)


def _status(options: argparse.Namespace) -> TaskStatus | None:
    return TaskStatus(options.status) if options.status else None


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
