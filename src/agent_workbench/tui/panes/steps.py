"""Steps pane: the transcript of a session, growing at its end, and the record of rows that were on screen."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from textual.message import Message

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.tui.keys import Scope, bindings
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.markdown_rows import CodeColours, markdown_rows
from agent_workbench.tui.widgets.rows import Piece, Row, block_rows, entry_rows
from agent_workbench.views.blocks import Block, Entry
from agent_workbench.views.transcript import StepsView


class StepsPane(EntryList):
    """Shows a `StepsView`; new entries are followed while the user is at the end."""

    BINDINGS = bindings(Scope.STEPS, Scope.SCROLL)
    scope = Scope.STEPS
    label_cells = 12
    follows = True

    @dataclass
    class PlaceWanted(Message):
        """The user goes to this line of a file."""

        place: CodePlace

    def __init__(self) -> None:
        super().__init__(id="steps")
        self.show_title("2 Steps")
        self._colours = CodeColours()

    def show(self, view: StepsView) -> None:
        """Show the transcript and the entries that may still change."""
        self.show_title(f"2 {view.title}")
        selected = self.selected
        self.show_entries(view.transcript.entries, view.unsettled, empty=view.empty)
        if selected is not None and self.selected is not selected:
            # A result that went below the reply stays selected.
            number = self._number_of(selected.key)
            self.cursor = number if number >= 0 else self.cursor

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        expanded = self.is_expanded(entry)
        return entry_rows(entry, number, width, self.label_cells, expanded=expanded, rows_of=self._block_rows)

    def _block_rows(self, block: Block, item: int, width: int, label_cells: int, expanded: bool) -> Iterator[Row]:
        if block.markdown:
            return markdown_rows(block, item, width, label_cells, expanded, self._colours)
        return block_rows(block, item, width, label_cells, expanded)

    def rows_changed(self, first: int = 0) -> None:
        super().rows_changed(first)
        if self._colours.wanted and self.is_mounted:
            self.run_worker(self._highlight(), group="colours")

    async def _highlight(self) -> None:
        await self._colours.highlight(dark=self.app.current_theme.dark)
        self.lay_out_again()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._colours.dark not in (None, self.app.current_theme.dark):
            self.run_worker(self._highlight(), group="colours")

    def action_go_to_failure(self) -> None:
        """Go to the place of the selected failure; if none is selected, select the first failure of the newest run."""
        if self.selected is not None and self.selected.place is not None:
            self.post_message(self.PlaceWanted(self.selected.place))
            return
        number = len(self.entries) - 1
        while number >= 0 and self.entries[number].place is None:
            number -= 1
        while number > 0 and self.entries[number - 1].place is not None:
            number -= 1
        if number < 0:
            self.notify("no check has failed yet", severity="warning")
        else:
            self.go_to(self.entries[number].key)

    def go_to(self, key: str) -> None:
        """Select an entry and scroll it to the top."""
        number = self._number_of(key)
        if number >= 0:
            self.select(number)
            self.scroll_to_selected()

    def _number_of(self, key: str) -> int:
        return next((at for at, entry in enumerate(self.entries) if entry.key == key), -1)


class SeenRows:
    """Rows that were not drawn yet. A row is known by the number of its entry, and by its own number in that."""

    def __init__(self) -> None:
        self._wanted: set[tuple[int, int]] = set()
        self._missing: set[tuple[int, int]] = set()

    @property
    def missing(self) -> int:
        """Number of rows that were not seen."""
        return len(self._missing)

    def marked(self, number: int, rows: Iterable[Row]) -> list[Row]:
        """Return the rows of an entry, marked as such that have to be seen; empty ones need not be."""
        return [
            replace(row, pieces=(Piece(at, 0, row.cells, number, row.cells),)) if row.cells else row
            for at, row in enumerate(rows)
        ]

    def begin(self, rows: Iterable[Row]) -> None:
        """Begin anew with these rows."""
        self._wanted = {key for row in rows for key in _keys(row)}
        self._missing = set(self._wanted)

    def laid_out(self, rows: Iterable[Row]) -> bool:
        """Begin anew and return True if other rows have to be seen now, unless all were seen."""
        if not self._missing or {key for row in rows for key in _keys(row)} == self._wanted:
            return False
        self.begin(rows)
        return True

    def drawn(self, row: Row, left: int, width: int) -> bool:
        """Note that `width` cells of a row were drawn, from cell `left` on; return True if it is seen only now."""
        keys = self._missing.intersection(_keys(row)) if row.cells <= left + width else set()
        self._missing -= keys
        return bool(keys)

    def first_missing(self, rows: Sequence[Row]) -> int:
        """Return the number of the first row that was not seen, -1 if all were."""
        return next((at for at, row in enumerate(rows) if self._missing.intersection(_keys(row))), -1)


def _keys(row: Row) -> list[tuple[int, int]]:
    return [(piece.at, piece.source) for piece in row.pieces]
