"""Scripted model: a real server that a grammar holds to prepared answers, with real streaming, counts and cache."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.gbnf import sentence_grammar, tokens_grammar
from agent_workbench.adapters.llama_cpp.token_counts import Token
from agent_workbench.core.errors import ModelRefused
from agent_workbench.core.model import AnswerItem, Message, ModelFacts, ModelRequest, Purpose, Role, TextDelta
from agent_workbench.core.ports.model import Model
from agent_workbench.core.task_estimates import Complexity

# Start of the observation after a rejected proposal.
REJECTION = "The user rejected"
# Start of every reflexion.
REFLEXION = "Reflexion:"
# Room for a vocabulary that spells a text byte by byte.
_SPARE_TOKENS = 64


@runtime_checkable
class TokenizingModel(Protocol):
    """A model whose server lists the tokens of a text."""

    async def tokens_of(self, text: str) -> tuple[Token, ...]:
        """Return the text's tokens, empty if the server does not list them."""


class ScriptedModel:
    """The port `Model` that has `inner` say prepared texts: for each subject (a task's id) those of `scripts[subject]`.

    A rejected answer is repeated, or replaced by `scripts["<subject>:<number>"]`, numbers from 0. The last text is
    repeated when there are no more, and in place of a reflexion that no longer fits a step. Other purposes than a step
    have `scripts["<subject>:<purpose>"]`. Without a script `inner` answers freely.

    The grammar names the tokens that the server itself would read the text as, so that it finds its answer in its cache
    with the next prompt. If the server does not take tokens, the grammar holds the text.
    `tokens_per_second` slows the stream down for a viewer; 0 does not.
    """

    def __init__(self, inner: Model, scripts: Mapping[str, Sequence[str]], *, tokens_per_second: float = 0.0) -> None:
        self._inner = inner
        self._scripts = scripts
        self._pause_seconds = 1 / tokens_per_second if tokens_per_second > 0 else 0.0
        self._takes_tokens = True

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return replace(await self._inner.observe(purpose, complexity), scripted=True)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        text = self._text(request)
        exact = await self._exact(request, text) if text is not None else None
        begun = False
        if exact is not None:
            try:
                async with contextlib.aclosing(self._paced(exact)) as items:
                    async for item in items:
                        begun = True
                        yield item
                return
            except ModelRefused:
                if begun:
                    raise
                self._takes_tokens = False
        async with contextlib.aclosing(self._paced(request if text is None else _saying(request, text))) as items:
            async for item in items:
                yield item

    async def _exact(self, request: ModelRequest, text: str) -> ModelRequest | None:
        """Return the request held to the tokens of `text`, None if the server does not list or take tokens."""
        if not self._takes_tokens or not isinstance(self._inner, TokenizingModel):
            return None
        tokens = await self._inner.tokens_of(text)
        return replace(_saying(request, text), grammar=tokens_grammar(tokens)) if tokens else None

    async def _paced(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
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
        """Return the prepared answer, None if there is no script."""
        position = self._position(request)
        step = request.purpose is Purpose.EXECUTOR
        script = self._scripts.get(request.subject if step else f"{request.subject}:{request.purpose}")
        if not script:
            return None
        otherwise = self._scripts.get(f"{request.subject}:{position}") if step and _was_rejected(request) else None
        text = otherwise[0] if otherwise else script[min(position, len(script) - 1)]
        return script[-1] if step and text.startswith(REFLEXION) else text

    def _position(self, request: ModelRequest) -> int:
        """Return the number of answers that were given and not rejected."""
        if request.answered is not None:
            return request.answered
        shown = sum(message.role is Role.ASSISTANT for message in request.messages)
        return max(0, shown - sum(_is_rejection(message) for message in request.messages))


def _saying(request: ModelRequest, text: str) -> ModelRequest:
    """Return the request with `text` as its only possible answer, and room for all of it."""
    tokens = max(request.answer_tokens, len(text.encode()) + _SPARE_TOKENS)
    return replace(request, grammar=sentence_grammar(text), answer_tokens=tokens)


def _was_rejected(request: ModelRequest) -> bool:
    """Return True if the user rejected the last answer."""
    told = itertools.takewhile(lambda message: message.role is not Role.ASSISTANT, reversed(request.messages))
    return any(_is_rejection(message) for message in told)


def _is_rejection(message: Message) -> bool:
    return message.role is Role.USER and any(line.startswith(REJECTION) for line in message.text.splitlines())
