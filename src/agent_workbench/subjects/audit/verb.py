"""`agent audit`: which tasks ended how, who decided what, and what it cost, over all sessions of a repository."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, show_examples, whole_number
from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.history.audit_records import (
    MAX_DAYS,
    MAX_ENTRIES,
    AnyPage,
    AnyQuery,
    AuditPage,
    AuditQuery,
    CostKey,
    CostPage,
    CostQuery,
    DecisionQuery,
    check_query,
    cost_text,
    page_line,
    page_rows,
)
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.task_estimates import Intent


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the verb below it."""
    below = verb.add_subparsers(title="verbs", metavar="VERB", required=True)
    query = add_verb(below, "query", "list the tasks that fit all filters, or decisions, or costs", answer)
    show_examples(
        query,
        "agent audit query --status failed --days 7",
        "agent audit query --count --status failed --service shop",
        "agent audit query --decisions --by user",
        "agent audit query --costs --per day --per endpoint",
    )
    what = query.add_mutually_exclusive_group()
    what.add_argument("--count", action="store_true", help="only count the tasks")
    what.add_argument("--decisions", action="store_true", help="list decisions: who approved what and when")
    what.add_argument("--costs", action="store_true", help="sum up tokens and dollars")
    statuses = [str(each) for each in TaskStatus]
    query.add_argument("--days", type=whole_number(1, MAX_DAYS), default=30, metavar="N", help="the last days (30)")
    query.add_argument("--service", default="", metavar="S", help="only this service")
    query.add_argument("--intent", choices=[str(each) for each in Intent], default="", help="only this intent")
    query.add_argument(
        "--status", choices=statuses, metavar="STATUS", help=f"only tasks of this status: {', '.join(statuses)}"
    )
    query.add_argument("--task", metavar="ID", help="only decisions of this task")
    query.add_argument("--by", metavar="WHO", help="only decisions by whoever begins so: user, policy, …")
    query.add_argument(
        "--per",
        action="append",
        choices=[str(key) for key in CostKey],
        help="sum costs by this only; may be repeated (default: by all of them)",
    )
    query.add_argument(
        "--limit", type=whole_number(1, MAX_ENTRIES), default=100, metavar="N", help=f"1 to {MAX_ENTRIES} rows (100)"
    )
    query.add_argument("--offset", type=whole_number(), default=0, metavar="N", help="leave out so many of the newest")
    query.add_argument("--json", action="store_true", help="print one object of JSON")


def answer(options: argparse.Namespace) -> int:
    """Print the records that fit all filters."""
    from agent_workbench.subjects.audit.calls import audit_answer

    query = _query(options)
    check_query(query)  # before the repository is looked for
    page = asyncio.run(audit_answer(Invocation(Path.cwd(), os.environ, {}), query))
    if options.json:
        say_json(_document(page, options))
    elif options.count:
        say(f"{page.total}")
    else:
        what = "decision" if options.decisions else "sum" if options.costs else "task"
        rows = page_rows(page)
        for line in rows:
            say(line)
        if not page.total:
            say(f"no {what} fits in the last {options.days} days")
        elif part := page_line(rows, page.total, options.offset, what):
            say(part)
        if isinstance(page, CostPage) and rows:
            say(f"overall: {cost_text(page.overall)}")
    return _end(page)


def _query(options: argparse.Namespace) -> AnyQuery:
    """Return the question; raise `UsageError` for a filter that it does not have."""
    place = {"days": options.days, "limit": 1 if options.count else options.limit, "offset": options.offset}
    if options.decisions:
        _refuse("decisions", options, "status", "per")
        return DecisionQuery(options.service, options.intent, options.task or "", options.by or "", **place)
    if options.costs:
        _refuse("costs", options, "status", "task", "by")
        by = tuple(CostKey(each) for each in options.per) if options.per else tuple(CostKey)
        return CostQuery(options.service, options.intent, by, **place)
    _refuse("tasks", options, "task", "by", "per")
    return AuditQuery(TaskStatus(options.status) if options.status else None, options.service, options.intent, **place)


def _refuse(what: str, options: argparse.Namespace, *filters: str) -> None:
    of = {"status": "tasks", "task": "`--decisions`", "by": "`--decisions`", "per": "`--costs`"}
    for each in filters:
        if getattr(options, each) is not None:
            raise UsageError(f"{what} cannot be filtered by `--{each}`", advice=f"it is an option of {of[each]}")


def _document(page: AnyPage, options: argparse.Namespace) -> dict[str, object]:
    """Return a page as JSON."""
    document: dict[str, object] = to_builtins(page)
    if isinstance(page, AuditPage):
        tasks = document.pop("entries")
        if options.count:
            return document
        document = {"tasks": tasks, **document}
    return {**document, "limit": options.limit, "offset": options.offset}


def _end(page: AnyPage) -> int:
    """Print what is missing of an answer; return the exit code."""
    for note in page.notes:
        say(f"note: {note}", to=sys.stderr)
    for each in page.problems:
        say(f"{each.session} is damaged, and records behind this are missing: {each.problem}", to=sys.stderr)
    return ExitCode.JOURNAL if page.problems else ExitCode.DONE
