"""Resources of the server: the plan, the sessions and the knowledge, read by their addresses."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import session_id
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import quoted

SCHEME = "agent://"
PLAN = f"{SCHEME}plan"
JSON, MARKDOWN = "application/json", "text/markdown"
MOST_LISTED = 50


class Listed(Struct, frozen=True):
    """A resource as it is listed."""

    uri: str
    name: str
    summary: str
    mime: str


class Kind(Struct, frozen=True):
    """Resources of one kind: `agent://<folder>/{name}`; `listed` are the newest, `read` returns the text of one."""

    folder: str
    placeholder: str
    summary: str
    mime: str
    listed: Callable[[], Awaitable[tuple[Listed, ...]]]
    read: Callable[[str], Awaitable[str]]

    @property
    def template(self) -> str:
        """Address with a placeholder for the name."""
        return f"{SCHEME}{self.folder}/{{{self.placeholder}}}"


Kinds: TypeAlias = Mapping[str, Kind]


class UnknownResource(Exception):
    """No resource has this address."""


class Resources:
    """The resources of one repository."""

    def __init__(self, invocation: Invocation, kinds: tuple[Kind, ...]) -> None:
        self._invocation = invocation
        self.kinds: Kinds = {kind.folder: kind for kind in kinds}

    async def listed(self) -> tuple[Listed, ...]:
        """Return the plan, then the newest of each kind; a kind that cannot be listed has none."""
        found = [Listed(PLAN, "plan", "tasks of this repository, their status and what they wait for", JSON)]
        for kind in self.kinds.values():
            found += await kind.listed()
        return tuple(found)

    async def read(self, uri: str) -> tuple[str, str]:
        """Return the text and type of a resource; raise `UnknownResource`, `WorkbenchError`."""
        if uri == PLAN:
            return await _plan(self._invocation), JSON
        folder, slash, name = uri.removeprefix(SCHEME).partition("/")
        kind = self.kinds.get(folder)
        if not uri.startswith(SCHEME) or kind is None or not slash or not name:
            known = ", ".join((PLAN, *(each.template for each in self.kinds.values())))
            raise UnknownResource(f"unknown resource {quoted(uri)}; there are {known}")
        try:
            return await kind.read(name), kind.mime
        except UsageError as error:
            raise UnknownResource(f"unknown resource {quoted(uri)}: {error}") from None


def session_resources(invocation: Invocation) -> Kind:
    """Return the resources of the sessions."""
    return Kind(
        "sessions",
        "session",
        "report of a session: tasks, changes, checks and decisions",
        MARKDOWN,
        partial(_sessions, invocation),
        partial(_session, invocation),
    )


async def _plan(invocation: Invocation) -> str:
    from agent_workbench.api.plans import plan_status
    from agent_workbench.views.reports.json_documents import plan_document

    status = await plan_status(invocation)
    return json.dumps(plan_document(status.plan, status.holders, status.states), ensure_ascii=False, indent=1)


async def _sessions(invocation: Invocation) -> tuple[Listed, ...]:
    from agent_workbench.api.session_queries import session_summaries

    summaries = (await session_summaries(invocation))[:MOST_LISTED]
    return tuple(
        Listed(
            f"{SCHEME}sessions/{each.id}",
            each.id,
            f"{each.subject or 'no task'}: {each.status.value if each.status else 'open'}",
            MARKDOWN,
        )
        for each in summaries
    )


async def _session(invocation: Invocation, name: str) -> str:
    from agent_workbench.api.session_export import ExportFormat, export_session

    return await export_session(invocation, session_id(name), ExportFormat.MARKDOWN)
