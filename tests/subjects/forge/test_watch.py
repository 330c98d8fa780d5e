"""Looks at the forge go on beside the work: at intervals."""

import asyncio
from typing import cast

import pytest

from agent_workbench.core.errors import ForgeError
from agent_workbench.subjects.forge.round_calls import ForgeRounds, ForgeWatch, RoundOutcome, beside


class Rounds:
    """Rounds with given outcomes; the last one is repeated."""

    def __init__(self, *outcomes: RoundOutcome | Exception) -> None:
        self.outcomes = list(outcomes)
        self.looked = asyncio.Semaphore(0)
        self.closed = False

    async def round(self) -> RoundOutcome:
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        self.looked.release()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None:
        self.closed = True


class Told:
    def __init__(self, rounds: Rounds, poll_seconds: float = 3_600) -> None:
        self.notes: list[str] = []
        self.cautions: list[str] = []
        self.sent_again = 0
        self.watch = ForgeWatch(
            cast("ForgeRounds", rounds), poll_seconds, self.notes.append, self.cautions.append, self.again
        )

    async def again(self) -> None:
        self.sent_again += 1


async def test_looks_go_on_and_trouble_is_told_once() -> None:
    down = RoundOutcome(problem=ForgeError("the forge is down"))
    rounds = Rounds(down, RoundOutcome(("task-7 is queued",)), down, down, RoundOutcome())
    told = Told(rounds, poll_seconds=0)

    async def work() -> None:
        for _ in range(5):
            await rounds.looked.acquire()

    await beside(told.watch, work())
    assert told.notes == ["task-7 is queued"]
    assert told.cautions == ["the forge is down"] * 2
    assert told.sent_again == 1, "soon after it is back, and then only now and then"
    assert rounds.closed


async def test_a_defect_of_the_looks_ends_the_work() -> None:
    rounds = Rounds(RuntimeError("a defect"))
    with pytest.raises(RuntimeError, match="a defect"):
        await beside(Told(rounds).watch, asyncio.Event().wait())  # type: ignore[arg-type] # it never ends
    assert rounds.closed


async def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    async def work() -> None:
        raise ForgeError("mine")

    with pytest.raises(ForgeError, match="mine"):
        await beside(Told(Rounds(RoundOutcome())).watch, work())
    await beside(None, asyncio.sleep(0))
