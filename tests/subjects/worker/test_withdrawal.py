"""A task that is withdrawn while a worker has it is left soon, not at the next renewal of its claim."""

import asyncio

import pytest

from agent_workbench.core.errors import ExitCode, StorageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.task_queue import QueuedTask, TaskClaim
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.workers import WorkerJob
from agent_workbench.subjects.worker.loop_calls import WITHDRAWN, Dispatcher
from tests.contracts.clocks import SetClock
from tests.fakes.stores import MemoryTaskQueue

SESSION = SessionId("20260102T030405-abc234")


class LastingWork:
    """Work that lasts until it is stopped or lost."""

    def __init__(self, claim: TaskClaim) -> None:
        self.claim = claim
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def job(self) -> WorkerJob:
        return WorkerJob(self.claim.task.id, "", SESSION)

    async def run(self) -> SessionEnd:
        return SessionEnd(ExitCode.LOCKED, await self.lost)

    def stop(self, *, now: bool = False) -> None:
        raise AssertionError("nobody stops it")

    def lose(self, why: str = "") -> None:
        self.lost.set_result(why)


async def test_a_withdrawn_task_is_left_also_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.subjects.worker.loop_calls.RENEWAL_LOOK_SECONDS", 0.001)
    queue, looks = MemoryTaskQueue(SetClock()), 0
    await queue.put(QueuedTask("T-1", ""))

    async def withdrew(task: str, session: SessionId) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise StorageError("the database does not answer")
        assert (task, session) == ("T-1", SESSION)
        return looks == 3

    dispatcher = Dispatcher(queue, "w", LastingWork, lease_seconds=1e6, withdrew=withdrew)
    end = await dispatcher.next_end(begun=False)
    assert end == SessionEnd(ExitCode.LOCKED, WITHDRAWN)
    assert looks == 3
