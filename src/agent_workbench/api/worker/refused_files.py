"""Log of a worker, redacted, and files in a queue that are no tasks, which the log and hooks report."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.queue.workers import LogLevel, WorkerLine
from agent_workbench.core.session_request import SessionEnd

WriteLine = Callable[[WorkerLine], None]

Refused = Callable[[], tuple[tuple[str, str], ...]]
TellHooks = Callable[[str, str], Awaitable[str]]
"""Tell the hooks of a file and the reason; return what went wrong."""


class WorkerLog:
    """Makes lines of what happens and hands them to `write`; no secret of the environment is in them."""

    def __init__(self, write: WriteLine, clock: Clock, redacted: Callable[[str], str]) -> None:
        self._write = write
        self._clock = clock
        self._redacted = redacted

    def note(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log an event of interest."""
        self._line(LogLevel.INFO, event, text, task, session)

    def trace(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log what is of interest only to find a fault."""
        self._line(LogLevel.DEBUG, event, text, task, session)

    def caution(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log a trouble that passes, or that the user may want to mend."""
        self._line(LogLevel.WARNING, event, text, task, session)

    def fail(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log what ends a task or the worker."""
        self._line(LogLevel.ERROR, event, text, task, session)

    def _line(self, level: LogLevel, event: str, text: str, task: str, session: SessionId) -> None:
        said = self._redacted(text.removeprefix(f"{task} "))
        self._write(WorkerLine(self._clock.now(), level, event, said, self._redacted(task), session))


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
