"""The diff: what waits at the gate in full, and how much of it was on screen."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.message import Message

from agent_workbench.core.views.diff import DiffView
from agent_workbench.core.views.diff_lines import DiffLine, diff_lines
from agent_workbench.core.views.tones import Block, Entry, Tone
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Row, entry_rows, wrap

SIGNS = {Tone.ADDED: "+", Tone.REMOVED: "-"}
STEP_CELLS = 8
NOTE_LABEL_CELLS = 2


class DiffPane(RowList):
    """Shows a `DiffView`. A line counts as seen when it was drawn from its beginning to its end."""

    BINDINGS = bindings(Scope.DIFF, Scope.SCROLL)
    scope = Scope.DIFF

    @dataclass
    class Looked(Message):
        """More of what waits was on screen; so many lines were not yet."""

        unseen: int

    def __init__(self) -> None:
        super().__init__(id="diff")
        self._view = DiffView("Diff", "")
        self._lines: tuple[DiffLine, ...] = ()
        self._wraps = True
        self._seen: list[int] = []
        self._sizes: list[int] = []
        self._unseen = 0

    @property
    def follows(self) -> bool:  # type: ignore[override] # a fact of what is shown, not of the class
        """True while text is added at the end."""
        return self._view.grows

    def show(self, view: DiffView) -> None:
        """Show it; what is new starts at its top, what grows is followed."""
        self.show_title(f"3 {view.title}")
        if view == self._view:
            return
        new = view.key != self._view.key
        self._view = view
        self._lines = tuple(diff_lines(view.diff))
        if new:
            self._at_end = view.grows
            self._seen, self._sizes, self._unseen = [], [], 0
        self.lay_out_again()
        if new and not view.grows:
            self.scroll_to(x=0, y=0, animate=False)

    def lay_out(self, width: int) -> None:
        self.rows = [*self._note_rows(width), *self._diff_rows(width)]
        if not self.rows and self._view.empty:
            empty = Entry("", (Block(self._view.empty, Tone.DIM),))
            self.rows += entry_rows(empty, -1, width, 0, expanded=True)
        self._measure()

    def _note_rows(self, width: int) -> Iterator[Row]:
        if self._view.notes:
            notes = Entry("", self._view.notes)
            rows = entry_rows(notes, -1, width, NOTE_LABEL_CELLS, expanded=True)
            yield from (replace(row, source=len(self._lines) + number) for number, row in enumerate(rows))

    def _diff_rows(self, width: int) -> Iterator[Row]:
        if self._lines and self._view.notes:
            yield Row((("", Tone.PLAIN),))
        highest = max((max(line.old, line.new) for line in self._lines), default=0)
        digits = len(str(highest)) if highest else 0
        for number, line in enumerate(self._lines):
            if number and _begins_file(line, self._lines[number - 1]):
                yield Row((("", Tone.PLAIN),))
            yield from self._line_rows(line, number, digits, width)

    def _line_rows(self, line: DiffLine, number: int, digits: int, width: int) -> Iterator[Row]:
        in_hunk = bool(line.old or line.new)
        gutter = f"{line.old or '':>{digits}} {line.new or '':>{digits}} " if in_hunk else ""
        sign = f"{SIGNS.get(line.tone, ' ')} " if in_hunk else ""
        fill = line.tone if in_hunk and line.tone in SIGNS else None
        cells = len(gutter) + len(sign)
        start = 0
        pieces = wrap(line.text, max(8, width - cells)) if self._wraps else (line.text,)
        for piece in pieces:
            lead = gutter if start == 0 else " " * len(gutter)
            spans = ((lead, Tone.NUMBER), (sign if start == 0 else " " * len(sign), line.tone), (piece, line.tone))
            yield Row(spans, fill=fill, source=number, start=start, gutter=cells)
            start += cell_len(piece)

    def _measure(self) -> None:
        """Know how long each line is; what was seen of it stays seen."""
        sizes: dict[int, int] = {}
        for row in self.rows:
            if row.source >= 0:
                sizes[row.source] = max(sizes.get(row.source, 0), row.start + row.cells - row.gutter)
        self._sizes = [sizes[number] for number in sorted(sizes)]
        self._seen += [-1] * (len(self._sizes) - len(self._seen))
        del self._seen[len(self._sizes) :]
        self._count()

    def row_shown(self, row: Row) -> None:
        """Note how far a line of what waits was drawn, if nothing stands before it."""
        if row.source < 0 or not self._view.proposal or self.app.screen is not self.screen:
            return
        left = row.start + self.scroll_offset.x
        cut = row.cells > self.scroll_offset.x + self.room.width
        right = left + self.room.width - row.gutter - int(cut)
        before = self._seen[row.source]
        if right > before and left <= max(before, 0):
            self._seen[row.source] = right
            if before < self._sizes[row.source] <= right:
                self._count()

    def _count(self) -> None:
        unseen = sum(seen < size or seen < 0 for seen, size in zip(self._seen, self._sizes, strict=True))
        if unseen != self._unseen:
            self._unseen = unseen
            self.post_message(self.Looked(unseen))

    @property
    def unseen(self) -> int:
        """How many lines of what waits were not on screen in full yet."""
        return self._unseen if self._view.proposal else 0

    @property
    def shown_proposal(self) -> str:
        """The key of the proposal that is shown, empty when none is."""
        return self._view.proposal

    def show_unseen(self) -> None:
        """Bring the first of what was not seen on screen; wrap lines if it is behind the edge."""
        missing = [number for number, seen in enumerate(self._seen) if seen < self._sizes[number] or seen < 0]
        if not missing:
            return
        if not self._wraps and any(self._seen[number] >= 0 for number in missing):
            self._wraps = True
            self.lay_out_again()
        first = next((number for number, row in enumerate(self.rows) if row.source == missing[0]), 0)
        self.scroll_to(x=0, y=first, animate=False)

    def action_wrap(self) -> None:
        self._wraps = not self._wraps
        self.scroll_to(x=0, animate=False)
        self.lay_out_again()

    def action_go_right(self) -> None:
        self.scroll_relative(x=STEP_CELLS, animate=False)

    def action_go_left(self) -> None:
        self.scroll_relative(x=-STEP_CELLS, animate=False)

    def action_next_change(self) -> None:
        top = self.scroll_offset.y
        self._go_to(next((place for place in self._changes() if place > top), None))

    def action_previous_change(self) -> None:
        top = self.scroll_offset.y
        self._go_to(next((place for place in reversed(self._changes()) if place < top), None))

    def _changes(self) -> list[int]:
        hunks = {number for number, line in enumerate(self._lines) if line.tone is Tone.HUNK}
        return [place for place, row in enumerate(self.rows) if row.source in hunks and row.start == 0]

    def _go_to(self, row: int | None) -> None:
        if row is not None:
            self.scroll_to(y=row, animate=False)


def _begins_file(line: DiffLine, before: DiffLine) -> bool:
    """Return whether the headers of another file begin here."""
    if line.tone is Tone.FILE:
        return line.text.startswith("--- ") and before.tone is not Tone.DIM
    return line.tone is Tone.DIM and line.text.startswith("diff --git ")
