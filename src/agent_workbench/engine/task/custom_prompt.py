"""Prompts of the user's own: which can be called, and the words that a call stands for."""

from agent_workbench.core.consult.requests import OFFERED
from agent_workbench.core.custom_prompts import NamedCall, expand, named_call
from agent_workbench.core.errors import UsageError
from agent_workbench.core.intents import MOST_SAID_CHARS
from agent_workbench.core.intents.outcomes import PromptExpanded, PromptsListed
from agent_workbench.core.ports.skills import CustomPrompts
from agent_workbench.core.text.amounts import did_you_mean
from agent_workbench.core.text.sanitizer import sanitize_line

MOST_REMARKS = 2
HOW = "a prompt is a file such as memory/commands/NAME.md; words for the model must not begin with a slash and a name"


async def list_prompts(prompts: CustomPrompts) -> PromptsListed:
    """Return the prompts that can be called; one with a consultant's name cannot."""
    found = await prompts.list()
    usable = tuple(each for each in found if not each.problem and each.name not in OFFERED)
    others = [each for each in found if each not in usable]
    told = [f"{each.file}: {each.problem or f'/{each.name} asks a consultant'}" for each in others[:MOST_REMARKS]]
    more = [f"{len(others) - MOST_REMARKS} more cannot be used"] if len(others) > MOST_REMARKS else []
    return PromptsListed(usable, "; ".join(sanitize_line(each, 200) for each in (*told, *more)))


async def expand_words(prompts: CustomPrompts, words: str, *, in_chat: bool = False) -> PromptExpanded:
    """Return the words that a call stands for; other words are returned as they are.

    Consultants and skills have names too, which a message of a chat may call. Raises `UsageError` for a name that is
    none, `ConfigError` and `TrustError` for a prompt that cannot be used.
    """
    call = named_call(words)
    if call is None:
        return PromptExpanded(words)
    prompt = None if call.name in OFFERED else await prompts.load(call.name)
    if prompt is None:
        if not in_chat:
            raise await _unknown(prompts, call)
        return PromptExpanded(words)
    expanded = expand(prompt.text, call.words)
    if len(expanded) > MOST_SAID_CHARS:
        raise UsageError(
            f"{prompt.file} has {len(expanded):,} characters with your words, at most {MOST_SAID_CHARS:,} can be said",
            advice="put a part of it into a file of the repository and mention that with @",
        )
    return PromptExpanded(expanded, prompt.file)


async def _unknown(prompts: CustomPrompts, call: NamedCall) -> UsageError:
    if call.name in OFFERED:
        how = f'agent chat "/{call.name} …" asks it; the words of a task must not begin so'
        return UsageError(f"/{call.name} asks a consultant, and is no task", advice=how)
    known = [each.name for each in (await list_prompts(prompts)).prompts]
    return UsageError(f"there is no prompt /{call.name}{did_you_mean(call.name, known)}", advice=HOW)
