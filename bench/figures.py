"""A measured figure, and how figures are summed up and shown."""

import time
from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct


class Figure(Struct, frozen=True):
    """One number: what it is of, its value and unit, and the target it has if it has one."""

    name: str
    value: float
    unit: str
    target: str = ""

    def line(self) -> str:
        """Return it as a line of a report."""
        shown = f"{self.value:,.0f}" if self.value >= 1000 or self.value == int(self.value) else f"{self.value:.3g}"
        return f"  {self.name:<58} {shown:>10} {self.unit:<10} {self.target}".rstrip()


def seconds_of(work: Callable[[], object], rounds: int) -> list[float]:
    """Return how long each of `rounds` calls took, after one that is not counted."""
    work()
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return found


def milliseconds(name: str, seconds: Sequence[float], target: str = "") -> Figure:
    """Return the median in milliseconds."""
    return Figure(name, median(seconds) * 1000, "ms", target)


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float], target: str = "") -> Figure:
    """Return how many times the median of `theirs` the median of `ours` is."""
    return Figure(name, median(ours) / median(theirs), "times", target)
