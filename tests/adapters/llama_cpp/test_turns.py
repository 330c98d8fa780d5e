"""Turns at a server: no more at the same time than it has slots, in the order in which they came."""

import asyncio

import pytest

from agent_workbench.adapters.llama_cpp.turns import BUSY, ServerTurns


class Line:
    """Sessions that each hold a turn until they are let go."""

    def __init__(self) -> None:
        self.turns = ServerTurns()
        self.told: list[str] = []
        self.began: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.most = self.now = 0

    async def ask(self, name: str, slots: int) -> None:
        async with self.turns.turn(slots, lambda line: self.told.append(f"{name}: {line}")):
            self.began.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            await self.ends.setdefault(name, asyncio.Event()).wait()
            self.now -= 1

    async def start(self, name: str, slots: int) -> "asyncio.Task[None]":
        task = asyncio.create_task(self.ask(name, slots))
        await asyncio.sleep(0)
        return task

    async def end(self, name: str) -> None:
        self.ends[name].set()
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.mark.parametrize(("slots", "most"), [(1, 1), (2, 2), (0, 5)])
async def test_first_come_first_served(slots: int, most: int) -> None:
    line = Line()
    tasks = [await line.start(name, slots) for name in "abcde"]
    for name in "abcde":
        await line.end(name)
    await asyncio.gather(*tasks)
    assert line.began == list("abcde")
    assert line.most == most
    assert line.told == [f"{name}: {BUSY}" for name in "abcde"[most:]]


async def test_one_that_leaves_the_line_keeps_nobody_back() -> None:
    line = Line()
    first, second, third = [await line.start(name, 1) for name in "abc"]
    second.cancel()
    await asyncio.sleep(0)
    await line.end("a")
    await line.end("c")
    await asyncio.gather(first, third)
    assert line.began == ["a", "c"]


async def test_a_turn_that_comes_with_the_cancellation_goes_to_the_next() -> None:
    line = Line()
    first, second, third = [await line.start(name, 1) for name in "abc"]
    line.ends["a"].set()
    await asyncio.sleep(0)  # the turn is given to the second
    second.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    await line.end("c")
    await asyncio.gather(first, third)
    assert line.began == ["a", "c"]
