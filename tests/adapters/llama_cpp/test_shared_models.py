"""Sessions that share a server take turns, hear of their own waiting, and end it when the last goes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel
from agent_workbench.adapters.llama_cpp.shared_models import BUSY, SharedModel, SharedModels
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose, TextDelta
from agent_workbench.core.task_estimates import Complexity


class OneAtATime:
    """Answers with its request's number of words; fails where two are answered at once."""

    def __init__(self, say: OnStatus) -> None:
        self.say = say
        self.answering = self.closed = 0

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        self.say("loads")
        return ModelFacts("m", "e", 1)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        assert not self.answering
        self.answering += 1
        try:
            for word in ("one", "two", "three"):
                await asyncio.sleep(0)
                yield TextDelta(word)
        finally:
            self.answering -= 1

    async def close(self) -> None:
        self.closed += 1


async def words(model: SharedModel, most: int = 3) -> int:
    """Read an answer, or only so many words of it."""
    count = 0
    async with aclosing(model.answer(cast("ModelRequest", None))) as items:
        async for _ in items:
            count += 1
            if count == most:
                break
    return count


async def test_two_sessions_are_answered_in_turn_and_the_last_one_ends_the_server() -> None:
    made: list[OneAtATime] = []

    def make(say: OnStatus) -> EmbeddedModel:
        made.append(OneAtATime(say))
        return cast("EmbeddedModel", made[-1])

    models, said, heard = SharedModels(), list[str](), list[str]()
    first, second = models.take("file", make, said.append), models.take("file", make, heard.append)
    assert list(await asyncio.gather(words(first), words(second), words(first, 1))) == [3, 3, 1]
    assert len(made) == 1
    assert said.count(BUSY) + heard.count(BUSY) == 2
    await second.observe()
    assert (heard[-1], "loads" in said) == ("loads", False)
    await first.close()
    await first.close()
    assert await words(second) == 3
    assert made[0].closed == 0
    await second.close()
    assert made[0].closed == 1
    await models.take("file", make, said.append).close()
    assert len(made) == 2
