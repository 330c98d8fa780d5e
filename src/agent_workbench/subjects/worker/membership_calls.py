"""Membership of a worker in the fleet of its queue: heartbeats with its models and their speed, orders, pauses."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import StorageError, WorkbenchError, error_text
from agent_workbench.core.events import ModelAnswered
from agent_workbench.core.ports.machine import Machine
from agent_workbench.core.ports.model import Model
from agent_workbench.core.ports.shared_state import WorkerRegistry
from agent_workbench.core.settings.models import SHORT_FORM
from agent_workbench.core.settings.worker import WorkerSettings
from agent_workbench.core.workers import BEAT_SECONDS, DispatchPause, Fleet, ServedModel, WorkerRecord
from agent_workbench.subjects.worker.outage_calls import Pauses, pause_seconds
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from agent_workbench.subjects.worker.view import pause_text

ANSWER_SECONDS = 5.0
"""Longest wait for what an endpoint tells of itself."""
_MOST_ANSWERS = 20
"""Newest answers of a model that its speed is measured by."""
_LEAST_TOKENS = 16
"""Tokens of a prompt or an answer below which its time says little."""

FIND_SECONDS = 60.0
"""Time between two looks for GPUs and models; both go on beside the heartbeats and delay none."""

END_SECONDS = 2.0
"""Longest wait for what the membership does when the worker ends."""


class WorkerEndpoint(Struct, frozen=True):
    """An endpoint of the worker's roles by its name.

    `model` is that of an endpoint that is not asked, because it is paid or serves a file with its first request; its
    recorded answers have `label`.
    """

    name: str
    label: str = ""
    model: str = ""


class ServedModels:
    """Models of a worker's endpoints.

    `looked_at` returns one for inspection, `past` the recorded answers, the oldest first; both block.
    """

    def __init__(
        self,
        endpoints: Sequence[WorkerEndpoint],
        looked_at: Callable[[str], Model | None],
        close: Callable[[], Awaitable[None]],
        past: Callable[[], Iterable[ModelAnswered]] = tuple,
    ) -> None:
        self._endpoints = endpoints
        self._looked_at = looked_at
        self.close = close
        self._past: Callable[[], Iterable[ModelAnswered]] | None = past
        self._read: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_ANSWERS))
        self._wrote: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_ANSWERS))
        self._found: tuple[tuple[str, str, str], ...] = ()

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """The models that answered when they were last looked for, with their speed."""
        return tuple(
            ServedModel(model, name, _median(self._read[key]), _median(self._wrote[key]))
            for name, label, model in self._found
            for key in ((label, model),)
        )

    def measure(self, answers: Iterable[ModelAnswered]) -> None:
        """Count answers for the speed of their model, in the order in which they were given."""
        for answer in answers:
            figures, key = answer.figures, (answer.endpoint, answer.model)
            new = figures.prompt_tokens - figures.cached_tokens
            if new >= _LEAST_TOKENS and figures.prompt_seconds > 0:
                self._read[key].append(new / figures.prompt_seconds)
            if figures.answer_tokens >= _LEAST_TOKENS and figures.answer_seconds > 0:
                self._wrote[key].append(figures.tokens_per_second)

    async def find(self) -> None:
        """Ask each endpoint for its model; one that does not answer in time has none. The first call reads the past."""
        past, self._past = self._past, None
        if past is not None:
            self.measure(await asyncio.to_thread(past))
        found = await asyncio.gather(*(self._model_of(each) for each in self._endpoints))
        self._found = tuple(each for each in found if each is not None)

    async def _model_of(self, endpoint: WorkerEndpoint) -> tuple[str, str, str] | None:
        """Return the endpoint's name, its label in recorded answers, and its model."""
        if endpoint.model:
            return endpoint.name, endpoint.label, endpoint.model
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                model = await asyncio.to_thread(self._looked_at, endpoint.name)
                facts = await model.observe() if model is not None else None
        except (WorkbenchError, TimeoutError):
            return None
        if facts is None:
            return None
        label = facts.endpoint if endpoint.name == SHORT_FORM else f"{endpoint.name} ({facts.endpoint})"
        return endpoint.name, label, facts.model


def _median(speeds: Sequence[float]) -> float:
    return round(median(speeds), 1) if speeds else 0.0


class MembershipParts(Struct, frozen=True):
    """Parts of a membership. `release` gives up the worker's name on this machine; it blocks."""

    registry: WorkerRegistry
    machine: Machine
    models: ServedModels
    settings: WorkerSettings
    pauses: Pauses
    log: WorkerLog
    release: Callable[[], None]


