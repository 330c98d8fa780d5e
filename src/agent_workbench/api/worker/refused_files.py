"""Files in a queue that are no tasks: a line in the worker's log, and hooks that are told of them."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_workbench.api.worker.worker_log import WorkerLog
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_end import SessionEnd

Refused = Callable[[], tuple[tuple[str, str], ...]]
TellHooks = Callable[[str, str], Awaitable[str]]
"""Tell the hooks of a file and the reason; return what went wrong."""


class RefusedFiles:
    """Takes from `refused` the files that the queue moved to `failed/`; `tell` runs beside the work."""

    def __init__(self, refused: Refused, tell: TellHooks, log: WorkerLog) -> None:
        self._refused = refused
        self._tell = tell
        self._log = log
        self._telling: set[asyncio.Task[None]] = set()

    def take(self) -> tuple[SessionEnd, ...]:
        """Log the files that were refused since the last call, and return them as ends of tasks."""
        found = self._refused()
        for name, reason in found:
            self._log.caution("refused", f"no task: {reason}", name)
            telling = in_background(self._told(name, reason))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)
        return tuple(SessionEnd(ExitCode.FAILED, f"{name} is no task: {reason}") for name, reason in found)

    async def settle(self) -> None:
        """Wait until the hooks were told; each has a limit of its own."""
        while self._telling:
            await asyncio.wait(self._telling)

    async def _told(self, name: str, reason: str) -> None:
        if trouble := await self._tell(name, reason):
            self._log.caution("hook", trouble, name)
