"""Intents in a chat: a message with its mentions, `/skill` and `/consultant` before it, and stops."""

import json

from msgspec import Struct

from agent_workbench.core.consult_requests import FILES, OFFERED, ROOT, consultant_named
from agent_workbench.core.custom_prompts import NamedCall, named_call
from agent_workbench.core.errors import UsageError, error_text
from agent_workbench.core.events import AbortAsked, SkillText, UserSaid
from agent_workbench.core.intents import MOST_SAID_CHARS, StopAction, StopAnswer
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.mentions import mention_of, mentions
from agent_workbench.core.tools.arguments import ArgumentFault, read_arguments
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.chat.chat_context import CONSULT, NO_TASK, TrackedFiles, chat_context
from agent_workbench.engine.proposals import propose_draft
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS, Tool
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
    if chat.gate.waiting is not None:
        return Refused(f"a call of {chat.gate.waiting.tool} waits; decide it first")
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
    if chat.gate.waiting is not None:
        return Refused("it had ended before it was stopped; look at what waits now")
    if chat.due:
        await session.record(AbortAsked(STOPPED))
    begun = chat.gate.begun
    if isinstance(intent, StopAction) and begun is not None and chat.gate.running and begun.id == intent.proposal:
        session.stoppable.stop(intent.proposal)
    return Accepted()


class CallDraft(Struct, frozen=True):
    """A call that the user asked for, before it is proposed."""

    tool: Tool
    draft: Proposal


async def skills_of(session: SessionContext, call: NamedCall | None) -> tuple[SkillText, ...]:
    """Return the skill that a message calls; raise `ConfigError` for an unknown one, naming those there are."""
    return () if call is None or call.name in OFFERED else await session.ports.skills.load([call.name])


async def consultation_of(
    session: SessionContext, chat: Chat, call: NamedCall | None, files: tuple[Chunk, ...]
) -> CallDraft | None:
    """Return the call of a consultant that a message asks for, about the mentioned files.

    Raises `UsageError` if the consultant needs more, or is not among the tools of the chat.
    """
    if call is None or call.name not in OFFERED:
        return None
    spec = by_name(chat.specs).get(CONSULT)
    if spec is None:
        raise UsageError(f"{call.name} cannot be asked here", advice="this chat began without the tool `consult`")
    question = call.words
    for chunk in files:
        question = question.replace(mention_of(chunk.place), "").replace(mention_of(chunk.path), "")
    _check_complete(call.name, len(files), question.strip())
    asked = {"consultant": call.name, "question": question.strip(), "files": ",".join(c.path for c in files)}
    text = json.dumps({name: value for name, value in asked.items() if value})
    try:
        arguments = read_arguments(text, spec)
    except ArgumentFault as fault:
        raise UsageError(f"{call.name}: {fault}") from fault
    tool = await session.tools.tool(CONSULT)
    return CallDraft(tool, await tool.draft(await chat_context(session), arguments, text))


def _check_complete(name: str, files: int, question: str) -> None:
    """Raise `UsageError` for a consultant that lacks files or words; the advice is the line to write."""
    facts = consultant_named(name)
    paths = [each for each in facts.required if each in facts.paths]
    texts = [each for each in facts.required if each not in {ROOT, *facts.paths}]
    if files < len(paths):
        mentioned = " ".join("@FILE" if each == FILES else f"@{each.removesuffix('_path').upper()}" for each in paths)
        raise UsageError(f"/{name} needs {counted_text(len(paths), 'file')}", advice=f"mention: /{name} {mentioned}")
    if texts and not question:
        raise UsageError(f"/{name} needs words", advice=f"/{name} {texts[0].upper()}")