class Membership:
    """A worker in the registry, with its orders and with what it knows of the others.

    `jobs` returns the number of tasks that are worked on.
    """

    def __init__(self, parts: MembershipParts, worker: WorkerRecord) -> None:
        self._parts = parts
        self._own = worker
        self.jobs: Callable[[], int] = int
        self._fleet: Fleet | None = None
        self._pause: DispatchPause | None = None
        self._refusal = ""
        self._sooner = asyncio.Event()
        self._told = -1
        self._ended = asyncio.Event()

    @property
    def name(self) -> str:
        """The worker's name in the registry."""
        return self._own.name

    @property
    def refusal(self) -> str:
        """Why this worker begins nothing new now, empty if it may."""
        if self._refusal or self._fleet is None:
            return self._refusal
        pause = self._fleet.with_worker(self._now()).dispatch_pause(self._parts.settings.pause_below_percent)
        return "" if pause is None else pause_text(pause)

    def changed(self) -> None:
        """Have a heartbeat soon if the number of jobs is another one than the last told."""
        if self.jobs() != self._told:
            self._sooner.set()

    async def begin(self) -> None:
        """Register the worker and look at the fleet; a database that is away is no error."""
        try:
            await self._beat()
            await self._look()
        except StorageError as error:
            self._parts.log.caution("waits", f"no heartbeat: {error_text(error)}")

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """Keep the membership during the block, or until the worker is to stop; a defect of it is raised at the end."""
        self._ended.clear()
        keeping, finding = (asyncio.create_task(each) for each in (self._run(), self._finds()))
        keeping.add_done_callback(self._tell_defect)
        try:
            yield
        finally:
            self._ended.set()
            self._sooner.set()
            finding.cancel()
            # A request to the database is not cut off; only one that waits for an answer is.
            await asyncio.wait({keeping}, timeout=END_SECONDS)
            keeping.cancel()
            for each in (keeping, finding):
                with suppress(asyncio.CancelledError):
                    await each

    def _tell_defect(self, keeping: "asyncio.Task[None]") -> None:
        if not keeping.cancelled() and (error := keeping.exception()) is not None:
            self._parts.log.fail("lost", f"heartbeats have ended by a defect: {error!r}")

    async def _run(self) -> None:
        """Send heartbeats and look at the fleet until the worker is to stop."""
        async with asyncio.TaskGroup() as group:
            for each in (self._beats(), self._looks()):
                group.create_task(each)

    async def end(self) -> None:
        """Tell the fleet that this worker ends; a database that is away finds out by itself."""
        try:
            await self._parts.registry.end(replace(self._own, jobs=0))
        except StorageError as error:
            self._parts.log.trace("waits", f"the end of this worker could not be told: {error_text(error)}")
        finally:
            await asyncio.to_thread(self._parts.release)
            await self._parts.models.close()

    def answered(self, answer: ModelAnswered) -> None:
        """Count an answer for the speed of its model."""
        self._parts.models.measure((answer,))

    async def _beats(self) -> None:
        """Send heartbeats; while the database is away, less and less often."""
        parts, attempt = self._parts, 0
        while not self._over():
            seconds = BEAT_SECONDS if not attempt else pause_seconds(attempt - 1, self._own.name)
            await parts.pauses.pause(seconds, self._ended if attempt else self._sooner)
            self._sooner.clear()
            if self._over():
                return
            try:
                await self._beat()
            except StorageError as error:
                if not attempt:
                    parts.log.caution("waits", f"no heartbeat: {error_text(error)}")
                attempt += 1
                continue
            if attempt:
                parts.log.note("continues", "heartbeats are recorded again")
                attempt = 0

    async def _looks(self) -> None:
        """Look at the fleet and the load of this machine."""
        parts = self._parts
        while not self._over():
            await parts.pauses.pause(parts.settings.poll_seconds, self._ended)
            if self._over():
                return
            try:
                await self._look()
            except StorageError as error:
                parts.log.trace("waits", f"the other workers are not known: {error_text(error)}")

    async def _finds(self) -> None:
        """Look for GPUs and models."""
        parts = self._parts
        while not self._over():
            await asyncio.gather(asyncio.to_thread(parts.machine.find_gpus), parts.models.find())
            self._sooner.set()
            await parts.pauses.pause(FIND_SECONDS, self._ended)

    def _over(self) -> bool:
        return self._ended.is_set() or self._parts.pauses.stopping.is_set()

    async def _beat(self) -> None:
        await self._measure()
        own = self._now()
        self._told = own.jobs
        self._obey(await self._parts.registry.beat(own))

    async def _look(self) -> None:
        """Look at the fleet; keep the pause for others to see when it begins and when it ends."""
        parts = self._parts
        await self._measure()
        fleet = await parts.registry.fleet()
        registered = next((each for each in fleet.workers if each.name == self._own.name), None)
        if registered is not None:
            self._obey(registered if registered.instance == self._own.instance else None)
        self._fleet = fleet
        own = self._now()
        seen = fleet if self._refusal else fleet.with_worker(own)
        pause = seen.dispatch_pause(parts.settings.pause_below_percent)
        if (pause is None) != (fleet.pause is None):
            await parts.registry.set_pause(pause)
        self._fleet = replace(fleet, pause=pause)
        self._tell(pause if own.free_jobs and not self._refusal else None)

    async def _measure(self) -> None:
        resources = await asyncio.to_thread(self._parts.machine.resources)
        self._own = replace(self._own, resources=resources, models=self._parts.models.models)

    def _now(self) -> WorkerRecord:
        return replace(self._own, jobs=self.jobs())

    def _obey(self, registered: WorkerRecord | None) -> None:
        """Take nothing new while the registry says so."""
        if registered is None:
            refusal = f"a newer process works as {self._own.name}; give each worker its own worker.name"
        else:
            refusal = "it is draining" if registered.draining else ""
        if refusal != self._refusal:
            self._refusal = refusal
            if refusal:
                self._parts.log.caution("drained", f"{self._own.name} takes nothing new: {refusal}")
            else:
                self._parts.log.note("continues", f"{self._own.name} takes tasks again")

    def _tell(self, pause: DispatchPause | None) -> None:
        """Log the beginning and the end of a pause that keeps this worker from tasks."""
        if pause is not None and self._pause is None:
            self._parts.log.caution("paused", pause_text(pause))
        elif pause is None and self._pause is not None:
            self._parts.log.note("continues", "there is capacity again")
        self._pause = pause
