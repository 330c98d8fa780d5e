"""Values that tell about workers: their log lines, their state, and a report of one queue."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.ids import NO_SESSION, SessionId


class LogLevel(StrEnum):
    """Level of a log line, the least important first."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class WorkerLine(Struct, frozen=True):
    """One line of a worker's log: an event of interest; its text is redacted, and sanitized where it is printed."""

    time: str
    level: LogLevel
    event: str
    text: str
    task: str = ""
    session: SessionId = NO_SESSION


class WorkerJob(Struct, frozen=True):
    """A task that a worker has claimed. `waits_for` is the cause it waits for, empty while it is worked on."""

    task: str
    since: str
    session: SessionId = NO_SESSION
    waits_for: str = ""


class WorkerState(Struct, frozen=True):
    """A living worker as other processes see it. `next_run` is when its schedule is due, empty without one."""

    name: str
    since: str
    jobs: tuple[WorkerJob, ...] = ()
    most_jobs: int = 1
    next_run: str = ""


class ParkedTask(Struct, frozen=True):
    """A task that waits for a person. `item` names the proposal for `agent inbox show`, empty if none waits."""

    task: str
    since: str
    session: SessionId = NO_SESSION
    item: str = ""
    what: str = ""
    decided: bool = False


class WorkerReport(Struct, frozen=True):
    """A queue, its living workers, and what today cost.

    `queued` tasks are new, `interrupted` ones go on when a worker has a look. `tokens_today` are those of this queue's
    sessions, `dollars_today` those of all sessions of the user, both by UTC days.
    """

    queue: str
    workers: tuple[WorkerState, ...] = ()
    queued: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    parked: tuple[ParkedTask, ...] = ()
    done: int = 0
    failed: int = 0
    tokens_today: int = 0
    dollars_today: float = 0.0
