"""Finding about the context of a model: its size and who states it, or a measurement where nobody does."""

import asyncio
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.diagnostics import Finding, Health
from agent_workbench.core.errors import ContextOverflow, ModelError
from agent_workbench.core.model import AnswerEnd, Message, ModelFacts, ModelRequest, Role
from agent_workbench.core.ports.model import Model

SMALL_CONTEXT_TOKENS = 8_192
MEASURED_TOKENS = (2_048, 4_096, 8_192)
"""Sizes of the prompts that a server is measured with."""
MEASURE_SECONDS = 60.0
_PART = "context"
_WORDS = "one two three four five six seven eight nine ten "
# A prompt that lacks so little was counted in another way, not cut.
_WHOLE_SHARE = 0.97
_FEW, _MORE = 10, 20


class MeasuredContext(Struct, frozen=True):
    """Tokens of the largest prompt that a server read whole; `cut`: it cut or refused the next larger one."""

    tokens: int = 0
    cut: bool = False


async def context_finding(model: Model, facts: ModelFacts, *, local: bool) -> Finding:
    """Return the finding; the model is measured if nobody states its context and it is a `local` one."""
    if facts.context_tokens:
        return _stated(facts)
    measured = await measure_context(model) if local else MeasuredContext()
    if not measured.tokens:
        seen = "the server does not say how large its context is, and may cut longer prompts without a word"
        return Finding(_PART, Health.WARNING, seen, "set model.context_tokens to its size")
    if not measured.cut:
        seen = f"at least {measured.tokens} tokens, measured; the server does not say how many more"
        slow = f"more took longer than {MEASURE_SECONDS:g} s to try; set model.context_tokens to its size"
        enough = measured.tokens >= MEASURED_TOKENS[-1] * _WHOLE_SHARE
        return Finding(_PART, Health.GOOD, seen) if enough else Finding(_PART, Health.WARNING, seen, slow)
    seen = f"about {measured.tokens} tokens, measured: a longer prompt is not read whole"
    advice = f"serve the model with a larger context, or set model.context_tokens: {measured.tokens}"
    return Finding(_PART, Health.WARNING, seen, advice)


def _stated(facts: ModelFacts) -> Finding:
    source = f" ({facts.context_source})" if facts.context_source else ""
    seen = f"{facts.context_tokens} tokens for one conversation{source}"
    if facts.context_tokens >= SMALL_CONTEXT_TOKENS:
        return Finding(_PART, Health.GOOD, seen)
    how = "model.context_tokens, or fewer slots on your server"
    if facts.build.startswith("Ollama"):
        how = "start it with OLLAMA_CONTEXT_LENGTH=16384"
    elif facts.build.startswith("LM Studio"):
        how = "load the model with a larger context length"
    return Finding(_PART, Health.WARNING, seen, f"{SMALL_CONTEXT_TOKENS} or more is comfortable: {how}")


async def measure_context(model: Model, seconds: float = MEASURE_SECONDS) -> MeasuredContext:
    """Return what the server reads of prompts of known sizes, as far as `seconds` allow.

    A larger prompt that it refuses for whatever reason is one that it cannot read.
    """
    found = MeasuredContext()
    try:
        async with asyncio.timeout(seconds):
            few, more = await _read(model, _FEW), await _read(model, _MORE)
            each = (more - few) / (_MORE - _FEW)
            for size in MEASURED_TOKENS if each > 0 else ():
                repeated = _FEW + round((size - few) / each)
                told = await _read(model, repeated)
                if told < size * _WHOLE_SHARE:
                    return MeasuredContext(max(told, found.tokens), cut=True)
                found = MeasuredContext(told)
    except TimeoutError:
        return found
    except ContextOverflow as full:
        return MeasuredContext(max(full.context_tokens, found.tokens), cut=True)
    except ModelError:
        return replace(found, cut=found.tokens > 0)
    return found


async def _read(model: Model, repeated: int) -> int:
    """Return how many tokens the server read of a prompt, 0 if it does not say.

    No two prompts begin alike: some servers leave out what they have in their cache.
    """
    request = ModelRequest((Message(Role.USER, f"{repeated} {_WORDS * repeated}"),), answer_tokens=1)
    async with aclosing(model.answer(request)) as items:
        async for item in items:
            if isinstance(item, AnswerEnd):
                return item.figures.prompt_tokens
    return 0
