"""Snapshots of a fold over events, so that its value at any earlier event is cheap."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from agent_workbench.core.events import Recorded

Value = TypeVar("Value")
STRIDE = 64


class FoldSnapshots(Generic[Value]):
    """Values of one fold: a new event costs one step, any earlier position at most `STRIDE` steps."""

    def __init__(self, first: Value, step: Callable[[Value, Recorded], Value]) -> None:
        self._first = first
        self._step = step
        self._kept: list[tuple[Recorded, Value]] = []
        self._newest: tuple[int, Recorded | None, Value] = (0, None, first)

    def at(self, events: Sequence[Recorded], count: int | None = None) -> Value:
        """Return the value after the first `count` of `events` (all of them if None).

        If `events` do not continue those of the previous call, the snapshots start anew. Events are compared by
        identity.
        """
        wanted = len(events) if count is None else count
        start, value = self._nearest(events, wanted)
        for number in range(start, wanted):
            value = self._step(value, events[number])
            if number + 1 == (len(self._kept) + 1) * STRIDE:
                self._kept.append((events[number], value))
        if wanted:
            self._newest = (wanted, events[wanted - 1], value)
        return value

    def reach(self, events: Sequence[Recorded], most: int) -> bool:
        """Fold at most `most` events beyond the last snapshot; return True if there are more."""
        wanted = len(self._kept) * STRIDE + most
        self.at(events, min(wanted, len(events)))
        return wanted < len(events)

    def _nearest(self, events: Sequence[Recorded], wanted: int) -> tuple[int, Value]:
        kept = min(wanted // STRIDE, len(self._kept))
        if kept and self._kept[kept - 1][0] is not events[kept * STRIDE - 1]:
            self._kept.clear()
            kept = 0
        count, last, value = self._newest
        if kept * STRIDE < count <= wanted and events[count - 1] is last:
            return count, value
        return (kept * STRIDE, self._kept[kept - 1][1]) if kept else (0, self._first)
