"""Rendering of a diff: laid out for a width, its rows made and coloured when they are drawn."""

from collections.abc import Callable, Collection, Coroutine

from msgspec.structs import replace
from rich.cells import cell_len

from agent_workbench.tui.panes.diff_layout import DiffLayout, LayoutOptions
from agent_workbench.tui.panes.diff_rows import DiffColours, DiffRows
from agent_workbench.tui.widgets.colours import Tones
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff_document import DiffDocument

SPLIT_CELLS = 140
"""From this width on, old and new stand side by side unless the user chose otherwise."""


class LineMarks:
    """Marks beside the lines of a diff. This class has none; subclasses show a selection and a cursor."""

    @property
    def visible(self) -> bool:
        """True while lines have marks."""
        return False

    def sign(self, number: int) -> str:
        """Return the sign that says whether a line is selected, empty for none."""
        del number
        return ""

    def covers_cursor(self, number: int) -> bool:
        """Return True if the cursor or the range is on a line."""
        del number
        return False

    def before_heading(self, number: int) -> str:
        """Return the text before the heading of a hunk."""
        del number
        return ""


class DiffRendering:
    """Layout, rows and colours of one diff, and what of it is folded, wrapped and split. Rows count from 0."""

    def __init__(self, tones: Tones) -> None:
        self.shown = DiffDocument()
        self.layout = DiffLayout()
        self.marks = LineMarks()
        self.wraps = True
        self._split: bool | None = None
        self._folded_files: frozenset[int] = frozenset()
        self._unfolded: frozenset[int] = frozenset()
        self._whole = True
        self._colours = DiffColours()
        self._finding_colours = False
        self._rows = DiffRows(
            self.layout,
            self._colours,
            tones,
            text_of=self._heading,
            mark_of=self._sign,
            pointed=self._covers_cursor,
        )

    def _sign(self, number: int) -> str:
        return self.marks.sign(number)

    def _covers_cursor(self, number: int) -> bool:
        return self.marks.covers_cursor(number)

    def fold_only(self, files: frozenset[int] = frozenset()) -> None:
        """Fold these files and no others, and all unchanged lines."""
        self._folded_files, self._unfolded = files, frozenset()

    def toggle_files(self, files: frozenset[int]) -> None:
        """Unfold these files if one of them is folded, else fold them."""
        folded = bool(files & self._folded_files)
        self._folded_files = self._folded_files - files if folded else self._folded_files | files

    def show(self, shown: DiffDocument, *, dark: bool, whole: bool) -> None:
        """Take another diff; `lay_out` must follow. While it is not `whole`, lines are added at its end."""
        self.shown, self._whole = shown, whole
        self._rows.forget(words=True)
        self._colours.begin(shown, dark=dark, whole=whole)

    def recolour(self, *, dark: bool) -> None:
        """Take the colours of another theme."""
        self._colours.begin(replace(self.shown, same=len(self.shown.lines)), dark=dark, whole=self._whole)
        self._rows.forget()

    def lay_out(self, width: int, *, below: bool, special: Collection[str]) -> None:
        """Find the rows of all lines. `below`: rows stand above them; `special`: paths that need a second look."""
        look = LayoutOptions(
            width,
            split=self.is_split(width),
            wraps=self.wraps,
            marks=self.marks.visible,
            below=below,
            whole=self._whole,
            files=self._folded_files,
            folds=self._unfolded,
            special=frozenset(
                number
                for number, head in enumerate(self.shown.files)
                if head.path in special or head.old_path in special
            ),
        )
        self.layout.lay_out(self.shown, look, self._heading)
        self._rows.forget()

    def _heading(self, number: int) -> str:
        """Return the text of a header; the heading of a hunk is cut to the width, its line numbers are not."""
        line, before = self.shown.lines[number], self.marks.before_heading(number)
        text = f"{before}{line.text}"
        room = self.layout.room(line)
        numbers = len(before) + line.text.find(" @@") + len(" @@")
        if line.tone is not Tone.HUNK or cell_len(text) <= room:
            return text
        return f"{text[: max(numbers, room - 1)]}…" if text.isascii() else text[:numbers]

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self.layout.row_count

    def row(self, number: int) -> Row:
        """Return a row."""
        return self._rows.row(number)

    def forget_lines(self, lines: range) -> None:
        """Make the rows of these lines anew when they are drawn next."""
        self._rows.forget_lines(lines)

    @property
    def colours_due(self) -> bool:
        """True while rows were drawn whose colours nobody is finding."""
        return self._colours.wanted and not self._finding_colours

    def find_colours(self, draw_again: Callable[[], object]) -> Coroutine[None, None, None]:
        """Find the colours of rows that were drawn; call `draw_again` after each part."""
        self._finding_colours = True  # at once, for many rows are drawn before a worker begins
        return self._find_colours(draw_again)

    async def _find_colours(self, draw_again: Callable[[], object]) -> None:
        def found() -> None:
            self._rows.forget()
            draw_again()

        try:
            await self._colours.find(found)
        finally:
            self._finding_colours = False

    def first_row(self, line: int) -> int:
        """Return the row in which a line, or the fold that hides it, begins."""
        return self.layout.first_row(self.layout.shown_line(line))

    def row_at_cell(self, line: int, cell: int) -> int:
        """Return the row that has this cell of a line."""
        first = self.first_row(line)
        rows = range(first, first + self.layout.height(self.layout.shown_line(line))) if cell else ()
        for row in rows:
            pieces = self.row(row).pieces
            if any(each.source == line and each.start <= cell < each.start + each.cells for each in pieces):
                return row
        return first

    def line_at(self, row: int) -> int:
        """Return the line that has a row, -1 if there are no lines."""
        return self.layout.line_at(max(0, row))[0] if self.shown.lines else -1

    def changes(self) -> list[int]:
        """Return the lines at which hunks begin, and the headers of files without hunks."""
        files = self.shown.files
        return [
            number
            for number, line in enumerate(self.shown.lines)
            if line.tone is Tone.HUNK or (line.tone is Tone.FILE and line.file >= 0 and not files[line.file].hunks)
        ]

    def is_split(self, width: int) -> bool:
        """Return True if old and new lines are side by side in this width."""
        return width >= SPLIT_CELLS if self._split is None else self._split

    def toggle_split(self, width: int) -> None:
        """Show old and new side by side, or no longer."""
        self._split = not self.is_split(width)

    def toggle_fold(self, line: int) -> None:
        """Fold the file of a line, or unfold what is folded there."""
        folds = self.layout.folds
        if line < 0:
            return
        if line in folds:
            self._unfolded ^= {line}
        elif inside := next((first for first, end in folds.items() if first < line < end), 0):
            self._unfolded -= {inside}
        elif self.shown.lines[line].file >= 0:
            self._folded_files ^= {self.shown.lines[line].file}

    def unfold_file(self, line: int) -> bool:
        """Unfold the file of a line; return whether it was folded. The header is shown in any case."""
        folded = self.shown.lines[line].tone is not Tone.FILE and self.shown.lines[line].file in self._folded_files
        if not folded:
            return False
        self._folded_files -= {self.shown.lines[line].file}
        return True
