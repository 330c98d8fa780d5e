"""A worker on one queue: it claims tasks and does each in a session of its own."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.schedule import Schedule
from agent_workbench.core.session_end import SessionEnd
from agent_workbench.core.worker import WorkerLine

Log = Callable[[WorkerLine], None]


class WorkerOptions(Struct, frozen=True):
    """A worker's queue and mode: `once`, by `schedule`, or (neither) as tasks come. `jobs` None: as in the settings."""

    project: str = ""
    queue: Path | None = None
    once: bool = False
    schedule: Schedule | None = None
    jobs: int | None = None


class WorkerRun:
    """One run of a worker until it is stopped or, with `once`, until it has done a task."""

    def __init__(self, invocation: Invocation, options: WorkerOptions, log: Log) -> None:
        self._invocation = invocation
        self._options = options
        self._log = log

    async def work(self) -> SessionEnd:
        """Work and return the end."""
        raise UsageError("not available yet")

    def stop(self) -> bool:
        """End between two steps, at once if called again; return False if nothing is open."""
        return False
