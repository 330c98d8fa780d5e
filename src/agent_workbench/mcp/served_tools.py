"""All tools of the server: those that read, those of skills, and those that start, stop and follow a task."""

import asyncio
import json
from functools import partial

from msgspec import to_builtins

from agent_workbench.api.sessions.unattended_run import RunReport, TaskRuns, run_report
from agent_workbench.core.history.audit_records import MAX_DAYS, MAX_ENTRIES, SUBJECTS, query_about
from agent_workbench.core.ids import session_id, task_id
from agent_workbench.core.inbox import InboxFilter
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.skill_tools import SKILL_SPECS
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import JsonError, read_json
from agent_workbench.mcp.consultant_tools import consultant_tools
from agent_workbench.mcp.knowledge_tools import knowledge_tools
from agent_workbench.mcp.served_tool import (
    Arguments,
    FailedCall,
    JsonObject,
    ServedTool,
    name_field,
    number_field,
    schema_of,
    text_field,
)
from agent_workbench.views.reports.json_documents import plan_document, proposed_plan_document, results_document

PARKED = " It runs only where approvals.script is auto and a sandbox confines it; else it is refused: a person decides."

MOST_RESULTS = 50
RESULTS = 10
AUDIT_DAYS, AUDIT_ROWS = 30, 100
MOST_GOAL_CHARS = 4_000


def served_tools(invocation: Invocation, runs: TaskRuns) -> tuple[ServedTool, ...]:
    """Return the tools for the repository around `invocation`; `runs` are the tasks that clients started."""
    return (
        *repo_tools(invocation),
        *run_tools(invocation, runs),
        *consultant_tools(invocation),
        *knowledge_tools(invocation),
        *skill_tools(invocation),
    )


def run_tools(invocation: Invocation, runs: TaskRuns) -> tuple[ServedTool, ...]:
    """Return the tools; `runs` holds what they start."""
    session = {"session": name_field("the session that run_task returned, such as 20261120T101500-ab2cde")}
    return (
        ServedTool(
            "run_task",
            "Start a task of the plan, unattended, under the repository's own approvals; proposals that need a person "
            "are parked. Returns at once with the session to ask run_status about. A task that is under way here is "
            "not started again: its session is returned. Call it again to continue after a person decided.",
            schema_of({"task": name_field("the id of the task in the plan, such as T-1")}, {}),
            partial(_run_task, runs),
            reads=False,
        ),
        ServedTool(
            "run_status",
            "Tell how a run goes: running, parked (a person is needed), stopped, done or failed, with its last events.",
            schema_of(session, {}),
            partial(_run_status, invocation),
        ),
        ServedTool(
            "run_stop",
            "Stop a run that this server started, and tell how it stands. Nothing is lost: run_task continues it.",
            schema_of(session, {}),
            partial(_run_stop, invocation, runs),
            reads=False,
        ),
    )


async def _run_task(runs: TaskRuns, arguments: Arguments) -> JsonObject:
    started = await runs.start(task_id(arguments.text("task")))
    if started.end is not None:
        return {"task": started.task, "session": None, "state": "done", "reason": started.end.reason}
    return {"task": started.task, "session": started.session, "state": "running"}


async def _run_status(invocation: Invocation, arguments: Arguments) -> JsonObject:
    return _document(await run_report(invocation, session_id(arguments.text("session"))))


async def _run_stop(invocation: Invocation, runs: TaskRuns, arguments: Arguments) -> JsonObject:
    session = session_id(arguments.text("session"))
    await runs.stop(session)
    return _document(await run_report(invocation, session))


def _document(report: RunReport) -> JsonObject:
    return {
        "session": report.session,
        "task": report.task,
        "state": report.state.value,
        "reason": report.reason,
        "branch": report.branch,
        "commit": report.commit or None,
        "steps": report.steps,
        "tokens": report.tokens,
        "waiting": [{"id": item.id, "kind": item.proposal.kind.value} for item in report.waiting],
        "log": list(report.log),
    }


def skill_tools(invocation: Invocation) -> tuple[ServedTool, ...]:
    """Return the tools. In a repository without trust they know the skills of the user and of the package."""
    return tuple(
        ServedTool(
            spec.name,
            f"{spec.summary[0].upper()}{spec.summary[1:]}.{'' if _reads(spec) else PARKED}",
            spec.input_schema,
            partial(_call, invocation, spec.name),
            reads=_reads(spec),
        )
        for spec in SKILL_SPECS
    )


def _reads(spec: ToolSpec) -> bool:
    return spec.permission is Permission.READ


