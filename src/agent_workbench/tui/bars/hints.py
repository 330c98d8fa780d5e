"""Key hints and their positions, for drawing and clicking."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len

GAP = 2


class Hint(Struct, frozen=True):
    """A key hint: the key's name, a label, and the action of a click."""

    key: str
    label: str
    action: str


class PlacedHint(Struct, frozen=True):
    """A hint at the cells from `start` to before `end`."""

    hint: Hint
    start: int
    end: int


def place_hints(hints: Iterable[Hint], start: int, width: int, gap: int = GAP) -> list[PlacedHint]:
    """Return the hints side by side from cell `start`, as many as fit into `width` cells."""
    placed: list[PlacedHint] = []
    at = start
    for hint in hints:
        end = at + cell_len(hint.key) + 1 + cell_len(hint.label)
        if end > width:
            break
        placed.append(PlacedHint(hint, at, end))
        at = end + gap
    return placed


def hint_at(placed: Sequence[PlacedHint], cell: int) -> Hint | None:
    """Return the hint at a cell, None if there is none."""
    return next((each.hint for each in placed if each.start <= cell < each.end), None)
