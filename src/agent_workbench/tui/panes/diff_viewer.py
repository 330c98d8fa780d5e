"""Viewer of a diff: notes, keys, messages, and a record of the lines that were on screen."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace
from textual.message import Message

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.patch.values import Patch
from agent_workbench.tui.panes.diff_rendering import DiffRendering
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Piece, Row, entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.diff_document import DiffDocument, DiffReader, context_folds, line_in_diff
from agent_workbench.views.gate.proposal_views import DiffView

NOTE_LABEL_CELLS = 2
STEP_CELLS = 8


class DiffViewer(RowList):
    """Shows a `DiffView`. `rows` are those of the notes; the rows of the diff follow them."""

    def __init__(self) -> None:
        super().__init__(id="diff")
        self.show_title("3 Diff")
        self.view = DiffView("Diff", "")
        self.diff = DiffRendering(self._painter.tones)
        self._reader = DiffReader()
        self._seen = SeenProposal()

    @property
    def follows(self) -> bool:
        """True while text is added at the end."""
        return self.view.grows

    def show(self, view: DiffView) -> None:
        """Show a view. A new one starts at its top; one that grows is followed."""
        self.show_title(f"3 {view.title}")
        if view == self.view:
            return
        new = view.key != self.view.key
        self.view = view
        if new:
            self._end.reached = view.grows
            self.diff.fold_only(view.folded)
        self.show_lines(self._reader.read(view.diff, grows=view.grows))
        if new and not view.grows:
            self.scroll_to(x=0, y=0, animate=False)
        if new:
            lines = SeenLines(len(self.diff.shown.lines), known_lines(self.diff.shown, view.folded))
            self._seen = SeenProposal(lines, len(self.rows)) if view.proposal else SeenProposal()
            self._report()

    def show_lines(self, shown: DiffDocument) -> None:
        """Show these lines below the notes."""
        self.diff.show(shown, dark=self.app.current_theme.dark, whole=not self.view.grows)
        self.lay_out_again()

    def notes(self) -> tuple[Block, ...]:
        """Return the notes above the diff."""
        return self.view.notes

    def lay_out(self, width: int) -> None:
        empty = self.view.empty if not self.diff.shown.lines else ""
        self.rows = list(note_rows(self.notes(), width, empty, seen=bool(self.view.proposal)))
        self.diff.lay_out(width, below=bool(self.rows), special=self.view.special)
        if self.counts:
            self._seen.notes_laid_out(len(self.rows))

    @property
    def row_count(self) -> int:
        return len(self.rows) + self.diff.row_count

    def row_at(self, number: int) -> Row:
        if number < len(self.rows):
            return self.rows[number]
        row = self.diff.row(number - len(self.rows))
        if self.diff.colours_due:
            self.run_worker(self.diff.find_colours(self.refresh), group="colours")
        return row

    def widest(self) -> int:
        return max(self.diff.layout.widest(), *(row.cells for row in self.rows), 0)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            self.diff.recolour(dark=self.app.current_theme.dark)

    @property
    def counts(self) -> bool:
        """True while drawn rows count as seen."""
        return bool(self.view.proposal)

    @property
    def unseen(self) -> int:
        """Number of lines of the proposal that were not on screen in full yet."""
        return self._seen.missing

    def row_drawn(self, row: Row, left: int, width: int) -> None:
        """Count the lines of a row as seen, unless a dialog is above this screen."""
        if self.unseen and self.counts and self.app.screen is self.screen and self._seen.drawn(row, left, width):
            self.call_later(self._report)

    def _report(self) -> None:
        self.post_message(Looked(self._seen.report()))

    def show_unseen(self) -> None:
        """Scroll to the first unseen line; unfold it, and wrap lines if the rest of it is behind the edge."""
        self.app.clear_notifications()  # they may cover it
        note, line = self._seen.notes.first_missing(), self._seen.diff.first_missing()
        if note >= 0:
            self.scroll_to(x=0, y=note, animate=False)
        elif line >= 0:
            reached = self._seen.diff.reached(line)
            wraps = self.diff.wraps or bool(reached)
            if self.diff.unfold_file(line) or wraps != self.diff.wraps:
                self.diff.wraps = wraps
                self.lay_out_again()
            self.scroll_to(x=0, y=len(self.rows) + self.diff.row_at_cell(line, reached), animate=False)

    def go_to_place(self, place: CodePlace) -> bool:
        """Scroll to a line of a changed file; return whether the diff has it."""
        line = line_in_diff(self.diff.shown, place)
        if line < 0:
            return False
        if self.diff.unfold_file(line):
            self.lay_out_again()
        self.scroll_to(x=0, y=max(0, self.row_of(line) - self.room.height // 3), animate=False)
        return True

    def row_of(self, line: int) -> int:
        """Return the row of the list in which a line of the diff begins."""
        return len(self.rows) + self.diff.first_row(line)

    def line_of(self, row: int) -> int:
        """Return the line of the diff that has a row of the list; the first one for rows of notes."""
        return self.diff.line_at(row - len(self.rows))

    def toggle_fold(self, line: int) -> None:
        """Fold the file of a line, or unfold what is folded there."""
        self.diff.toggle_fold(line)
        self.lay_out_again()

    def action_wrap(self) -> None:
        self.diff.wraps = not self.diff.wraps
        self.scroll_to(x=0, animate=False)
        self.lay_out_again()

    def action_side_by_side(self) -> None:
        top = self.line_of(self.scroll_offset.y)
        self.diff.toggle_split(self.room.width)
        self.lay_out_again()
        if top > 0:
            self.scroll_to(x=0, y=self.row_of(top), animate=False)

    def action_go_right(self) -> None:
        self.scroll_relative(x=STEP_CELLS, animate=False)

    def action_go_left(self) -> None:
        self.scroll_relative(x=-STEP_CELLS, animate=False)


def known_lines(shown: DiffDocument, reviewed: Collection[int]) -> Iterator[int]:
    """Yield the lines that need not be seen: unchanged ones that fold, and those of `reviewed` files."""
    for run in context_folds(shown):
        yield from range(*run)
    for number, line in enumerate(shown.lines):
        if line.file in reviewed and line.tone is not Tone.FILE:
            yield number


def note_rows(notes: tuple[Block, ...], width: int, empty: str, *, seen: bool) -> Iterator[Row]:
    """Yield the rows above a diff, or of `empty` if there are none. `seen`: all of them have to be seen."""
    if notes:
        rows = entry_rows(Entry("", notes), -1, width, NOTE_LABEL_CELLS, expanded=True)
        if not seen:  # output of a command is laid out many times a second
            yield from rows
            return
        for number, row in enumerate(rows):
            yield replace(row, pieces=(Piece(-1 - number, 0, row.cells, 0, row.cells),))
    elif empty:
        yield from entry_rows(Entry("", (Block(empty, Tone.DIM),)), -1, width, 0, expanded=True)


@dataclass
class Looked(Message, namespace="diff_pane"):
    """More of the proposal was on screen; `unseen` lines were not yet."""

    unseen: int


class SelectionChanged(Message, namespace="diff_pane"):
    """Other hunks or lines are selected, or the result is shown instead of the diff."""


@dataclass
class ReasonWanted(Message, namespace="diff_pane"):
    """Ask the user why hunks are left out: for the first time, or again (`known`) to change `reason`."""

    ids: tuple[str, ...]
    what: str
    reason: str = ""
    known: bool = False


@dataclass
class HunkEditWanted(Message, namespace="diff_pane"):
    """The user edits a hunk; `outside` in an external editor."""

    patch: Patch
    hunk: str
    what: str
    outside: bool = False


class SeenLines:
    """Counts down as lines are drawn. Lines whose numbers are `exempt` need not be seen."""

    def __init__(self, lines: int = 0, exempt: Iterable[int] = ()) -> None:
        self._unseen = bytearray(b"\1") * lines
        for number in exempt:
            self._unseen[number] = 0
        self._reached: dict[int, int] = {}
        self.missing = self._unseen.count(1)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self._unseen)

    def drawn(self, piece: Piece, first: int, end: int) -> bool:
        """Note that the cells from `first` to before `end` of a line were drawn; return True if it is seen now.

        Cells after a gap do not count: the gap may never be drawn.
        """
        source = piece.source
        if not self._unseen[source]:
            return False
        before = self._reached.get(source, 0)
        if first > before:
            return False
        reached = max(before, end)
        if reached < piece.size:
            self._reached[source] = reached
            return False
        self._unseen[source] = 0
        self._reached.pop(source, None)
        self.missing -= 1
        return True

    def first_missing(self) -> int:
        """Return the first line that was not seen, -1 if all were."""
        return self._unseen.find(1)

    def reached(self, source: int) -> int:
        """Return the cell up to which an unseen line was drawn."""
        return self._reached.get(source, 0)


class SeenProposal:
    """Lines seen of a diff, and rows seen of the notes above it, whose sources are negative numbers."""

    def __init__(self, diff: SeenLines | None = None, note_rows: int = 0) -> None:
        self.diff = diff or SeenLines()
        self.notes = SeenLines(note_rows)
        self._reported = self.missing

    @property
    def missing(self) -> int:
        """Number of lines and rows that were not seen."""
        return self.diff.missing + self.notes.missing

    def notes_laid_out(self, rows: int) -> None:
        """Begin anew with the notes if they have another number of rows; notes that were all seen stay so."""
        if rows != self.notes.lines:
            self.notes = SeenLines(rows, () if self.notes.missing else range(rows))

    def drawn(self, row: Row, left: int, width: int) -> bool:
        """Note that `width` cells of a row were drawn, from cell `left` on; return True if a report is due now."""
        known = self.missing
        right = left + width - (row.cells > left + width)
        for piece in row.pieces:
            first = piece.start + min(max(0, left - piece.at), piece.cells)
            end = piece.start + max(0, min(piece.cells, right - piece.at))
            if piece.source >= 0:
                self.diff.drawn(piece, first, end)
            else:
                self.notes.drawn(replace(piece, source=-1 - piece.source), first, end)
        return self.missing < known == self._reported

    def report(self) -> int:
        """Return the number of missing lines for a message; a further report is due when it is less."""
        self._reported = self.missing
        return self._reported
