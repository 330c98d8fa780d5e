"""Commands in a chat: `/skill words` sends a skill with the message, `/consultant words` asks a consultant first."""

import json

from msgspec import Struct

from agent_workbench.core.consult.requests import FILES, OFFERED, ROOT, consultant_named
from agent_workbench.core.custom_prompts import NamedCall
from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import SkillText
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.chat import Chat
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.mentions import mention_of
from agent_workbench.core.tools.arguments import ArgumentFault, read_arguments
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.chat.chat_context import CONSULT, chat_context
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import Draft, Tool


class CallDraft(Struct, frozen=True):
    """A call that the user asked for, before it is proposed."""

    tool: Tool
    draft: Draft


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
