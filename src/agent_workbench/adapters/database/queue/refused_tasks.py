"""Claimed tasks that do not count: each is reported, then ended or passed on to a machine that knows other keys."""

from collections.abc import Awaitable
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import LockedError
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import QueueState, TaskClaim
from agent_workbench.core.queue.result import TaskResult, no_task


class _Refusal(Struct, frozen=True):
    """A claim of a task that may not run, and why; `elsewhere`: it may on a machine that knows other keys."""

    claim: TaskClaim
    reason: str
    elsewhere: bool


class Finish(Protocol):
    """Ends a claim with a result."""

    def __call__(self, claim: TaskClaim, state: QueueState, reason: str, result: TaskResult) -> Awaitable[None]:
        """See `TaskQueue.finish`."""


class PassOn(Protocol):
    """Gives a claim back, so that another worker gets the task."""

    def __call__(self, claim: TaskClaim, reason: str) -> Awaitable[None]:
        """Count an attempt, and give the reason."""


class RefusedTasks:
    """The refused tasks of one process. None ends before `take` has reported it."""

    def __init__(self) -> None:
        self._new: list[_Refusal] = []
        self._reported: list[_Refusal] = []

    def add(self, claim: TaskClaim, problem: str, *, elsewhere: bool) -> None:
        """Note a claimed task that may not run, and why."""
        here = f" for {claim.worker}" if elsewhere else ""
        self._new.append(_Refusal(claim, f"it does not count{here}: {problem}", elsewhere))

    def take(self) -> tuple[tuple[str, str], ...]:
        """Return the ids of those since the last call, each with the reason."""
        found, self._new = self._new, []
        self._reported += found
        return tuple((each.claim.task.id, each.reason) for each in found)

    async def end(self, finish: Finish, pass_on: PassOn) -> None:
        """End the reported ones as failed, or pass them on if they may count elsewhere."""
        while self._reported:
            refusal = self._reported[-1]
            claim, reason = refusal.claim, refusal.reason
            with suppress(LockedError):
                if refusal.elsewhere:
                    await pass_on(claim, reason)
                else:
                    result = no_task(claim.task.id, reason, "", TaskOrigin.DATABASE)
                    await finish(claim, QueueState.FAILED, reason, result)
            self._reported.pop()
