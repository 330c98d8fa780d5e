"""Intents in a chat: a message with the files that it mentions, and stops by the user."""

from agent_workbench.core.custom_prompts import named_call
from agent_workbench.core.errors import error_text
from agent_workbench.core.events import AbortAsked, UserSaid
from agent_workbench.core.intents import MOST_SAID_CHARS, StopAction, StopAnswer
from agent_workbench.core.intents.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.proposals import ProposalStage
from agent_workbench.core.state.chat import Chat
from agent_workbench.core.text.mentions import mentions
from agent_workbench.engine.approval.proposals import propose_draft
from agent_workbench.engine.chat.chat_context import NO_TASK
from agent_workbench.engine.chat.commands import consultation_of, skills_of
from agent_workbench.engine.chat.tracked_files import TrackedFiles
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS
from agent_workbench.engine.task.code_lookup import MentionedCode, read_mentions

STOPPED = "stopped by the user"
REDACTED = "that holds the value of a secret environment variable; the model is told its name instead"
IS_CHAT = "this session is a chat; it changes no files. Start the task in another tab, or with `agent run`"


async def say_in_chat(session: SessionContext, chat: Chat, text: str) -> Outcome:
    """Record a message of the user; the model answers it. Refused while the message before has no reply."""
    if not text:
        return Refused("there is nothing to say in that")
    if len(text) > MOST_SAID_CHARS:
        advice = "put it into a file and mention it with @"
        return Refused(f"that has {len(text)} characters, at most {MOST_SAID_CHARS} can be said at once; {advice}")
    if chat.waiting is not None:
        return Refused(f"a call of {chat.waiting.tool} waits; decide it first")
    if chat.due and session.state.trouble is None:
        return Refused("your last message is being answered; stop that first, or wait")
    found, named = await mentioned_files(session, text), named_call(text)
    try:
        skills = await skills_of(session, named)
        call = await consultation_of(session, chat, named, found.pieces)
    except REFUSALS as refusal:
        return Refused(error_text(refusal))
    await session.record(UserSaid(text, found.pieces, skills))
    if call is not None:
        await propose_draft(session, call.tool, call.draft)
    redacted = (REDACTED,) if session.ports.redacted(text) != text else ()
    return Accepted("; ".join((*redacted, *(f"not sent: {reason}" for reason in found.left_out))))


async def mentioned_files(session: SessionContext, text: str) -> MentionedCode:
    """Return the files that the user mentions: of the checkout, also untracked ones, but none that git ignores."""
    asked = mentions(text)
    if not asked:
        return MentionedCode()
    sources = await session.ports.workspaces.checkout_files()
    context = session.context_of(NO_TASK, TrackedFiles(sources, await sources.list_files()))
    return await read_mentions(context, asked)


async def stop_chat(session: SessionContext, chat: Chat, intent: StopAnswer | StopAction) -> Outcome:
    """End the turn: what the model was saying was cut before this, a running call is stopped."""
    if chat.waiting is not None:
        return Refused("it had ended before it was stopped; look at what waits now")
    if chat.due:
        await session.record(AbortAsked(STOPPED))
    running = chat.proposal if chat.stage is ProposalStage.RUNNING else None
    if isinstance(intent, StopAction) and running is not None and running.id == intent.proposal:
        session.stoppable.stop(intent.proposal)
    return Accepted()
