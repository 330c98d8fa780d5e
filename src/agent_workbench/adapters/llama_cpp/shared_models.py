"""Model servers shared by the sessions of a process: one for each model file, used in turn."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel
from agent_workbench.adapters.llama_cpp.token_counts import Token
from agent_workbench.adapters.llama_cpp.turns import OnStatus, ServerTurns
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.task_estimates import Complexity

BUSY = "the model is answering another session; this one is next"


class SharedModels:
    """Shared models with a server of ours, each closed by its last holder, and the turns at other servers."""

    def __init__(self) -> None:
        self._held: dict[Hashable, _HeldModel] = {}
        self._turns: dict[str, ServerTurns] = {}

    def turns(self, url: str) -> ServerTurns:
        """Return the turns at a server that is not ours."""
        return self._turns.setdefault(url, ServerTurns())

    def take(self, key: Hashable, make: Callable[[OnStatus], EmbeddedModel], on_status: OnStatus) -> "SharedModel":
        """Return the model of `key`; `make` creates it for the first holder.

        `on_status` gets status lines while the holder's own requests wait.
        """
        if key not in self._held:
            self._held[key] = _HeldModel(make)
        held = self._held[key]
        held.holders += 1
        return SharedModel(held, on_status, lambda: self._give_back(key, held))

    async def _give_back(self, key: Hashable, held: "_HeldModel") -> None:
        held.holders -= 1
        if not held.holders:
            if self._held.get(key) is held:
                del self._held[key]
            await held.model.close()


class _HeldModel:
    """A shared model: its number of holders, its status listeners, and the lock for turns."""

    def __init__(self, make: Callable[[OnStatus], EmbeddedModel]) -> None:
        self.model = make(self._say)
        self.holders = 0
        self.turn = asyncio.Lock()
        self.listeners: list[OnStatus] = []

    def _say(self, line: str) -> None:
        for listener in tuple(self.listeners):
            listener(line)


class SharedModel:
    """The port `Model` for one holder of a shared server."""

    def __init__(self, held: _HeldModel, on_status: OnStatus, give_back: Callable[[], Awaitable[None]]) -> None:
        self._held = held
        self._on_status = on_status
        self._give_back = give_back
        self._closed = False

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        with self._listening():
            return await self._held.model.observe(purpose)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        async with self._turn(), contextlib.aclosing(self._held.model.answer(request)) as items:
            async for item in items:
                yield item

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        with self._listening():
            return await self._held.model.count_tokens(texts, purpose)

    async def tokens_of(self, text: str) -> tuple[Token, ...]:
        """Return the tokens of a text, empty if the server does not list them; raise `ModelError`."""
        with self._listening():
            return await self._held.model.tokens_of(text)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._give_back()

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for the turn: the server has one context, and alternating prompts would be read from their start."""
        if self._held.turn.locked():
            self._on_status(BUSY)
        async with self._held.turn:
            with self._listening():
                yield

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        self._held.listeners.append(self._on_status)
        try:
            yield
        finally:
            self._held.listeners.remove(self._on_status)
