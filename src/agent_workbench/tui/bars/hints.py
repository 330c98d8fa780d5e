"""Key hints and their positions, for drawing and clicking."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len

SEPARATOR = " │ "


class Hint(Struct, frozen=True):
    """A key hint: the key's name (empty if the label is all), a label, and the action of a click.

    A hint that is `kept` has its place also where others do not fit.
    """

    key: str
    label: str
    action: str
    kept: bool = False

    @property
    def cells(self) -> int:
        """Width of the hint."""
        return cell_len(self.label) + (cell_len(self.key) + 2 if self.key else 0)


class PlacedHint(Struct, frozen=True):
    """A hint at the cells from `start` to before `end`."""

    hint: Hint
    start: int
    end: int


def place_hints(hints: Iterable[Hint], start: int, width: int, gap: int = len(SEPARATOR)) -> list[PlacedHint]:
    """Return the hints side by side from cell `start`: the first ones that fit into `width` cells, and those kept."""
    hints = list(hints)
    placed: list[PlacedHint] = []
    at, full = start, False
    for index, hint in enumerate(hints):
        reserved = sum(gap + each.cells for each in hints[index + 1 :] if each.kept)
        full = full or at + hint.cells + (0 if hint.kept else reserved) > width
        if (hint.kept or not full) and at + hint.cells <= width:
            placed.append(PlacedHint(hint, at, at + hint.cells))
            at += hint.cells + gap
    return placed


def hint_line(hints: Iterable[tuple[str, str]]) -> str:
    """Return keys and their labels as the line of a dialog, written as in the bar."""
    return SEPARATOR.join(f"{label}: {key}" for key, label in hints)


def hint_at(placed: Sequence[PlacedHint], cell: int) -> Hint | None:
    """Return the hint at a cell, None if there is none."""
    return next((each.hint for each in placed if each.start <= cell < each.end), None)
