"""Registry of a session's tools: built-in ones, the workbench's own, and those of external sources."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType

from agent_workbench.core.errors import ToolError
from agent_workbench.core.ports.tools import SchemaValidator, ToolSource
from agent_workbench.core.proposals import ANSWER_SERVER
from agent_workbench.core.settings import BACKGROUND, RUN_COMMAND, TOOL_ALIASES
from agent_workbench.core.tools.skill_tools import SKILL_SPECS
from agent_workbench.core.tools.spec import MCP, ToolSpec, select_specs
from agent_workbench.engine.runtime.tool import Tool
from agent_workbench.engine.tools.check_runs import CHECKS_TOOL
from agent_workbench.engine.tools.commit import END_TOOL
from agent_workbench.engine.tools.commit import TOOL as COMMIT_TOOL
from agent_workbench.engine.tools.merge import TOOL as MERGE_TOOL
from agent_workbench.engine.tools.source_tool import SourceTool
from agent_workbench.engine.tools.task_edits import TOOL as EDITS_TOOL
from agent_workbench.engine.tools.write_diff import KEEP

LIST_SECONDS = 10.0
MOST_LISTED = 200
MOST_PROBLEMS = 10
_OWN_SCHEMAS = frozenset(spec.input_schema for spec in SKILL_SPECS)
"""Schemas that come with the workbench: they are valid, and each check takes a process."""
_FOR_THE_MODEL = (
    *("query_audit", "command_tools", "consult_tool", "finish_tool", "note_tools", "playbook_tools", "reading_tools"),
    "write_diff",
)
"""Modules with the built-in tools, which each lists as `TOOLS`."""
_OWN: tuple[Tool, ...] = (CHECKS_TOOL, COMMIT_TOOL, END_TOOL, MERGE_TOOL, KEEP, EDITS_TOOL)


@cache
def builtin_tools() -> Mapping[str, Tool]:
    """Return the tools for the model by name. The first call blocks while their modules are read."""
    tools: list[Tool] = [tool for name in _FOR_THE_MODEL for tool in import_module(f"{__package__}.{name}").TOOLS]
    return MappingProxyType({tool.spec.name: tool for tool in sorted(tools, key=lambda tool: tool.spec.name)})


def builtin_specs(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Return the specs of these built-in tools, in the order of the names; unknown names are left out."""
    tools = builtin_tools()
    return tuple(tools[name].spec for name in names if name in tools)


