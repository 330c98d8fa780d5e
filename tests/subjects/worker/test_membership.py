"""Membership of a worker in a real registry: heartbeats, orders, and the pause, by a clock that only pauses move."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.migrations import migrate, migrations
from agent_workbench.adapters.database.registry import DatabaseRegistry
from agent_workbench.core.errors import DatabaseDownError
from agent_workbench.core.events import ModelAnswered
from agent_workbench.core.model import AnswerFigures, ModelFacts
from agent_workbench.core.settings.worker import WorkerSettings
from agent_workbench.core.workers import (
    DispatchPause,
    Fleet,
    MachineResources,
    ServedModel,
    WorkerLine,
    WorkerPresence,
    WorkerRecord,
)
from agent_workbench.subjects.worker.membership_calls import Membership, MembershipParts, ServedModels
from agent_workbench.subjects.worker.outage_calls import Pauses
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from tests.subjects.worker.test_worker_loop import MovedClock


@pytest.fixture
async def database(postgres_url: str) -> AsyncGenerator[Database]:
    """A database with the schema of the registry."""
    async with Database(postgres_url) as opened:
        await migrate(opened, [each for each in await asyncio.to_thread(migrations) if each.name == "workers"])
        yield opened


class LoadedMachine:
    """A machine of ten cores whose load a test sets; looking for its GPUs may hang."""

    def __init__(self) -> None:
        self.available = 10.0
        self.looks = 0

    def resources(self) -> MachineResources:
        return MachineResources(cores=10, cores_available=self.available)

    def find_gpus(self) -> None:
        self.looks += 1


class AwayRegistry:
    """A registry that is away while `away` says so; times of the beats are kept."""

    def __init__(self, clock: MovedClock) -> None:
        self.clock = clock
        self.away = False
        self.beats: list[float] = []

    async def beat(self, worker: WorkerRecord) -> WorkerRecord:
        self.beats.append(self.clock.seconds)
        self._check()
        return worker

    async def fleet(self) -> Fleet:
        self._check()
        return Fleet(now=self.clock.now())

    async def set_pause(self, pause: DispatchPause | None) -> None:
        self._check()

    async def end(self, worker: WorkerRecord) -> None:
        self._check()

    def _check(self) -> None:
        if self.away:
            raise DatabaseDownError("the database does not answer")


class Bench:
    """A membership with its clock, its machine and its log."""

    def __init__(self, registry: object, name: str = "box") -> None:
        self.clock = MovedClock()
        self.machine = LoadedMachine()
        self.lines: list[WorkerLine] = []
        self.jobs = 0
        self.slept: list[float] = []
        self.pauses = Pauses(self.sleep)
        parts = MembershipParts(
            registry,  # type: ignore[arg-type]  # the real one, or a part of it
            self.machine,
            ServedModels((), lambda _: None, no_end),
            WorkerSettings(),
            self.pauses,
            WorkerLog(self.lines.append, self.clock, str),
            lambda: None,
        )
        self.membership = Membership(parts, WorkerRecord(name, instance=f"{name}-1", most_jobs=2))
        self.membership.jobs = lambda: self.jobs

    async def broken(self) -> Fleet:
        raise ValueError

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.clock.sleep(seconds)

    async def until(self, true: Callable[[], bool]) -> None:
        """Let the membership go on until something is true."""
        async with asyncio.timeout(60), self.membership.kept():
            while not true():  # noqa: ASYNC110 - the membership has no event for it
                await asyncio.sleep(0.001)

    def events(self, name: str) -> list[str]:
        return [each.text for each in self.lines if each.event == name]


async def no_end() -> None:
    """Nothing is to be closed."""


async def registered(database: Database) -> dict[str, WorkerRecord]:
    """The registered workers by name."""
    return {each.name: each for each in (await DatabaseRegistry(database, "repo", "default").fleet()).workers}


def registry(database: Database) -> DatabaseRegistry:
    return DatabaseRegistry(database, "repo", "default")


async def test_dispatch_pauses_over_a_restart_and_resumes_with_the_first_look_that_finds_capacity(
    database: Database,
) -> None:
    bench = Bench(registry(database))
    bench.machine.available = 1.0
    await bench.membership.begin()
    assert bench.membership.refusal == (
        "waiting for capacity: 10 % is the most that a worker has free, 20 % are needed (worker.pause_below_percent)"
    )
    pause = (await registry(database).fleet()).pause
    assert pause is not None

    again = Bench(registry(database))
    again.machine.available = 1.0
    await again.membership.begin()
    assert again.membership.refusal
    assert (await registry(database).fleet()).pause == pause
    again.machine.available = 9.0
    await again.until(lambda: bool(again.events("continues")))
    assert again.membership.refusal == ""
    assert {10.0, 30.0} <= set(again.slept), "looks at the fleet and heartbeats"
    assert (await registry(database).fleet()).pause is None
    assert again.events("paused")
    assert again.events("continues") == ["there is capacity again"]


async def test_another_workers_capacity_ends_the_pause_of_all(database: Database) -> None:
    bench, other = Bench(registry(database)), Bench(registry(database), "other")
    bench.machine.available = 0.0
    await bench.membership.begin()
    assert bench.membership.refusal
    await other.membership.begin()
    assert other.membership.refusal == ""
    await bench.until(lambda: not bench.membership.refusal)


async def test_a_worker_that_drains_takes_nothing_new_until_the_order_is_undone(database: Database) -> None:
    bench = Bench(registry(database))
    await bench.membership.begin()
    assert bench.membership.refusal == ""
    await registry(database).drain("box", draining=True)
    await bench.until(lambda: bench.membership.refusal == "it is draining")
    await registry(database).drain("box", draining=False)
    await bench.until(lambda: bench.membership.refusal == "")
    assert bench.events("continues") == ["box takes tasks again"]
    await bench.membership.end()
    fleet = await registry(database).fleet()
    assert fleet.workers[0].presence(fleet.now) is WorkerPresence.OFFLINE


async def test_the_older_of_two_with_one_name_takes_nothing_new(database: Database) -> None:
    bench = Bench(registry(database))
    await bench.membership.begin()
    await registry(database).beat(WorkerRecord("box", instance="newer"))
    await bench.until(lambda: "a newer process works as box" in bench.membership.refusal)
    assert (await registered(database))["box"].instance == "newer"


async def test_a_driver_that_hangs_delays_no_heartbeat() -> None:
    bench = Bench(away := AwayRegistry(MovedClock()))
    away.clock = bench.clock
    released = threading.Event()
    bench.machine.find_gpus = released.wait  # type: ignore[method-assign,assignment]  # until the test ends
    await bench.membership.begin()
    try:
        await bench.until(lambda: len(away.beats) > 5)
    finally:
        released.set()


async def test_a_defect_is_told_at_once_and_raised_at_the_end() -> None:
    bench = Bench(away := AwayRegistry(MovedClock()))
    away.clock = bench.clock
    away.fleet = bench.broken  # type: ignore[method-assign]
    with pytest.raises(ExceptionGroup):
        await bench.until(lambda: bool(bench.events("lost")))


async def test_a_change_of_the_jobs_is_told_at_once(database: Database) -> None:
    bench = Bench(registry(database))
    await bench.membership.begin()
    bench.jobs = 2
    bench.membership.changed()

    async with asyncio.timeout(20), bench.membership.kept():
        while (await registered(database))["box"].jobs != 2:
            pass
    assert bench.membership.refusal, "without a free job there is no capacity"


async def test_heartbeats_go_less_and_less_often_while_the_database_is_away() -> None:
    bench = Bench(away := AwayRegistry(MovedClock()))
    away.clock = bench.clock
    away.away = True
    await bench.membership.begin()

    def back() -> bool:
        away.away = len(away.beats) <= 8
        return bool(bench.events("continues"))

    await bench.until(back)
    waits = [each for each in bench.slept if each not in {10.0, 30.0, 60.0}]
    assert waits[:6] == sorted(waits[:6])
    assert 40 < max(waits) <= 75
    assert bench.events("waits")[0] == "no heartbeat: the database does not answer"
    assert bench.events("continues") == ["heartbeats are recorded again"]
    away.away = True
    await bench.membership.end()


class AnsweringModel:
    """A model that tells its facts, or hangs."""

    def __init__(self, name: str, *, hangs: bool = False) -> None:
        self.name = name
        self.hangs = hangs

    async def observe(self) -> ModelFacts:
        if self.hangs:
            await asyncio.Event().wait()
        return ModelFacts(f"http://{self.name}", f"{self.name}.gguf", 1)


async def test_models_that_answer_are_told_with_the_median_of_their_recorded_speeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agent_workbench.subjects.worker import membership_calls
    from agent_workbench.subjects.worker.membership_calls import WorkerEndpoint

    monkeypatch.setattr(membership_calls, "ANSWER_SECONDS", 0.05)
    models = {"near": AnsweringModel("near"), "far": AnsweringModel("far", hangs=True)}
    served = ServedModels(
        (WorkerEndpoint("near"), WorkerEndpoint("far"), WorkerEndpoint("model", "own", "own.gguf")),
        models.__getitem__,  # type: ignore[arg-type]  # a part of a model
        no_end,
        lambda: [replace(answer, figures=replace(figures, answer_seconds=10.0))],
    )
    figures = AnswerFigures(1100, 100, 50, 2.0, 1.0)
    answer = ModelAnswered(1, "", figures, "near (http://near)", "near.gguf")
    served.measure([answer, answer])
    served.measure([replace(answer, endpoint="own", model="own.gguf", figures=AnswerFigures(5, 0, 5, 1.0, 1.0))])
    await served.find()
    assert served.models == (
        ServedModel("near.gguf", "near", 500.0, 50.0),
        ServedModel("own.gguf", "model", 0.0, 0.0),
    )
