"""Immutable sequences with cheap operations: a tuple that grows in constant time, and a joined view of several."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TypeVar, overload

Item = TypeVar("Item")


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
