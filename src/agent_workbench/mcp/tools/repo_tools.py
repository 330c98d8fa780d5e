"""Tools that read: the plan, the code, the inbox, and the models."""

import asyncio
from functools import partial

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


def repo_tools(invocation: Invocation) -> tuple[ServedTool, ...]:
    """Return the tools for one repository."""
    task = {"task": name_field("only proposals of this task, such as T-1")}
    # One after the other: the first one brings the index up to date, and the others find it so.
    turn = asyncio.Lock()
    limit = {"limit": number_field(f"maximum number of results ({RESULTS})", MOST_RESULTS)}
    return (
        ServedTool(
            "plan_status",
            "Show the plan of this repository: its tasks in order, their status, and what each one waits for.",
            schema_of({}, {}),
            partial(_plan_status, invocation),
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
            "list_models",
            "List the model endpoints of each role in the order in which they are asked; no request is sent.",
            schema_of({}, {}),
            partial(_list_models, invocation),
        ),
    )


async def _plan_status(invocation: Invocation, _: Arguments) -> JsonObject:
    from agent_workbench.api.plans import plan_status

    status = await plan_status(invocation)
    return plan_document(status.plan, status.holders)


async def _search_code(invocation: Invocation, turn: asyncio.Lock, arguments: Arguments) -> JsonObject:
    from agent_workbench.api.search.code_search import Searched, search_checkout

    found: list[Searched] = []
    query = CodeQuery(arguments.text("query").strip())
    limit = arguments.number("limit", RESULTS) or RESULTS
    async with turn:
        await search_checkout(invocation, query, limit, lambda _: None, found.append)
    return results_document(query, found[0].chunks, found[0].status)


async def _inbox_list(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.api.sessions.inbox import repo_inbox

    inbox = await repo_inbox(invocation)
    rows = view_inbox(await inbox.items(InboxFilter(task=arguments.text("task"))), inbox.now())
    return {"waiting": [row_document(row) for row in rows]}


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
