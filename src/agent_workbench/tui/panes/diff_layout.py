"""Layout of a diff: how many rows each line takes, computed without making the rows."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from msgspec import Struct
from rich.cells import cell_len

from agent_workbench.tui.widgets.rows import cut_line
from agent_workbench.views.blocks import Tone
from agent_workbench.views.changed_words import similar_lines
from agent_workbench.views.diff_document import DiffDocument, DiffLine, change_pairs, change_start, context_folds

LEAST_ROOM = 8
SIGN_CELLS = 2
MARK_CELLS = 3
HALF_MARK_CELLS = 2


class LayoutOptions(Struct, frozen=True):
    """Options of a layout: width, side by side or not, wrapped or not, with marks for a selection or not.

    `files` are folded, `folds` (by their first lines) are not; `special` files need a second look. `below`: rows stand
    above the first line. `whole`: no line is added any more, so unchanged lines fold and changed words are marked.
    """

    width: int
    split: bool = False
    wraps: bool = True
    marks: bool = False
    below: bool = False
    whole: bool = False
    files: frozenset[int] = frozenset()
    folds: frozenset[int] = frozenset()
    special: frozenset[int] = frozenset()


class DiffLayout:
    """Rows of each line. `text_of` returns the text of lines that are not code."""

    def __init__(self) -> None:
        self.shown = DiffDocument()
        self.look = LayoutOptions(0)
        self.partner: dict[int, int] = {}
        self.folds: dict[int, int] = {}
        self._uneven: dict[int, tuple[list[int], list[int]]] = {}
        self._heights: list[int] = []
        self._starts: list[int] = [0]

    def lay_out(self, shown: DiffDocument, look: LayoutOptions, text_of: Callable[[int], str]) -> None:
        """Lay the lines out; with the same look and as wide line numbers, only those that changed."""
        grown = look == self.look and not look.whole and shown.digits == self.shown.digits
        start = change_start(shown, shown.same) if grown else 0
        self.shown, self.look = shown, look
        if not start:
            self.partner, self._uneven = {}, {}
        for removed, added in change_pairs(shown, start):
            for old, new in zip(removed, added, strict=False):
                self.partner[old], self.partner[new] = new, old
            if len(removed) != len(added):
                self._uneven.update(dict.fromkeys((*removed, *added), (removed, added)))
        self.folds = dict(context_folds(shown)) if look.whole else {}
        del self._heights[start:]
        del self._starts[start + 1 :]
        self._add_heights(start, text_of)
        rows = accumulate(self._heights[start:], initial=self._starts[start])
        next(rows)
        self._starts += rows

    def pairs_near(self, number: int) -> Iterator[tuple[int, int]]:
        """Yield the removed lines around this one, each with the added line that is most like it."""
        if number in self._uneven:
            removed, added = self._uneven[number]
            old, new = ([self.shown.lines[each].text for each in side] for side in (removed, added))
            yield from ((removed[one], added[other]) for one, other in similar_lines(old, new))
        elif number in self.partner:
            yield min(number, self.partner[number]), max(number, self.partner[number])

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self._starts[-1]

    @property
    def gutter(self) -> int:
        """Cells before the text of a line of code."""
        marks = MARK_CELLS if self.look.marks else 0
        return marks + 2 * (self.shown.digits + 1) + SIGN_CELLS

    @property
    def half(self) -> int:
        """Cells of one side, if there are two."""
        return (self.look.width - 1 - bool(self.look.marks)) // 2

    @property
    def half_gutter(self) -> int:
        """Cells before the text on one side."""
        return (HALF_MARK_CELLS if self.look.marks else 0) + self.shown.digits + 1 + SIGN_CELLS

    def room(self, line: DiffLine) -> int:
        """Return the cells for the text of a line."""
        if line.at < 0:
            return max(LEAST_ROOM, self.look.width - (MARK_CELLS if self.look.marks else 0))
        if self.look.split:
            return max(LEAST_ROOM, self.half - self.half_gutter)
        return max(LEAST_ROOM, self.look.width - self.gutter)

    def has_blank(self, number: int) -> bool:
        """Return True if an empty row precedes this line."""
        above, line = number > 0 or self.look.below, self.shown.lines[number]
        # Folded files one after the other are a list.
        listed = line.file > 0 and {line.file - 1, line.file} <= self.look.files
        return above and not listed and (line.tone is Tone.FILE or number == 0)

    def height(self, number: int) -> int:
        """Return the number of rows of a line; 0 if it is folded or beside another one."""
        return self._heights[number]

    def first_row(self, number: int) -> int:
        """Return the row in which a line, or the fold that hides it, begins."""
        return self._starts[number]

    def line_at(self, row: int) -> tuple[int, int]:
        """Return the line that has this row, and the number of the row within the line."""
        number = bisect_right(self._starts, row) - 1
        return number, row - self._starts[number]

    def shown_line(self, number: int) -> int:
        """Return the line in whose rows this one is shown."""
        if self.look.split and self.shown.lines[number].tone is Tone.ADDED:
            number = self.partner.get(number, number)
        while number > 0 and not self._heights[number]:
            number -= 1
        return number

    def widest(self) -> int:
        """Return the cells of the longest line if none is cut."""
        if self.look.wraps or self.look.split:
            return self.look.width
        return self.gutter + max((cell_len(line.text) for line in self.shown.lines), default=0)

    def _add_heights(self, start: int, text_of: Callable[[int], str]) -> None:
        lines, look = self.shown.lines, self.look
        code_room = self.room(DiffLine("", Tone.PLAIN, at=0))
        hidden_to = 0
        add = self._heights.append
        for number in range(start, len(lines)):
            line = lines[number]
            if number < hidden_to or (line.file in look.files and line.tone is not Tone.FILE):
                add(0)
            elif number in self.folds and number not in look.folds:
                hidden_to = self.folds[number]
                add(1)
            elif line.at < 0:
                text = line.text if line.tone is Tone.DIM else text_of(number)
                add(len(cut_line(text, self.room(line))) + self.has_blank(number))
            elif look.split:
                add(self._paired_rows(number, code_room))
            else:
                add(self._rows(line.text, code_room))

    def _paired_rows(self, number: int, room: int) -> int:
        line = self.shown.lines[number]
        other = self.partner.get(number, -1)
        if other < 0:
            return self._rows(line.text, room)
        if line.tone is Tone.ADDED:
            return 0
        return max(self._rows(line.text, room), self._rows(self.shown.lines[other].text, room))

    def _rows(self, text: str, room: int) -> int:
        if len(text) <= room and text.isascii():
            return 1
        if not self.look.wraps and not self.look.split:
            return 1
        return len(cut_line(text, room))
