"""Values that tell about workers: their log lines, their state, a report of one queue, and their registration."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

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


BEAT_SECONDS = 30.0
"""Time between two heartbeats of a worker."""
OFFLINE_SECONDS = 90.0
"""Time without a heartbeat after which a worker counts as offline."""

Amount = Annotated[float, Meta(ge=0.0, le=1e9)]
"""Amount that another machine told; what is out of bounds is refused when it is read."""
Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class WorkerPresence(StrEnum):
    """State of a registered worker. A draining one finishes what it has and takes nothing new."""

    ONLINE = "online"
    DRAINING = "draining"
    OFFLINE = "offline"


class Gpu(Struct, frozen=True):
    """Graphics processor with its memory in GiB."""

    name: str
    vram_total_gb: Amount = 0.0
    vram_free_gb: Amount = 0.0


class ServedModel(Struct, frozen=True):
    """Model that answers at a worker, with its measured speed in tokens per second (0: not measured)."""

    name: str
    reading: Amount = 0.0
    writing: Amount = 0.0


class MachineResources(Struct, frozen=True):
    """Resources of a machine: load averages of 1, 5 and 15 minutes, cores, memory in GiB, and GPUs.

    `cores_available` are those that the load leaves. Limits of a container count.
    """

    load: tuple[Amount, Amount, Amount] = (0.0, 0.0, 0.0)
    cores: Count = 0
    cores_available: Amount = 0.0
    memory_total_gb: Amount = 0.0
    memory_available_gb: Amount = 0.0
    gpus: tuple[Gpu, ...] = ()

    @property
    def largest_gpu(self) -> float:
        """Memory of the largest GPU, 0 without one."""
        return max((each.vram_total_gb for each in self.gpus), default=0.0)

    @property
    def freest_gpu(self) -> float:
        """Largest free memory of one GPU, 0 without one."""
        return max((each.vram_free_gb for each in self.gpus), default=0.0)


class WorkerRecord(Struct, frozen=True):
    """A registered worker, as its last heartbeat described it; times are UTC in ISO 8601 by the database's clock.

    `pid` and `host` help a person to find the process. `jobs` are the tasks that it has, of at most `most_jobs`.
    """

    name: str
    since: str
    last_beat: str
    tags: tuple[str, ...] = ()
    draining: bool = False
    jobs: Count = 0
    most_jobs: Count = 1
    models: tuple[ServedModel, ...] = ()
    resources: MachineResources = field(default_factory=MachineResources)
    host: str = ""
    pid: Count = 0

    def presence(self, now: str) -> WorkerPresence:
        """Return the worker's state at a time of the same clock."""
        if seconds_between(self.last_beat, now) > OFFLINE_SECONDS:
            return WorkerPresence.OFFLINE
        return WorkerPresence.DRAINING if self.draining else WorkerPresence.ONLINE

    @property
    def capacity(self) -> float:
        """Share of the worker that is free, 0 to 1: the smaller one of its free jobs and of its cores without load.

        Where the cores are not known, the jobs alone count.
        """
        jobs = max(0, self.most_jobs - self.jobs) / self.most_jobs if self.most_jobs else 0.0
        cores = self.resources.cores_available / self.resources.cores if self.resources.cores else 1.0
        return min(jobs, cores, 1.0)

    def model(self, name: str) -> ServedModel | None:
        """Return a model that answers here, by its name in any case."""
        wanted = name.casefold()
        return next((each for each in self.models if each.name.casefold() == wanted), None)


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two times in ISO 8601; infinity if one is no time."""
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return float("inf")
