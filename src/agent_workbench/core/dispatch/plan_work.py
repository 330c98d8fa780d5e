"""Port through which front ends dispatch the tasks of the plan, follow them, and take them back."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.dispatch.preparation import Dispatch, TaskRemark
from agent_workbench.core.dispatch.progress import PlanProgress
from agent_workbench.core.ids import TaskId


class Cancelled(Struct, frozen=True):
    """Tasks that were taken back, and why others were not."""

    tasks: tuple[TaskId, ...] = ()
    left: tuple[TaskRemark, ...] = ()


class PlanWork(Protocol):
    """The tasks of the repository's plan in the queue. Every method may raise `PlanError` and `StorageError`."""

    async def progress(self) -> PlanProgress:
        """Return how the tasks stand. What ended in the queue is written to the plan.

        A queue that does not answer is no error: what it said last is returned with the `problem`.
        """

    async def prepare(self, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Return what a dispatch (of the tasks `wanted`, else of all) would queue; nothing is changed."""

    async def dispatch(self, shown: Dispatch, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Queue exactly what was shown by `prepare`, each task once, and return it.

        Raises `PlanError`, with nothing queued, if it would be something else now, and `TrustError` in a process that
        a command of the agent started.
        """

    async def cancel(self, wanted: Sequence[TaskId], reason: str = "") -> Cancelled:
        """Take tasks (none named: all that are left) back from the queue; what runs is stopped.

        Raises `TrustError` in a process that a command of the agent started.
        """

    async def close(self) -> None:
        """Give back what is held, such as connections."""
