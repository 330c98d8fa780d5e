"""Looks at the forge go on beside the work: at intervals, and when the webhook calls."""

import asyncio
from typing import cast

import pytest

from agent_workbench.api.forge import watch
from agent_workbench.api.forge.rounds import ForgeRounds, RoundOutcome
from agent_workbench.api.forge.watch import ForgeWatch, beside, webhook_deliveries
from agent_workbench.core.errors import ConfigError, ForgeError
from agent_workbench.core.invocation import Invocation
from tests.api.forge.scene import Scene


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
        self.called = asyncio.Event()
        self.notes: list[str] = []
        self.cautions: list[str] = []
        self.sent_again = 0
        self.watch = ForgeWatch(
            cast("ForgeRounds", rounds), poll_seconds, self.called, self.notes.append, self.cautions.append, self.again
        )

    async def again(self) -> None:
        self.sent_again += 1


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LEAST_SECONDS", 0.0)


async def test_a_call_starts_a_look_and_trouble_is_told_once() -> None:
    down = RoundOutcome(problem=ForgeError("the forge is down"))
    rounds = Rounds(down, RoundOutcome(("task-7 is queued",)), down, down, RoundOutcome())
    told = Told(rounds)

    async def work() -> None:
        for _ in range(5):
            await rounds.looked.acquire()
            await asyncio.sleep(0)
            told.called.set()

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


@pytest.mark.parametrize("secret", ["", "short"])
async def test_a_webhook_needs_a_secret(scene: Scene, secret: str) -> None:
    environ = {**scene.repo.invocation.environ, "AGENT_FORGE__WEBHOOK_SECRET_ENV": "HOOK", "HOOK": secret}
    with pytest.raises(ConfigError, match="secret of 16"):
        await webhook_deliveries(Invocation(scene.user.root, environ, {}))


async def test_a_webhook_needs_a_forge(scene: Scene) -> None:
    environ = {name: value for name, value in scene.repo.invocation.environ.items() if "FORGE" not in name}
    with pytest.raises(ConfigError, match="needs a forge"):
        await webhook_deliveries(Invocation(scene.user.root, environ, {}))
