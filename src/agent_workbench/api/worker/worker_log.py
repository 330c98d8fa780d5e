"""Log of a worker: lines with the time, redacted."""

from collections.abc import Callable

from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.queue.workers import LogLevel, WorkerLine

WriteLine = Callable[[WorkerLine], None]


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