async def _call(invocation: Invocation, tool: str, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.skills.calls import call_skill_tool

    result = await call_skill_tool(invocation, tool, json.dumps(dict(arguments.values)))
    try:
        structured = read_json(result.structured) if result.structured else None
    except JsonError:
        structured = None
    outcome: JsonObject = structured if isinstance(structured, dict) else {}
    cut: JsonObject = {"cut_bytes": result.cut_bytes} if result.cut_bytes else {}
    if result.failed:
        raise FailedCall(result.text, outcome and {**outcome, **cut})
    return {**(outcome or {"text": result.text}), **cut}


def repo_tools(invocation: Invocation) -> tuple[ServedTool, ...]:
    """Return the tools for one repository."""
    task = {"task": name_field("only proposals of this task, such as T-1")}
    # One after the other: the first one brings the index up to date, and the others find it so.
    turn = asyncio.Lock()
    limit = {"limit": number_field(f"maximum number of results ({RESULTS})", MOST_RESULTS)}
    return (
        ServedTool(
            "plan_status",
            "Show the plan of this repository: its tasks in order, their status, and what each one waits for. Of tasks "
            "that were dispatched, `progress` tells if they are queued, running (on which worker), parked, done or "
            "failed, and what they cost beside the estimate.",
            schema_of({}, {}),
            partial(_plan_status, invocation),
        ),
        ServedTool(
            "plan_new",
            "Ask the model of this repository to break a goal into tasks. The plan waits at its gate until the person "
            "approves it with `agent inbox` or `agent tui`; nothing is written or dispatched before. Returns the tasks "
            "with their kind of work, needs, complexity and estimates.",
            schema_of({"goal": text_field("what the plan is to reach", MOST_GOAL_CHARS)}, {}),
            partial(_plan_new, invocation),
            reads=False,
        ),
        ServedTool(
            "search_code",
            "Search the code of this repository by words, names, path:line or a stack trace; returns pieces of code "
            "with their places, best first.",
            schema_of({"query": text_field("words, names, path:line, or the output of a failed command")}, limit),
            partial(_search_code, invocation, turn),
        ),
        ServedTool(
            "inbox_list",
            "List the proposals that wait for a person in all sessions of this repository. They cannot be decided "
            "here: the person uses `agent inbox` or `agent tui`.",
            schema_of({}, task),
            partial(_inbox_list, invocation),
        ),
        ServedTool(
            "audit",
            "Read the audit trail of this repository: which tasks ended how (`tasks`, `failures`), who decided what "
            "and when (`decisions`), and what it cost (`costs`); the newest first.",
            schema_of({"about": name_field(", ".join(SUBJECTS))}, _filters()),
            partial(_audit, invocation),
        ),
        ServedTool(
            "list_models",
            "List the model endpoints of each role in the order in which they are asked; no request is sent.",
            schema_of({}, {}),
            partial(_list_models, invocation),
        ),
    )


async def _plan_status(invocation: Invocation, _: Arguments) -> JsonObject:
    from agent_workbench.api.plans import plan_status
    from agent_workbench.subjects.dispatch.calls import opened_plan_work
    from agent_workbench.subjects.dispatch.view import progress_document

    status = await plan_status(invocation)
    document = plan_document(status.plan, status.holders, status.states)
    if any(task.queued_as for task in status.plan.tasks):
        async with opened_plan_work(invocation) as work:
            document["progress"] = progress_document(await work.progress())
    return document


async def _plan_new(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.api.sessions.plan_requests import park_plan

    asked = await park_plan(invocation, arguments.text("goal").strip())
    if asked.proposal is None or asked.proposal.plan is None:
        return {"session": asked.session, "state": "decided", "outcome": asked.outcome}
    document = proposed_plan_document(asked.session, asked.proposal, asked.proposal.plan)
    # Without the digest nobody can decide: the person sees it with the whole plan.
    del document["reference"]
    return {**document, "state": "waiting"}


async def _search_code(invocation: Invocation, turn: asyncio.Lock, arguments: Arguments) -> JsonObject:
    from agent_workbench.api.code_search import Searched, search_checkout

    found: list[Searched] = []
    query = CodeQuery(arguments.text("query").strip())
    limit = arguments.number("limit", RESULTS) or RESULTS
    async with turn:
        await search_checkout(invocation, query, limit, lambda _: None, found.append)
    return results_document(query, found[0].chunks, found[0].status)


async def _inbox_list(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.inbox.calls import opened_inbox
    from agent_workbench.subjects.inbox.view import row_document, view_inbox

    async with opened_inbox(invocation) as inbox:
        rows = view_inbox(await inbox.items(InboxFilter(task=arguments.text("task"))), inbox.now())
    return {"waiting": [row_document(row) for row in rows]}


def _filters() -> dict[str, JsonObject]:
    return {
        "service": name_field("only this service"),
        "task": name_field("only decisions of this task"),
        "by": name_field("only decisions by whoever begins so, such as user or policy"),
        "days": number_field(f"of the last so many days ({AUDIT_DAYS})", MAX_DAYS),
        "limit": number_field(f"maximum number of records ({AUDIT_ROWS})", MAX_ENTRIES),
    }


async def _audit(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.audit.calls import audit_answer

    query = query_about(
        arguments.text("about"),
        service=arguments.text("service"),
        task=arguments.text("task"),
        by=arguments.text("by"),
        days=arguments.number("days", AUDIT_DAYS),
        limit=arguments.number("limit", AUDIT_ROWS),
    )
    page: JsonObject = to_builtins(await audit_answer(invocation, query))
    return page


async def _list_models(invocation: Invocation, _: Arguments) -> JsonObject:
    from agent_workbench.api.trusted_repo import say_nothing
    from agent_workbench.subjects.models.calls import listed_endpoints

    lines = await listed_endpoints(invocation, say_nothing)
    return {
        "models": [
            {
                "role": line.role,
                "name": line.name,
                "where": line.where,
                "free": line.price.is_free,
                "key_set": line.key_set or not line.key_variable,
            }
            for line in lines
        ]
    }
