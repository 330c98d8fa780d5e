"""Loop of a worker on a clock that only its own pauses move: ticks, skipped ticks, jobs, a full disk."""

import asyncio
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from agent_workbench.core.errors import ExitCode, StorageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.workers import WorkerJob, WorkerLine
from agent_workbench.subjects.worker.loop_calls import EMPTY, TAKEN, Dispatcher, LoopParts, WorkerLoop, sum_up
from agent_workbench.subjects.worker.outage_calls import Outages, Pauses, pause_seconds
from agent_workbench.subjects.worker.parked_task_calls import RefusedFiles, WorkerLog
from agent_workbench.subjects.worker.schedule import parse_schedule
from tests.fakes.stores import MemoryTaskQueue

HALF_HOURS = parse_schedule("*/30 * * * *")
SESSION = SessionId("20260102T030405-abc234")


class MovedClock:
    """`core.ports.machine.Clock` at 03:00 that `sleep` moves, by ten seconds at least."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waiting: list[tuple[float, asyncio.Event]] = []

    def now(self) -> str:
        return (datetime(2026, 1, 2, 3, tzinfo=UTC) + timedelta(seconds=self.seconds)).isoformat()

    def monotonic_seconds(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += max(10.0, seconds)
        for until, event in self.waiting:
            if until <= self.seconds:
                event.set()
        for _ in range(5):
            await asyncio.sleep(0)

    async def until(self, seconds: float) -> None:
        """Wait until the clock is there."""
        event = asyncio.Event()
        self.waiting.append((seconds, event))
        if self.seconds < seconds:
            await event.wait()


class NobodyDecides:
    """`ParkedTasks` in which `decided` tasks go on."""

    def __init__(self, queue: MemoryTaskQueue) -> None:
        self.queue = queue
        self.decided: list[str] = []
        self.count = 0

    async def reject_expired(self) -> None:
        """Reject nothing."""

    async def resume_decided(self, *, thorough: bool) -> int:
        decided, self.decided = self.decided, []
        for task in decided:
            await self.queue.resume(task)
        return len(decided)


class Bench:
    """A loop over a queue in memory, whose tasks last as long as `lasting` says."""

    def __init__(self, *tasks: str, jobs: int = 1, lasting: float = 0.0) -> None:
        self.clock = MovedClock()
        self.queue = MemoryTaskQueue(self.clock)
        self.tasks = tasks
        self.lasting = lasting
        self.lines: list[WorkerLine] = []
        self.began: list[tuple[str, float]] = []
        self.at_once: list[int] = []
        self.pauses = Pauses(self.clock.sleep)
        self.log = WorkerLog(self.lines.append, self.clock, str)
        self.parked = NobodyDecides(self.queue)
        self.dispatcher = Dispatcher(self.queue, "w", lambda claim: TimedWork(self, claim), jobs, lease_seconds=1e9)
        self.bad: list[tuple[str, str]] = []
        self.without_model: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.refusal = ""
        self.refused_until = float("inf")
        self.refused = RefusedFiles(self.take_bad, self.tell, self.log)
        parts = LoopParts(
            self.dispatcher,
            self.parked,  # type: ignore[arg-type]  # a fake of what looks into journals
            Outages(self.log, self.pauses, "w"),
            self.pauses,
            self.log,
            self.clock,
            lambda: self.clock.seconds,
            lambda due: None,
            lambda: None,
            self.refused,
            lambda: self.refusal if self.clock.seconds < self.refused_until else "",
        )
        self.loop = WorkerLoop(parts, UTC)

    def take_bad(self) -> tuple[tuple[str, str], ...]:
        bad, self.bad = tuple(self.bad), []
        return bad

    async def tell(self, name: str, reason: str) -> str:
        self.told.append((name, reason))
        return "hook log failed"

    async def run_until(self, seconds: float, *, schedule: bool = False) -> None:
        """Run the loop until the clock is there."""
        for task in self.tasks:
            await self.queue.put(QueuedTask(task, ""))
        running = asyncio.create_task(self.loop.run(HALF_HOURS if schedule else None))
        there = asyncio.create_task(self.clock.until(seconds))
        await asyncio.wait({there, running}, return_when=asyncio.FIRST_COMPLETED)
        self.pauses.stopping.set()
        await running
        self.dispatcher.stop()
        await self.dispatcher.settle()

    def events(self, name: str) -> list[str]:
        return [each.text for each in self.lines if each.event == name]


class TimedWork(Struct):
    """Work that lasts."""

    bench: Bench
    claim: TaskClaim
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def job(self) -> WorkerJob:
        return WorkerJob(self.claim.task.id, "")

    async def run(self) -> SessionEnd:
        clock = self.bench.clock
        self.bench.began.append((self.claim.task.id, round(clock.seconds / 60)))
        self.bench.at_once.append(len(self.bench.dispatcher.jobs))
        if self.bench.lasting:
            lasting = asyncio.create_task(clock.until(clock.seconds + self.bench.lasting))
            ending = asyncio.create_task(self.stopped.wait())
            await asyncio.wait({lasting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if self.claim.task.id in self.bench.without_model:
            return SessionEnd(ExitCode.MODEL, f"{self.claim.task.id} waits")
        await self.bench.queue.finish(self.claim, QueueState.DONE, "")
        return SessionEnd(ExitCode.DONE, f"{self.claim.task.id} done")

    def stop(self, *, now: bool = False) -> None:
        self.stopped.set()

    def lose(self, why: str = TAKEN) -> None:
        self.stopped.set()


async def test_two_ticks_start_two_runs() -> None:
    bench = Bench("a")
    running = asyncio.create_task(bench.run_until(3700, schedule=True))
    await bench.clock.until(2000)
    await bench.queue.put(QueuedTask("b", ""))
    await running
    assert bench.began == [("a", 30), ("b", 60)]
    assert bench.events("run") == ["the run of 03:30 begins", "the run of 04:00 begins"]
    assert bench.events("skipped") == []


async def test_a_run_that_is_still_going_skips_ticks_and_says_so() -> None:
    bench = Bench("a", "b", lasting=40 * 60)
    await bench.run_until(125 * 60, schedule=True)
    assert bench.began == [("a", 30), ("b", 70)], "one run does all that is queued"
    assert bench.events("skipped") == ["2 runs were skipped: that of 03:30 was still going"]
    assert bench.events("run") == ["the run of 03:30 begins", "the run of 05:00 begins"]


async def test_new_tasks_wait_for_a_free_job() -> None:
    bench = Bench("a", "b", "c", "d", "e", jobs=2, lasting=60)
    await bench.run_until(200)
    assert [task for task, _ in bench.began] == ["a", "b", "c", "d", "e"]
    assert max(bench.at_once) == 2


async def test_a_decided_task_does_not_wait_for_a_free_job() -> None:
    bench = Bench("b", lasting=1000)
    await bench.queue.put(QueuedTask("a", ""))
    claim = await bench.queue.claim("x", 60)
    assert claim is not None
    await bench.queue.renew(claim, 60, SESSION)
    await bench.queue.park(claim, "a diff waits")
    running = asyncio.create_task(bench.run_until(300))
    await bench.clock.until(120)
    bench.parked.decided.append("a")
    await running
    assert bench.began == [("b", 0), ("a", 2)]
    assert bench.at_once == [1, 2]


async def test_a_full_disk_is_waited_for_and_said_once() -> None:
    bench = Bench("a")
    claim, refusals = bench.queue.claim, 5

    async def refusing(worker: str, lease_seconds: float, *, begun: bool = False) -> TaskClaim | None:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise StorageError("no space is left")
        return await claim(worker, lease_seconds, begun=begun)

    bench.queue.claim = refusing  # type: ignore[method-assign]  # a disk that is full for a while
    await bench.run_until(120)
    assert [task for task, _ in bench.began] == ["a"]
    assert bench.events("waits") == ["waiting for the disk: no space is left"]
    assert bench.events("continues") == ["the wait for the disk is over"]


async def test_once_continues_what_was_begun_and_does_one_new_task() -> None:
    bench = Bench()
    for task in ("a", "b", "c"):
        await bench.queue.put(QueuedTask(task, "", priority=task == "a"))
    claim = await bench.queue.claim("x", 60)
    assert claim is not None
    await bench.queue.renew(claim, 60, SESSION)
    bench.clock.seconds += 60
    end = await bench.loop.once()
    assert (end.exit_code, end.reason) == (ExitCode.DONE, "a done; b done")
    assert (await bench.loop.once()).reason == "c done"
    assert await bench.loop.once() == SessionEnd(ExitCode.DONE, EMPTY)


async def test_once_does_a_new_task_although_the_model_of_a_begun_one_is_gone() -> None:
    bench = Bench()
    bench.without_model = {"a"}
    for task in ("a", "b", "c"):
        await bench.queue.put(QueuedTask(task, ""))
    claim = await bench.queue.claim("x", 60)
    assert claim is not None
    await bench.queue.renew(claim, 60, SESSION)
    bench.clock.seconds += 60
    end = await bench.loop.once()
    assert (end.exit_code, end.reason) == (ExitCode.MODEL, "a waits; b done")


def test_the_gravest_end_counts() -> None:
    codes = (ExitCode.DONE, ExitCode.PARKED, ExitCode.FAILED, ExitCode.MODEL)
    ends = [SessionEnd(code, code.name) for code in codes]
    assert [sum_up(ends[:count]).exit_code for count in range(1, 5)] == list(codes)
    assert sum_up(ends[:2]).reason == "DONE; PARKED"


def test_pauses_grow_to_a_limit_and_differ_between_workers() -> None:
    pauses = [pause_seconds(attempt, "w") for attempt in range(30)]
    assert 0.75 <= pauses[0] <= 1.25
    assert all(45 <= each <= 75 for each in pauses[6:])
    assert pause_seconds(3, "w") == pauses[3] != pause_seconds(3, "other")


async def test_a_file_that_is_no_task_is_told_of_once_and_fails_a_worker_that_has_nothing_else() -> None:
    bench = Bench()
    bench.bad = [("a.yaml", "a.yaml:1:7: no YAML")]
    end = await bench.loop.once()
    await bench.refused.settle()
    assert (end.exit_code, end.reason) == (ExitCode.FAILED, "a.yaml is no task: a.yaml:1:7: no YAML")
    assert bench.told == [("a.yaml", "a.yaml:1:7: no YAML")]
    assert (bench.events("refused"), bench.events("hook")) == (["no task: a.yaml:1:7: no YAML"], ["hook log failed"])
    assert (await bench.loop.once()).exit_code is ExitCode.DONE

    bench.bad = [("b.yaml", "empty")]
    await bench.run_until(60)
    assert [name for name, _ in bench.told] == ["a.yaml", "b.yaml"]


async def test_without_capacity_what_was_begun_goes_on_and_new_tasks_begin_once_it_is_back() -> None:
    bench = Bench("b")
    await bench.queue.put(QueuedTask("a", ""))
    claim = await bench.queue.claim("x", 60)
    assert claim is not None
    await bench.queue.renew(claim, 60, SESSION)
    bench.refusal, bench.refused_until = "waiting for capacity", 600
    bench.clock.seconds += 60
    assert (await bench.loop.once()).reason == "a done; nothing new is begun: waiting for capacity"
    await bench.run_until(700)
    assert bench.began == [("a", 1), ("b", 10)]
