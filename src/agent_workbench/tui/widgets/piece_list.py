"""List of pieces of code with their reasons; an expanded piece shows its lines, highlighted in a thread."""

import asyncio
from collections.abc import Iterable, Sequence

from agent_workbench.tui.widgets.code_colours import Lines, coloured_lines
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.piece_rows import code_rows, heading_row, piece_rows, reason_rows
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Block, Entry
from agent_workbench.views.code import CodeRow


class PieceList(EntryList):
    """Shows `CodeRow`s, one of them selected."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._pieces: dict[str, CodeRow] = {}
        self._coloured: dict[str, Lines] = {}

    def show_pieces(self, rows: Sequence[CodeRow], *, empty: str) -> None:
        """Show these pieces; expanded ones stay so."""
        by_key = {row.key: row for row in rows}
        before, self._pieces = self._pieces, by_key
        for key in [key for key in self._coloured if key not in by_key or by_key[key].preview != before[key].preview]:
            del self._coloured[key]
        # The entry holds all that is visible of a piece, so that a changed piece is another entry.
        seen = ((row, f"{row.state.name} {row.tokens} {row.score} {row.remark} {row.reasons}") for row in rows)
        self.show_entries(
            tuple(Entry(row.key, (Block(row.place), Block(facts), Block(row.preview))) for row, facts in seen),
            empty=empty,
        )

    @property
    def selected_piece(self) -> CodeRow | None:
        """The selected piece; the topmost on screen if none was selected."""
        self.select_topmost()
        return self._pieces[self.selected.key] if self.selected is not None else None

    def text_here(self) -> str:
        """Return the lines of the selected piece."""
        piece = self.selected_piece
        return piece.preview if piece is not None else ""

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        row = self._pieces[entry.key]
        if number == 0:
            yield heading_row(width)
        expanded = self.is_expanded(entry)
        yield from piece_rows(row, number, width, bars=not expanded)
        if expanded:
            yield from reason_rows(row.reasons, number, width)
            yield from code_rows(row, self._coloured.get(entry.key), number)

    def action_expand(self) -> None:
        super().action_expand()
        entry = self.selected
        if entry is not None and self.is_expanded(entry) and entry.key not in self._coloured:
            self.run_worker(self._colour(self._pieces[entry.key]), group="colours")

    async def _colour(self, row: CodeRow) -> None:
        dark = self.app.current_theme.dark
        coloured = await asyncio.to_thread(coloured_lines, row.path, row.preview, dark)
        now = self._pieces.get(row.key)
        if now is not None and now.preview == row.preview:
            self._coloured[row.key] = coloured
            self.lay_out_again()
