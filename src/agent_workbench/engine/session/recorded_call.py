"""Call of a source's tool from outside, journaled as in a chat without a person: proposed, decided, made."""

from agent_workbench.core.errors import ToolError, WorkbenchError, error_text
from agent_workbench.core.events import ActionFinished, ActionResult, ActionStarted, ChatStarted
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.tools.arguments import ArgumentFault, read_arguments
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.chat.chat_context import chat_context
from agent_workbench.engine.chat.chat_prompt import VERSION
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import Recover, RunHook, next_move
from agent_workbench.engine.policy import parking_reason, ruling
from agent_workbench.engine.proposals import decide, propose_draft
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS
from agent_workbench.engine.tools.source_tool import SourceTool

KEPT_CHARS = 200_000


async def make_recorded_call(session: SessionContext, spec: ToolSpec, arguments: str) -> SourceResult:
    """Return the answer of a tool; raise `ToolError` for a call that cannot be made, or that the policy does not allow.

    The session becomes a chat with this tool alone. Its journal has the call before it is made, and the answer before
    that is returned. A call that a stop interrupted before is recorded as unknown.
    """
    while isinstance(move := next_move(session.state), Recover):
        await perform(session, move)
    if spec not in session.state.specs:
        await session.record(ChatStarted(VERSION, (spec,)))
    source = next(each for each in session.ports.tool_sources if each.name == spec.source)
    tool = SourceTool(spec, source, session.ports.schemas)
    try:
        draft = await tool.draft(await chat_context(session), read_arguments(arguments, spec), arguments)
        await propose_draft(session, tool, draft)
    except (*REFUSALS, ArgumentFault) as error:
        raise ToolError(error_text(error) if isinstance(error, WorkbenchError) else str(error)) from error
    while isinstance(move := next_move(session.state), RunHook):
        await perform(session, move)
    proposal = session.state.waiting
    if proposal is None:
        raise ToolError("the call holds the value of a secret environment variable", advice="leave it out")
    verdict = ruling(session.state, proposal)
    why = parking_reason(session.state, proposal)
    decided = verdict.verdict if verdict is not None else Verdict.REJECT
    reason = (verdict.reason if verdict is not None else "") or why
    by = verdict.by if verdict is not None else "policy:unattended"
    await decide(session, proposal, decided, by, "" if decided is Verdict.APPROVE else reason)
    if decided is not Verdict.APPROVE:
        raise ToolError(
            f"a {proposal.kind} needs a person: {why}", advice="start a task or a chat, where its gate shows it"
        )
    await session.record(ActionStarted(proposal.id))
    started = session.ports.clock.monotonic_seconds()
    try:
        answer = await source.call(spec.name, proposal.text, lambda _: None)
    except ToolError as error:
        answer = SourceResult(error_text(error), failed=True)
    result = ActionResult.FAILED if answer.failed else ActionResult.OK
    seconds = round(session.ports.clock.monotonic_seconds() - started, 3)
    text = answer.text.encode("utf-8", "replace").decode()
    await session.record(ActionFinished(proposal.id, result, text[:KEPT_CHARS], seconds, cut_bytes=answer.cut_bytes))
    return answer
