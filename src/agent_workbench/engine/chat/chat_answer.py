"""Reader of an answer in a chat: it becomes the reply, a proposed call, or is sent back with the reason."""

from msgspec import Struct

from agent_workbench.core.errors import error_text
from agent_workbench.core.events import ActionRejected, ChatReplied, TroubleMet
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.chat_form import split_chat_answer
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, grammar_ignored, read_step
from agent_workbench.engine.chat.chat_context import chat_context
from agent_workbench.engine.chat.chat_prompt import most_calls
from agent_workbench.engine.proposals import propose_draft
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS

MOST_MISSES = 3
NO_CALLS_LEFT = "no more calls can be made for this message; write a line `Answer: …` with what you know"
NO_FORM = "after the thought comes a line `Action: <tool>`, or a line `Answer: …` with the answer"


class Reply(Struct, frozen=True):
    """The answer to the user, in Markdown."""

    text: str


def read_chat_answer(text: str, chat: Chat, most: int) -> Reply | StepCall | StepFault:
    """Return the reply or the call in an answer, or exactly why it is neither."""
    form = split_chat_answer(text)
    if form.reply is not None:
        return Reply(form.reply.strip()) if form.reply.strip() else StepFault("the answer is empty")
    if not form.call:
        return StepFault(NO_FORM)
    if chat.calls >= most:
        return StepFault(NO_CALLS_LEFT)
    return read_step(text, by_name(chat.specs))


async def take_answer(session: SessionContext, chat: Chat) -> None:
    """Record the newest answer as the reply, as a proposed call, or as one that was not taken."""
    answer = chat.answer
    if answer is None:
        return
    read = read_chat_answer(answer.text, chat, most_calls(session.state))
    if isinstance(read, Reply):
        await session.record(ChatReplied(answer.step, read.text))
        return
    if ignored := grammar_ignored(session.state, answer, read):
        await session.record(ignored)
    if isinstance(read, StepFault):
        await reject_answer(session, answer.step, read.reason)
        return
    try:
        tool = await session.tools.tool(read.tool.name)
        draft = await tool.draft(await chat_context(session), read.arguments, read.text)
        await propose_draft(session, tool, draft)
    except REFUSALS as refusal:
        await reject_answer(session, answer.step, f"{read.tool.name}: {error_text(refusal)}")


async def reject_answer(session: SessionContext, step: int, reason: str) -> None:
    """Record that an answer was not taken; after `MOST_MISSES` of them in a row the session waits for the user."""
    await session.record(ActionRejected(step, reason))
    await stop_at_misses(session, reason)


async def stop_at_misses(session: SessionContext, reason: str) -> None:
    """Record trouble if the newest answers in a row could not be used."""
    if session.state.main is not None and session.state.main.misses >= MOST_MISSES:
        what = f"the model gave no answer that can be used: {reason}"
        await session.record(TroubleMet("model", what, "try again, or ask in other words"))
