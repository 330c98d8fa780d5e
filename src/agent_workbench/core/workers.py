"""Values that tell about workers: their log lines, their state, a report of one queue, and their registration."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

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


class RunningTask(Struct, frozen=True):
    """A task that a worker of another machine has."""

    task: str
    worker: str
    session: SessionId = NO_SESSION


class WorkerReport(Struct, frozen=True):
    """A queue, its living workers, and what today cost.

    `queued` tasks are new, `interrupted` ones go on when a worker has a look. `elsewhere` are those that workers of
    other machines have, `backlog` says what the shared database does not have yet, `pause` why nothing new begins.
    `refused` are failed tasks that no session began, each with the reason: no journal tells of them. `shared` is True
    if workers of other machines do tasks of this queue.
    `tokens_today` are those of this queue's sessions, `dollars_today` those of all sessions of the user, both by UTC
    days.
    """

    queue: str
    workers: tuple[WorkerState, ...] = ()
    queued: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    parked: tuple[ParkedTask, ...] = ()
    done: int = 0
    failed: int = 0
    withdrawn: int = 0
    tokens_today: int = 0
    dollars_today: float = 0.0
    elsewhere: tuple[RunningTask, ...] = ()
    backlog: str = ""
    pause: "DispatchPause | None" = None
    refused: tuple[tuple[str, str], ...] = ()
    shared: bool = False


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
    """Model that answers at a worker, with its measured speed in tokens per second (0: not measured).

    A task may name it by its own name or by that of its `endpoint` in the settings.
    """

    name: str
    endpoint: str = ""
    reading: Amount = 0.0
    writing: Amount = 0.0


class MachineResources(Struct, frozen=True):
    """Resources of a machine: load averages of 1, 5 and 15 minutes, cores, memory in GiB, and GPUs.

    `cores_available` are those that the load leaves. Limits of a container count, but not for `physical_cores`: those
    that the process may run on, without their second threads.
    """

    load: tuple[Amount, Amount, Amount] = (0.0, 0.0, 0.0)
    cores: Count = 0
    cores_available: Amount = 0.0
    memory_total_gb: Amount = 0.0
    memory_available_gb: Amount = 0.0
    gpus: tuple[Gpu, ...] = ()
    physical_cores: Count = 0

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

    `instance` is another text for each process: of two with one name the newer has it. `jobs` are the tasks that it
    has, of at most `most_jobs`. `ended`: its process said that it ends.
    """

    name: str
    since: str = ""
    last_beat: str = ""
    instance: str = ""
    tags: tuple[str, ...] = ()
    draining: bool = False
    ended: bool = False
    jobs: Count = 0
    most_jobs: Count = 1
    models: tuple[ServedModel, ...] = ()
    resources: MachineResources = field(default_factory=MachineResources)

    def presence(self, now: str) -> WorkerPresence:
        """Return the worker's state at a time of the same clock."""
        # A heartbeat of the future is a forged one.
        if self.ended or not -OFFLINE_SECONDS <= seconds_between(self.last_beat, now) <= OFFLINE_SECONDS:
            return WorkerPresence.OFFLINE
        return WorkerPresence.DRAINING if self.draining else WorkerPresence.ONLINE

    @property
    def free_jobs(self) -> float:
        """Share of the jobs that are free, 0 to 1."""
        return max(0, self.most_jobs - self.jobs) / self.most_jobs if self.most_jobs else 0.0

    @property
    def free_cores(self) -> float:
        """Share of the cores that the load leaves, 0 to 1; all of them where the cores are not known."""
        return min(1.0, self.resources.cores_available / self.resources.cores) if self.resources.cores else 1.0

    @property
    def capacity(self) -> float:
        """Share of the machine that is free for another task: that of its cores, 0 if no job is free."""
        return self.free_cores if self.free_jobs else 0.0

    def model(self, name: str) -> ServedModel | None:
        """Return a model that answers here, by one of its names in any case."""
        wanted = name.casefold()
        named = (each for each in self.models if wanted in (each.name.casefold(), each.endpoint.casefold()))
        return next(named, None)


class DispatchPause(Struct, frozen=True):
    """Pause of dispatch because no worker has capacity; `percent` is the largest that one had, below `least`."""

    since: str
    percent: float = 0.0
    least: float = 0.0


class Fleet(Struct, frozen=True):
    """The registered workers of a queue by name, the time of their clock, and the pause of dispatch if there is one."""

    workers: tuple[WorkerRecord, ...] = ()
    now: str = ""
    pause: DispatchPause | None = None

    def dispatch_pause(self, least: float) -> DispatchPause | None:
        """Return the pause if each online worker has less than `least` percent of capacity, also if none is online.

        A pause that goes on keeps its beginning. 0 percent never pauses.
        """
        online = [each for each in self.workers if each.presence(self.now) is WorkerPresence.ONLINE]
        percent = round(100 * max((each.capacity for each in online), default=0.0), 1)
        if percent >= least:
            return None
        return DispatchPause(self.pause.since if self.pause else self.now, percent, least)

    def with_worker(self, worker: WorkerRecord) -> "Fleet":
        """Return the fleet with a worker as it is now, which beats at this time."""
        own = replace(worker, last_beat=self.now)
        return replace(self, workers=(*(each for each in self.workers if each.name != own.name), own))


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two times in ISO 8601; infinity if one is no time."""
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return float("inf")
