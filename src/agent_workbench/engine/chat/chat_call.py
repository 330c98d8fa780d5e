"""Approved calls of a chat: the start is on disk before the call, its result after it."""

from agent_workbench.core.errors import error_text
from agent_workbench.core.events import ActionFinished, ActionResult, ActionStarted
from agent_workbench.core.proposals import Proposal
from agent_workbench.engine.chat.chat_context import chat_context
from agent_workbench.engine.prompt.prompt_text import WHILE_RUNNING
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.stoppable import StoppedByUser
from agent_workbench.engine.runtime.tool import REFUSALS, ToolResult
from agent_workbench.engine.task.execution import describe_activity, run_tool, stopped_result


async def execute_call(session: SessionContext, proposal: Proposal) -> None:
    """Make an approved call and record its result. It changes no file of the repository."""
    context = await chat_context(session)
    session.publisher.show_activity(describe_activity(proposal))
    await session.record(ActionStarted(proposal.id))
    started = session.ports.clock.monotonic_seconds()
    try:
        outcome = await run_tool(session, context, proposal)
    except REFUSALS as error:
        outcome = ToolResult(error_text(error), ActionResult.REFUSED)
    except StoppedByUser:
        outcome = stopped_result(context, session.ports.clock.monotonic_seconds() - started)
    for effect in outcome.effects:
        await session.record(effect)
    seconds = round(session.ports.clock.monotonic_seconds() - started, 3)
    output, cut, shown = outcome.output, outcome.cut_bytes, outcome.shown
    await session.record(ActionFinished(proposal.id, outcome.result, outcome.observation, seconds, output, cut, shown))


async def recover_call(session: SessionContext, proposal: Proposal) -> None:
    """Record that the result of an interrupted call is unknown; it is not made again."""
    await session.record(ActionFinished(proposal.id, ActionResult.UNKNOWN, f"the workbench was stopped{WHILE_RUNNING}"))
