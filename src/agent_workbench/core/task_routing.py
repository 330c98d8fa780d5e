"""Routing of tasks: which worker gets a task, with the reasons, or why none does. Pure functions of their arguments."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.workers import WorkerPresence, WorkerRecord

CAPABILITY, LOAD, SPEED = 0.3, 0.5, 0.2
"""Weights of the parts of a score."""
MEMORY_TOLERANCE = 1.03
"""A card that is sold with 24 GB tells 23.99 GiB."""
MOST_SCORES = 5
_MOST_NAMED = 8
_TEXT_CHARS = 300
_UNKNOWN_SPEED = 0.5
# A GPU that the task does not need is left to tasks that do.
_UNUSED_GPU = 0.5
# Its roles' endpoints do not answer now: a task that asks a model would wait there.
_NO_MODEL = 0.5


class RoutableTask(Struct, frozen=True):
    """A queued task that is to be routed. The workers that it was `tried` on do not get it again."""

    id: str
    needs: Needs = field(default_factory=Needs)
    tried: tuple[str, ...] = ()


class RoutingOutcome(StrEnum):
    """Outcome of a task's routing.

    `waiting`: workers that fit are busy, offline or draining. `unmet`: no registered worker fits. `exhausted`: each
    one that fits was tried before.
    """

    ASSIGNED = "assigned"
    WAITING = "waiting"
    UNMET = "unmet"
    EXHAUSTED = "exhausted"


class WorkerScore(RecordedValue, frozen=True):
    """Score of a worker for a task, each part from 0 to 1; `total` is their weighted sum."""

    worker: str
    capability: float
    load: float
    speed: float
    total: float


class RoutingDecision(RecordedValue, frozen=True):
    """The worker that a task goes to (empty: none), the scores of the best candidates, and the reasons in words."""

    task: str
    outcome: RoutingOutcome
    worker: str = ""
    scores: tuple[WorkerScore, ...] = ()
    reasons: tuple[str, ...] = ()


def bounded(decision: RoutingDecision) -> RoutingDecision:
    """Return a decision of the database as it is recorded: with few reasons, none of them long."""
    return replace(
        decision,
        task=decision.task[:_TEXT_CHARS],
        worker=decision.worker[:_TEXT_CHARS],
        scores=decision.scores[:MOST_SCORES],
        reasons=tuple(each[:_TEXT_CHARS] for each in decision.reasons[:_MOST_NAMED]),
    )


def route(tasks: Sequence[RoutableTask], workers: Iterable[WorkerRecord], now: str) -> tuple[RoutingDecision, ...]:
    """Return a decision for each task, in the given order: the first ones choose first.

    A worker gets no more tasks than it has free jobs. `now` is a time of the clock of the workers' heartbeats.
    """
    fleet = _Fleet(workers, now)
    found: dict[tuple[Needs, tuple[str, ...]], RoutingDecision] = {}
    decisions = []
    for task in tasks:
        key = (task.needs, task.tried)
        decision = found.get(key) or fleet.decide(task)
        if decision.outcome is not RoutingOutcome.ASSIGNED:
            # Free jobs only become fewer, so the same needs have the same answer from here on.
            found[key] = decision
        decisions.append(RoutingDecision(task.id, decision.outcome, decision.worker, decision.scores, decision.reasons))
    return tuple(decisions)


def fits(needs: Needs, worker: WorkerRecord) -> bool:
    """Return True if a worker meets the needs, whatever it has free or does now."""
    return (
        worker.resources.largest_gpu * MEMORY_TOLERANCE >= (needs.gpu_vram_gb or 0.0)
        and worker.resources.cores >= (needs.cores or 0)
        and all(worker.model(each) is not None for each in needs.models)
        and set(needs.tags) <= set(worker.tags)
    )


def able_workers(needs: Needs, workers: Sequence[WorkerRecord], now: str) -> tuple[WorkerRecord, ...]:
    """Return the workers that could take a task with these needs now."""
    fitting = (each for each in workers if fits(needs, each))
    return tuple(each for each in fitting if not _obstacle(needs, each, each.presence(now), each.jobs))


def unmet_needs(needs: Needs, workers: Sequence[WorkerRecord]) -> str:
    """Return why no worker meets the needs, whatever it has free or does now; empty if one does."""
    if any(fits(needs, each) for each in workers):
        return ""
    if not workers:
        return "no worker is registered"
    models = _names(model.name for each in workers for model in each.models)
    tags = _names(tag for each in workers for tag in each.tags)
    problems = [
        *_too_small(
            needs.gpu_vram_gb,
            workers,
            "GB of GPU memory",
            lambda each: each.resources.largest_gpu,
            slack=MEMORY_TOLERANCE,
        ),
        *_too_small(needs.cores, workers, "cores", lambda each: each.resources.cores),
        *(
            f"no worker has the model {name!r}; there are: {models}"
            for name in needs.models
            if not any(each.model(name) for each in workers)
        ),
        *(
            f"no worker has the tag {tag!r}; there are: {tags}"
            for tag in needs.tags
            if not any(tag in each.tags for each in workers)
        ),
    ]
    return "; ".join(problems) or f"no worker has all of it: {needs_text(needs)}"


def needs_text(needs: Needs) -> str:
    """Return needs in words, empty if there are none."""
    return ", ".join(
        (
            *([f"{needs.gpu_vram_gb:g} GB of GPU memory"] if needs.gpu_vram_gb else []),
            *([f"{needs.cores} cores"] if needs.cores else []),
            *(f"model {each}" for each in needs.models),
            *(f"tag {each}" for each in needs.tags),
        )
    )


class _Fleet:
    """The workers of one routing, with the jobs that it gave them."""

    def __init__(self, workers: Iterable[WorkerRecord], now: str) -> None:
        self._workers = sorted(workers, key=lambda each: each.name)
        self._presence = {each.name: each.presence(now) for each in self._workers}
        self._jobs = {each.name: each.jobs for each in self._workers}
        self._fitting: dict[Needs, list[WorkerRecord]] = {}

    def decide(self, task: RoutableTask) -> RoutingDecision:
        fitting = self._fitting.get(task.needs)
        if fitting is None:
            fitting = self._fitting[task.needs] = [each for each in self._workers if fits(task.needs, each)]
        if not fitting:
            return _none(task, RoutingOutcome.UNMET, unmet_needs(task.needs, self._workers))
        untried = [each for each in fitting if each.name not in task.tried]
        if not untried:
            return _none(task, RoutingOutcome.EXHAUSTED, f"tried on each worker that fits: {_names(task.tried)}")
        free = [each for each in untried if not self._obstacle(task.needs, each)]
        if not free:
            return _none(task, RoutingOutcome.WAITING, *self._obstacles(task.needs, untried))
        fastest = max(_speed(task.needs, each) for each in free)
        scores = sorted((self._score(task.needs, each, fastest) for each in free), key=lambda s: (-s.total, s.worker))
        chosen = scores[0].worker
        self._jobs[chosen] += 1
        reasons = _reasons(task.needs, scores, len(fitting) - len(untried))
        return RoutingDecision(task.id, RoutingOutcome.ASSIGNED, chosen, tuple(scores[:MOST_SCORES]), reasons)

    def _obstacle(self, needs: Needs, worker: WorkerRecord) -> str:
        return _obstacle(needs, worker, self._presence[worker.name], self._jobs[worker.name])

    def _obstacles(self, needs: Needs, workers: Sequence[WorkerRecord]) -> tuple[str, ...]:
        more = len(workers) - _MOST_NAMED
        named = [f"{each.name}: {self._obstacle(needs, each)}" for each in workers[:_MOST_NAMED]]
        return (*named, f"and {more} more workers") if more > 0 else tuple(named)

    def _score(self, needs: Needs, worker: WorkerRecord, fastest: float) -> WorkerScore:
        if needs.gpu_vram_gb:
            capability = min(1.0, needs.gpu_vram_gb / (worker.resources.freest_gpu or 1.0))
        else:
            capability = _UNUSED_GPU if worker.resources.gpus else 1.0
        if not worker.models:
            capability *= _NO_MODEL
        now = replace(worker, jobs=self._jobs[worker.name])
        free = (now.free_jobs + now.free_cores) / 2
        speed = _speed(needs, worker)
        share = speed / fastest if speed and fastest else _UNKNOWN_SPEED
        total = CAPABILITY * capability + LOAD * free + SPEED * share
        return WorkerScore(worker.name, round(capability, 3), round(free, 3), round(share, 3), round(total, 3))


def _obstacle(needs: Needs, worker: WorkerRecord, presence: WorkerPresence, jobs: int) -> str:
    """Return why a worker that fits cannot take a task now, empty if it can."""
    resources = worker.resources
    if presence is not WorkerPresence.ONLINE:
        return str(presence)
    if jobs >= worker.most_jobs:
        return f"busy with {jobs} of {worker.most_jobs} jobs"
    if needs.gpu_vram_gb and resources.freest_gpu * MEMORY_TOLERANCE < needs.gpu_vram_gb:
        return f"{resources.freest_gpu:.3g} GB of GPU memory free"
    if needs.cores and resources.cores_available < needs.cores:
        return f"{resources.cores_available:.3g} cores free"
    return ""


def _speed(needs: Needs, worker: WorkerRecord) -> float:
    """Return the writing speed of the slowest model that is needed, else that of the worker's fastest; 0 if unknown."""
    if needs.models:
        return min(model.writing if (model := worker.model(each)) else 0.0 for each in needs.models)
    return max((each.writing for each in worker.models), default=0.0)


