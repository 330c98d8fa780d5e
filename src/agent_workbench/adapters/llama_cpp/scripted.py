"""The scripted model: a real server that streams, counts and caches, held by a grammar to what was written before."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Mapping, Sequence

from agent_workbench.adapters.llama_cpp.gbnf import sentence_grammar
from agent_workbench.core.model import AnswerItem, Message, ModelFacts, ModelRequest, Purpose, Role, TextDelta
from agent_workbench.core.ports import Model

# What the workbench puts before the reason when a proposal was rejected.
REJECTION = "The user rejected"
# A vocabulary may spell a text byte by byte.
_SPARE_TOKENS = 64


class ScriptedModel:
    """Has `inner` answer for each subject (a task's id) with `scripts[subject]`, one text after the other.

    An answer that the user rejected is given again, and so is the last one when there are no more. What is asked for
    another purpose than a step is answered from `scripts["<subject>:<purpose>"]`. Where there is no script `inner` is
    asked as it is.
    `tokens_per_second` slows the stream down so that one can watch it; 0 does not.
    """

    def __init__(self, inner: Model, scripts: Mapping[str, Sequence[str]], *, tokens_per_second: float = 0.0) -> None:
        self._inner = inner
        self._scripts = scripts
        self._pause_seconds = 1 / tokens_per_second if tokens_per_second > 0 else 0.0

    async def observe(self, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
        return dataclasses.replace(await self._inner.observe(purpose), scripted=True)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        text = self._text(request)
        if text is not None:
            tokens = len(text.encode()) + _SPARE_TOKENS
            request = dataclasses.replace(
                request, grammar=sentence_grammar(text), answer_tokens=max(request.answer_tokens, tokens)
            )
        async with contextlib.aclosing(self._inner.answer(request)) as items:
            async for item in items:
                yield item
                if self._pause_seconds and isinstance(item, TextDelta):
                    await asyncio.sleep(self._pause_seconds)

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self._inner.count_tokens(texts, purpose)

    async def close(self) -> None:
        await self._inner.close()

    def _text(self, request: ModelRequest) -> str | None:
        """Return what to answer, None where no script says."""
        step = request.purpose is Purpose.EXECUTOR
        script = self._scripts.get(request.subject if step else f"{request.subject}:{request.purpose}")
        if not script:
            return None
        given = sum(message.role is Role.ASSISTANT for message in request.messages)
        given -= sum(_is_rejection(message) for message in request.messages)
        return script[min(max(given, 0), len(script) - 1)]


def _is_rejection(message: Message) -> bool:
    return message.role is Role.USER and any(line.startswith(REJECTION) for line in message.text.splitlines())
