"""A fold over events that can be had at any place: some of its values are kept, so that every place has one near it."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from agent_workbench.core.events import Recorded

Value = TypeVar("Value")
STRIDE = 64


class FoldSnapshots(Generic[Value]):
    """The values of one fold. Going on costs what is new, any place that was passed before at most `STRIDE` events."""

    def __init__(self, first: Value, step: Callable[[Value, Recorded], Value]) -> None:
        self._first = first
        self._step = step
        self._kept: list[tuple[Recorded, Value]] = []
        self._newest: tuple[int, Recorded | None, Value] = (0, None, first)

    def at(self, events: Sequence[Recorded], count: int | None = None) -> Value:
        """Return the value after the first `count` of `events` (all of them when None).

        Events that do not go on from those of the call before begin a new trail; they are told apart by their identity.
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
        """Pass at most `most` events that were not passed yet; return whether there are more of them."""
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
