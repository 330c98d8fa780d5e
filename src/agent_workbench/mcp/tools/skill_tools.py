"""The tools of skills, as the executor and the chat have them."""

import json
from functools import partial

from agent_workbench.core.invocation import Invocation
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.skill_tools import SKILL_SPECS
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import JsonError, read_json
from agent_workbench.mcp.tools.served_tool import Arguments, FailedCall, JsonObject, ServedTool

PARKED = " It runs only where approvals.script is auto and a sandbox confines it; else it is refused: a person decides."


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
    from agent_workbench.api.extensions.skill_tools import call_skill_tool

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
