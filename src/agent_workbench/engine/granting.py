"""Which grammar an answer is held to: the tools that are open now, with what their arguments may be."""

import asyncio

from agent_workbench.core.model import Purpose
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.edits.offers import editing
from agent_workbench.engine.edits.sections import diff_rules
from agent_workbench.engine.grammar import reflexion_grammar, step_grammar
from agent_workbench.engine.tools import open_tools


async def granted(desk: Desk, purpose: Purpose) -> str:
    """Return the grammar (GBNF) for the next answer, made for what the prompt shows and the files as they are."""
    match purpose:
        case Purpose.EXECUTOR:
            return await _step(desk)
        case Purpose.REFLEXION:
            return reflexion_grammar()
        case Purpose.SUMMARY | Purpose.PLANNER:
            return ""


async def _step(desk: Desk) -> str:
    tools = tuple(open_tools(desk.run.tools).values())
    diff: tuple[str, ...] = ()
    if any(tool.raw for tool in tools):
        diff = await asyncio.to_thread(diff_rules, await editing(await desk.bench()))
    return step_grammar(tools, diff)