class ToolRegistry:
    """The tools of one session. `own` are tools that only the workbench calls, such as commit and merge."""

    def __init__(self, sources: Sequence[ToolSource], schemas: SchemaValidator, own: Iterable[Tool] = ()) -> None:
        self._sources = tuple(sources)
        self._schemas = schemas
        self._own: dict[str, Tool] = {tool.spec.name: tool for tool in (*_OWN, *own)}
        self._listed: dict[str, SourceTool] | None = None

    def allowed_specs(self, names: Sequence[str], *, skills: bool = False) -> tuple[ToolSpec, ...]:
        """Return the specs of a new task: the built-in tools with these names, then those of the sources.

        The tools of skills are among them if `skills` says so, or if they are named. The one that reads what a command
        left running comes with the one that runs commands, and never alone.
        """
        names = [each for each in names if each != BACKGROUND] + [BACKGROUND] * (RUN_COMMAND in names)
        listed = (tool.spec for tool in (self._listed or {}).values())
        return (
            *builtin_specs(names),
            *(spec for spec in listed if skills or spec not in SKILL_SPECS or spec.name in names),
        )

    async def tool(self, name: str) -> Tool:
        """Return a tool by name; raise `ToolError` if no source provides it now."""
        found = builtin_tools().get(name) or self._own.get(name)
        if found is not None:
            return found
        if name == ANSWER_SERVER:
            raise ToolError("the server that asked has ended", advice="call its tool again")
        if self._listed is None:
            await self.refresh()
        listed = (self._listed or {}).get(name)
        if listed is None:
            raise ToolError(f"no source brings the tool {name!r} any more", advice="use another tool")
        return listed

    def follow(self, tool: Tool) -> None:
        """Have a tool found by its name from now on, in place of an earlier one."""
        self._own[tool.spec.name] = tool

    async def refresh(self) -> tuple[str, ...]:
        """List the tools of all sources again; return a sentence for each problem."""
        answers = await asyncio.gather(*map(_list_tools, self._sources))
        problems = [problem for _, problem in answers if problem]
        problems += self._vanished([specs for specs, _ in answers])
        listed = [(source, spec) for source, (specs, _) in zip(self._sources, answers, strict=True) for spec in specs]
        self._listed, refused = await self._usable(listed)
        problems += refused
        more = len(problems) - MOST_PROBLEMS
        return (*problems[:MOST_PROBLEMS], f"and {more} more problems with tools") if more > 0 else tuple(problems)

    def _vanished(self, answers: Sequence[Sequence[ToolSpec]]) -> list[str]:
        """Return a sentence for each source that lists tools no more which the session's last task could use."""
        found = []
        for source, specs in zip(self._sources, answers, strict=True):
            known = {name for name, tool in (self._listed or {}).items() if tool.spec.source == source.name}
            if specs and (missing := sorted(known - {spec.name for spec in specs})):
                found.append(f"{source.name} no longer lists {', '.join(missing[:MOST_PROBLEMS])}")
        return found

    async def _usable(self, listed: list[tuple[ToolSource, ToolSpec]]) -> tuple[dict[str, SourceTool], list[str]]:
        """Return the usable tools, and the reasons why others are not."""
        taken = {*builtin_tools(), *self._own, *TOOL_ALIASES}
        chosen = list(select_specs((spec for _, spec in listed), taken))
        problems = [
            problem or ("" if spec.source == source.name else f"it says that it comes from {spec.source[:80]!r}")
            for (source, _), (spec, problem) in zip(listed, chosen, strict=True)
        ]
        # Each source is asked about alone: schemas that take long to check keep no other source waiting.
        each_source = [
            [at for at, (source, _) in enumerate(listed) if source is one and not problems[at]] for one in self._sources
        ]
        schemas = [[listed[at][1].input_schema for at in places] for places in each_source]
        for places, found in zip(each_source, await asyncio.gather(*map(self._check_schemas, schemas)), strict=True):
            for at, problem in zip(places, found, strict=True):
                problems[at] = problem
        usable: dict[str, SourceTool] = {}
        refused: list[str] = []
        for (source, spec), problem in zip(listed, problems, strict=True):
            if problem:
                refused.append(f"the tool {spec.name[:80]!r} of {source.name} is left out: {problem}")
            else:
                usable[spec.name] = SourceTool(spec, source, self._schemas)
        return usable, refused

    async def _check_schemas(self, schemas: Sequence[str]) -> Sequence[str]:
        """Return for each schema why its tool cannot be used, empty where it can."""
        if _OWN_SCHEMAS.issuperset(schemas):
            return [""] * len(schemas)
        try:
            found = await self._schemas.schema_problems(schemas)
        except ToolError as error:
            return [f"its schema was not checked: {error}"] * len(schemas)
        return [problem and f"its schema is invalid: {problem}" for problem in found]

    async def close(self) -> None:
        """Close the sources."""
        await asyncio.gather(*(source.close() for source in self._sources))


async def _list_tools(source: ToolSource) -> tuple[Sequence[ToolSpec], str]:
    """Return the tools of a source, and the problem if it cannot list them."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = await source.list_tools()
    except TimeoutError:
        return (), f"{source.name} did not list its tools within {LIST_SECONDS:g} s; none of them is used"
    except ToolError as error:
        return (), f"the tools of {source.name} are not used: {error}"
    if not listed and source.name.startswith(MCP):
        return (), f"{source.name} lists no tools; `agent mcp test` shows what it answers"
    many = f"{source.name} lists {len(listed)} tools; only {MOST_LISTED} are looked at"
    return listed[:MOST_LISTED], many if len(listed) > MOST_LISTED else ""
