"""The timeline of a recording: a line of cells with a glyph where something stands out, and where we are in it."""

from collections import Counter

from agent_workbench.core.history.replay_marks import MarkKind, Marks
from agent_workbench.views.blocks import Tone

# What is rarer and matters more hides what else falls into its cell.
GLYPHS = {
    MarkKind.COMMIT: ("◆", Tone.GOOD),
    MarkKind.FAILURE: ("✗", Tone.BAD),
    MarkKind.WORD: ("“", Tone.ACCENT),
    MarkKind.TASK: ("▸", Tone.STRONG),
    MarkKind.DIFF: ("±", Tone.HUNK),
    MarkKind.DECISION: ("✓", Tone.PLAIN),
}
BEFORE, AFTER, HERE = ("━", Tone.ACCENT), ("─", Tone.RULE), ("█", Tone.STRONG)
EVERYWHERE, CROWDED = 0.5, 1.5
"""From how many marks in each cell on a kind is everywhere, and how much more than that stands out then."""
Cell = tuple[str, Tone]


def view_timeline(marks: Marks, cells: int) -> tuple[Cell | None, ...]:
    """Return the marks of a recording in so many cells, None where nothing stands out. Costs time for each mark.

    Of a kind that is nearly everywhere those cells are marked that have more of it than most.
    """
    line: list[Cell | None] = [None] * cells
    for kind in reversed(GLYPHS):
        crowds = Counter(cell_of(seq, marks.count, cells) for seq in marks.of(kind)) if cells else Counter[int]()
        often = crowds.total() / max(1, cells)
        least = 1.0 if often <= EVERYWHERE else CROWDED * often
        for cell, crowd in crowds.items():
            if crowd >= least:
                line[cell] = GLYPHS[kind]
    return tuple(line)


def place_in(line: tuple[Cell | None, ...], seq: int, count: int) -> list[Cell]:
    """Return the line as it is drawn while event `seq` of `count` is shown. Costs time for each cell."""
    if not line:
        return []
    here = cell_of(seq, count, len(line))
    before = [cell or BEFORE for cell in line[:here]]
    return [*before, HERE, *(cell or AFTER for cell in line[here + 1 :])]


def cell_of(seq: int, count: int, cells: int) -> int:
    """Return in which of the cells an event stands: the first one in the first, the last one in the last."""
    return round(seq * (cells - 1) / (count - 1)) if count > 1 else 0


def seq_at(cell: int, count: int, cells: int) -> int:
    """Return the event that a cell stands for."""
    return round(max(0, min(cell, cells - 1)) * (count - 1) / (cells - 1)) if cells > 1 else 0
