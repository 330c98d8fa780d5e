"""A diff that is shown: laid out for the room there is, its rows made and coloured as they are drawn."""

from collections.abc import Iterator

from msgspec.structs import replace
from rich.cells import cell_len

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.tui.panes.diff.colours import DiffColours
from agent_workbench.tui.panes.diff.layout import DiffLayout, Look
from agent_workbench.tui.panes.diff.rows import DiffRows
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Piece, Row, entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.diff.shown_diff import DiffReader, ShownDiff, line_in_diff
from agent_workbench.views.gate.diff_pane import DiffView

NOTE_LABEL_CELLS = 2
SPLIT_CELLS = 140
"""From this width on both sides stand beside each other, unless the user wants it otherwise."""


class DiffShowing(RowList):
    """Shows the notes and the diff of a `DiffView`; what is said of each line is for subclasses."""

    def __init__(self) -> None:
        super().__init__(id="diff")
        self._view = DiffView("Diff", "")
        self._reader = DiffReader()
        self._shown = ShownDiff()
        self._wraps = True
        self._split: bool | None = None
        self._files: frozenset[int] = frozenset()
        self._folds: frozenset[int] = frozenset()
        self._layout = DiffLayout()
        self._colours = DiffColours()
        self._drawn = DiffRows(
            self._layout,
            self._colours,
            self._tones,
            text_of=self.head_text,
            mark_of=self.mark_of,
            pointed=self.pointed,
        )
        self._colouring = False

    @property
    def marks(self) -> bool:
        """True while lines are marked as taken or left."""
        return False

    def mark_of(self, number: int) -> str:
        """Return the sign of what is taken of a line."""
        del number
        return ""

    def pointed(self, number: int) -> bool:
        """Return whether the cursor or the range is on a line."""
        del number
        return False

    def head_text(self, number: int) -> str:
        """Return what stands in the header of a file or hunk."""
        return self.fitted(number)

    def fitted(self, number: int, before: str = "") -> str:
        """Return the text of a header behind other words; of a hunk's heading as much as there is room for."""
        line = self._shown.lines[number]
        text = f"{before}{line.text}"
        room = self._layout.room(line)
        numbers = len(before) + line.text.find(" @@") + len(" @@")
        if line.tone is not Tone.HUNK or cell_len(text) <= room:
            return text
        return f"{text[: max(numbers, room - 1)]}…" if text.isascii() else text[:numbers]

    @property
    def follows(self) -> bool:
        """True while text is added at the end."""
        return self._view.grows

    def show(self, view: DiffView) -> None:
        """Show it; what is new starts at its top, what grows is followed."""
        self.show_title(f"3 {view.title}")
        if view == self._view:
            return
        new = view.key != self._view.key
        self._view = view
        if new:
            self._at_end = view.grows
            self._files = self._folds = frozenset()
        self.show_lines(self._reader.read(view.diff, grows=view.grows))
        if new and not view.grows:
            self.scroll_to(x=0, y=0, animate=False)

    def show_lines(self, shown: ShownDiff) -> None:
        """Show these lines below the notes."""
        self._shown = shown
        self._drawn.forget(words=True)
        self._colours.begin(shown, dark=self.app.current_theme.dark, whole=not self._view.grows)
        self.lay_out_again()

    def lay_out(self, width: int) -> None:
        self.rows = list(self._note_rows(width))
        if not self.rows and not self._shown.lines and self._view.empty:
            empty = Entry("", (Block(self._view.empty, Tone.DIM),))
            self.rows += entry_rows(empty, -1, width, 0, expanded=True)
        look = Look(
            width,
            split=self.split_for(width),
            wraps=self._wraps,
            marks=self.marks,
            below=bool(self.rows),
            whole=not self._view.grows,
            files=self._files,
            folds=self._folds,
            special=frozenset(
                number
                for number, head in enumerate(self._shown.files)
                if not {head.path, head.old_path}.isdisjoint(self._view.special)
            ),
        )
        self._layout.lay_out(self._shown, look, self.head_text)
        self._drawn.forget()

    def split_for(self, width: int) -> bool:
        """Return whether the sides stand beside each other in so many cells."""
        return width >= SPLIT_CELLS if self._split is None else self._split

    def notes(self) -> tuple[Block, ...]:
        """Return what is said above the diff."""
        return self._view.notes

    def _note_rows(self, width: int) -> Iterator[Row]:
        if self.notes():
            rows = entry_rows(Entry("", self.notes()), -1, width, NOTE_LABEL_CELLS, expanded=True)
            if not self._view.proposal:  # nobody has to see it in full, and output is laid out many times a second
                yield from rows
                return
            for number, row in enumerate(rows):
                yield replace(row, pieces=(Piece(-1 - number, 0, row.cells, 0, row.cells),))

    @property
    def row_count(self) -> int:
        return len(self.rows) + self._layout.row_count

    def row_at(self, number: int) -> Row:
        if number < len(self.rows):
            return self.rows[number]
        row = self._drawn.row(number - len(self.rows))
        if self._colours.wanted and not self._colouring:
            self._colouring = True
            self.run_worker(self._colour(), group="colours")
        return row

    def widest(self) -> int:
        return max(self._layout.widest(), *(row.cells for row in self.rows), 0)

    async def _colour(self) -> None:
        """Draw what has its colours now; begun when rows are drawn, never more than one at a time."""

        def draw_again() -> None:
            self._drawn.forget()
            self.refresh()

        try:
            await self._colours.find(draw_again)
        finally:
            self._colouring = False

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            same = replace(self._shown, same=len(self._shown.lines))
            self._colours.begin(same, dark=self.app.current_theme.dark, whole=not self._view.grows)
            self._drawn.forget()

    def row_of(self, line: int) -> int:
        """Return the row in which a line of the diff begins."""
        return len(self.rows) + self._layout.first_row(self._layout.shown_line(line))

    def go_to_place(self, place: CodePlace) -> bool:
        """Bring this line of a changed file on screen, unfolded; return whether the diff shows it."""
        line = line_in_diff(self._shown, place)
        if line < 0:
            return False
        if self._shown.lines[line].file in self._files:
            self._files -= {self._shown.lines[line].file}
            self.lay_out_again()
        self.scroll_to(x=0, y=max(0, self.row_of(line) - self.room.height // 3), animate=False)
        return True

    def line_of(self, row: int) -> int:
        """Return the line of the diff that stands in a row, the first one for rows above."""
        return self._layout.line_at(max(0, row - len(self.rows)))[0] if self._shown.lines else -1

    def changes(self) -> list[int]:
        """Return the lines at which a hunk, or a file without any, begins."""
        files = self._shown.files
        return [
            number
            for number, line in enumerate(self._shown.lines)
            if line.tone is Tone.HUNK or (line.tone is Tone.FILE and line.file >= 0 and not files[line.file].hunks)
        ]
