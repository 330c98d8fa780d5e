"""The port `Model` over HTTP: a llama.cpp server, or any other that speaks OpenAI's chat completions."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from http import HTTPStatus

from agent_workbench.adapters.llama_cpp.endpoint import Endpoint, StreamedReply
from agent_workbench.adapters.llama_cpp.gbnf import Thinking, with_thought
from agent_workbench.adapters.llama_cpp.introduction import Introduction, introduce
from agent_workbench.adapters.llama_cpp.patience import OnStatus, Patience
from agent_workbench.adapters.llama_cpp.token_counts import Token, TokenCounts
from agent_workbench.adapters.llama_cpp.wire import AnswerReader
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.model import AnswerEnd, AnswerItem, ModelFacts, ModelRequest, Purpose

_ROUTE = "/v1/chat/completions"
READY_SECONDS = 600.0


def say_nothing(_: str) -> None:
    """Drop a line on how the server is doing."""


class LlamaCppModel:
    """The server at `url`; the API key is sent and never shown.

    `model_name` picks a model where a server has several. `on_status` gets a line on what is waited for. A server may
    take `ready_seconds` to load its model.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        model_name: str = "",
        on_status: OnStatus = say_nothing,
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        self._endpoint = Endpoint(url, api_key)
        self._model_name = model_name
        self._on_status = on_status
        self._ready_seconds = ready_seconds
        self._counts = TokenCounts(self._endpoint)
        self._known: Introduction | None = None

    async def observe(self, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
        deadline = asyncio.get_running_loop().time() + self._ready_seconds
        self._known = await introduce(self._endpoint, self._model_name, self._on_status, deadline)
        return self._known.facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        """Stream an answer. Whoever stops early has to close the iterator (`contextlib.aclosing`), to free the server.

        Raises `ModelUnavailable` (with what had come), `ModelRefused`, `ContextOverflow`.
        """
        if self._known is None:
            await self.observe()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.answer_seconds
        patience = Patience(self._endpoint.address, deadline, self._on_status)
        body = self._body(request)
        while True:
            async with self._endpoint.stream("POST", _ROUTE, body, deadline) as reply:
                if reply.status == HTTPStatus.OK:
                    async with contextlib.aclosing(self._read(reply, request)) as items:
                        async for item in items:
                            yield self._signed(item)
                    return
                fault = self._endpoint.fault(await reply.rest())
            await patience.pause(fault, reply.retry_after_seconds)

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        if self._known is None:
            await self.observe()
        if self._known is None or not self._known.facts.counts_tokens:
            return (0,) * len(texts)
        return await self._counts.of(texts)

    async def tokens_of(self, text: str) -> tuple[Token, ...]:
        """Return the tokens of a text, none where the server does not tell; raise `ModelError`."""
        if self._known is None:
            await self.observe()
        if self._known is None or not (self._known.facts.counts_tokens and self._known.facts.takes_grammar):
            return ()
        return await self._counts.tokens_of(text)

    async def close(self) -> None:
        await self._endpoint.close()

    def _signed(self, item: AnswerItem) -> AnswerItem:
        if not isinstance(item, AnswerEnd) or self._known is None:
            return item
        return replace(item, endpoint=self._known.facts.endpoint, model=self._known.facts.model)

    async def _read(self, reply: StreamedReply, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        reader = AnswerReader(
            self._endpoint.address,
            self._most_tokens(request),
            secret=self._endpoint.secret,
            strip_newlines=self._thinking is not Thinking.NONE,
        )
        if reply.is_json:
            for item in reader.whole((await reply.rest()).json or {}):
                yield item
        while not reader.done:
            try:
                data = await reply.next()
            except ModelUnavailable as lost:
                if reader.finished:
                    break
                raise ModelUnavailable(str(lost), advice=lost.advice, partial=reader.partial) from lost
            if not data:
                break
            for item in reader.feed(data):
                yield item
        for item in reader.end():
            yield item

    @property
    def _thinking(self) -> Thinking:
        return self._known.thinking if self._known else Thinking.NONE

    def _most_tokens(self, request: ModelRequest) -> int:
        """Return how many tokens to ask for: a thought may be as long as the answer."""
        return request.answer_tokens * (1 if self._thinking is Thinking.NONE else 2)

    def _body(self, request: ModelRequest) -> dict[str, object]:
        body: dict[str, object] = {
            "messages": [{"role": message.role.value, "content": message.text} for message in request.messages],
            "max_tokens": self._most_tokens(request),
            "stream": True,
            "seed": request.seed,
            "stream_options": {"include_usage": True},
        }
        known = self._known
        if known and known.model_name:
            body["model"] = known.model_name
        if known and known.facts.takes_grammar:
            body |= {"cache_prompt": True, "return_progress": True}
            if request.grammar:
                body["grammar"] = with_thought(request.grammar, known.thinking)
        return body
