"""Tools that read: the plan, the code, the inbox, and the models."""

import asyncio
from functools import partial

from msgspec import to_builtins

from agent_workbench.core.history.audit_records import MAX_DAYS, MAX_ENTRIES, SUBJECTS, query_about
from agent_workbench.core.inbox import InboxFilter
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.mcp.tools.served_tool import (
    Arguments,
    JsonObject,
    ServedTool,
    name_field,
    number_field,
    schema_of,
    text_field,
)
from agent_workbench.views.inbox import view_inbox
from agent_workbench.views.reports.json_documents import plan_document, results_document, row_document

MOST_RESULTS = 50
RESULTS = 10
AUDIT_DAYS, AUDIT_ROWS = 30, 100
MOST_GOAL_CHARS = 4_000


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
    from agent_workbench.api.dispatch.plan_work import opened_plan_work
    from agent_workbench.api.plans import plan_status
    from agent_workbench.views.reports.plan_progress import progress_document

    status = await plan_status(invocation)
    document = plan_document(status.plan, status.holders, status.states)
    if any(task.queued_as for task in status.plan.tasks):
        async with opened_plan_work(invocation) as work:
            document["progress"] = progress_document(await work.progress())
    return document


async def _plan_new(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.api.sessions.plan_requests import park_plan
    from agent_workbench.views.reports.plan_documents import proposed_plan_document

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
    from agent_workbench.api.sessions.inbox import opened_inbox

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
    from agent_workbench.api.records.audit import audit_answer

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
    from agent_workbench.api.models import listed_endpoints
    from agent_workbench.api.trusted_repo import say_nothing

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
