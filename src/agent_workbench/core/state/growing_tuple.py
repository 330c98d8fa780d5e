"""Immutable sequences and snapshots of folds, with cheap growth and cheap access to earlier values."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Generic, TypeVar, overload

from agent_workbench.core.events import Recorded

Item = TypeVar("Item")

Value = TypeVar("Value")
STRIDE = 64


class GrowingTuple(Sequence[Item]):
    """Tuple to which an item is added in constant time.

    Tuples that grew from each other share one list; each sees a beginning of it.
    """

    __slots__ = ("_items", "_size")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._size = len(self._items)

    def plus(self, item: Item) -> "GrowingTuple[Item]":
        """Return the tuple with one more item at its end."""
        shared = self._items
        if len(shared) == self._size:
            shared.append(item)
        # Another tuple, perhaps in another thread, may have grown from here first: then copy.
        if shared[self._size] is not item:
            shared = [*islice(shared, self._size), item]
        longer: GrowingTuple[Item] = GrowingTuple()
        longer._items, longer._size = shared, self._size + 1
        return longer

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(at, slice):
            return tuple(self._items[number] for number in range(*at.indices(self._size)))
        if not -self._size <= at < self._size:
            raise IndexError(f"there is no item {at} in a log of {self._size}")
        return self._items[at if at >= 0 else at + self._size]

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._size)

    def __reversed__(self) -> Iterator[Item]:
        return (self._items[at] for at in range(self._size - 1, -1, -1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GrowingTuple) and self._size == other._size and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"


class JoinedSequence(Sequence[Item]):
    """View of several sequences as one, without copies. The parts must not change."""

    __slots__ = ("_ends", "_parts")

    def __init__(self, parts: Iterable[Sequence[Item]]) -> None:
        self._parts = tuple(parts)
        self._ends = tuple(accumulate(len(part) for part in self._parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(at, slice):
            return tuple(self[number] for number in range(*at.indices(len(self))))
        number = at if at >= 0 else at + len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no item {at} in {len(self)}")
        part = bisect_right(self._ends, number)
        return self._parts[part][number - (self._ends[part - 1] if part else 0)]


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