def _none(task: RoutableTask, outcome: RoutingOutcome, *reasons: str) -> RoutingDecision:
    return RoutingDecision(task.id, outcome, reasons=reasons)


def _reasons(needs: Needs, scores: Sequence[WorkerScore], tried: int) -> tuple[str, ...]:
    best = scores[0]
    return (
        f"{best.worker} has {needs_text(needs)}" if needs != Needs() else "the task needs nothing special",
        f"{best.worker} scores {_score_text(best)}",
        *(f"{each.worker} scores {_score_text(each)}" for each in scores[1:2]),
        *([f"{tried} of the workers that fit had it before"] if tried else []),
    )


def _score_text(score: WorkerScore) -> str:
    return f"{score.total:g} (capability {score.capability:g}, free {score.load:g}, speed {score.speed:g})"


def _too_small(
    needed: float | None,
    workers: Sequence[WorkerRecord],
    unit: str,
    amount: Callable[[WorkerRecord], float],
    *,
    slack: float = 1.0,
) -> Iterator[str]:
    largest = max(workers, key=lambda each: (amount(each), each.name))
    if needed and amount(largest) * slack < needed:
        had = f"the largest has {amount(largest):.3g} ({largest.name})" if amount(largest) else "none has any"
        yield f"no worker has {needed:g} {unit}; {had}"


def _names(names: Iterable[str]) -> str:
    known = sorted(set(names))
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return ", ".join(known[:_MOST_NAMED]) + more or "none"
