"""Needs, estimates and complexity of tasks: estimates come from the figures of recorded ones."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import median, quantiles

from msgspec import Struct

from agent_workbench.core.recorded_value import RecordedValue

FEW = 3
"""Recorded tasks of the same intent from which on others do not count; an estimate from fewer tasks says so."""


class Intent(StrEnum):
    """Kind of a task's work. `research` changes nothing."""

    INFRA = "infra"
    RESEARCH = "research"
    CODE = "code"


class Needs(RecordedValue, frozen=True):
    """Requirements of a task on a machine: GiB of graphics memory, free cores, models that it serves, and tags."""

    gpu_vram_gb: float | None = None
    cores: int | None = None
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class TaskFigures(Struct, frozen=True):
    """Cost of a recorded task that is done."""

    steps: int
    tokens: int
    minutes: float
    dollars: float
    intent: Intent | None = None


class Spread(RecordedValue, frozen=True):
    """Median of a sample, and its first and third quartile."""

    median: float
    low: float
    high: float


class Estimate(RecordedValue, frozen=True):
    """Estimated cost of a task, from `samples` recorded ones: those of the `intent`, or of any kind (None)."""

    steps: Spread
    tokens: Spread
    minutes: Spread
    dollars: Spread
    samples: int
    intent: Intent | None = None


class Complexity(StrEnum):
    """Complexity of a task, and of a plan: that of its most complex task."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


def estimate(intent: Intent | None, past: Sequence[TaskFigures]) -> Estimate | None:
    """Return the estimate of a task from past ones, None if there are none.

    Those of the same intent count alone if there are at least `FEW`.
    """
    alike = [each for each in past if intent is not None and each.intent is intent]
    counted = alike if len(alike) >= FEW else past
    if not counted:
        return None

    def spread(figure: Callable[[TaskFigures], float]) -> Spread:
        return _spread(sorted(map(figure, counted)))

    return Estimate(
        spread(lambda each: each.steps),
        spread(lambda each: each.tokens),
        spread(lambda each: each.minutes),
        spread(lambda each: each.dollars),
        len(counted),
        intent if counted is alike else None,
    )


def complexity(intent: Intent | None, tasks: int) -> Complexity:
    """Return the complexity of a task in a plan of so many: research and code are complex, else their number counts."""
    if intent in {Intent.RESEARCH, Intent.CODE}:
        return Complexity.COMPLEX
    return Complexity.MEDIUM if tasks >= FEW else Complexity.SIMPLE


def _spread(values: Sequence[float]) -> Spread:
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (*values, *values, *values)
    return Spread(round(median(values), 4), round(low, 4), round(high, 4))
