"""A sequence that never changes and still grows cheaply: each longer one shares the items of the one before."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

Item = TypeVar("Item")


class Log(Sequence[Item]):
    """A tuple in all but this: `plus` takes the same time however long it is.

    Logs that grew from each other share one list, of which each sees its own beginning.
    """

    __slots__ = ("_items", "_size")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._size = len(self._items)

    def plus(self, item: Item) -> "Log[Item]":
        """Return the log with one more item at its end."""
        shared = self._items
        if len(shared) == self._size:
            shared.append(item)
        # Another log, or one in another thread, may have gone on from here: then they part.
        if shared[self._size] is not item:
            shared = [*islice(shared, self._size), item]
        longer: Log[Item] = Log()
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
        return isinstance(other, Log) and self._size == other._size and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"
