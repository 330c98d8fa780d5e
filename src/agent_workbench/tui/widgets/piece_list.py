"""List of pieces of code with their reasons, and the rows of a piece: path, tokens, and a bar for each reason."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size

from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.widgets.colours import Lines, coloured_lines, mark_words, plain_lines
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.code import CodeRow, CodeState, Reason, share_bar

LABEL_CELLS = 5
LINE_CELLS = 6
TOKENS_CELLS = 8
SCORE_CELLS = 7
BAR_CELLS = 8
LONG_BAR_CELLS = 20
LEAST_WORDS_CELLS = 8
BRIEF_CHARS = 24
"""Longest note that has room beside the bars; longer ones get a row of their own."""


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


def heading_row(width: int) -> Row:
    """Return the column headings."""
    name = _name_cells(width)
    piece = set_cell_size(f"{'':{LABEL_CELLS}}piece", LABEL_CELLS + name)
    return Row(((f"{piece}{'tokens':>{TOKENS_CELLS}}{'score':>{SCORE_CELLS}}", Tone.DIM),))


def piece_rows(row: CodeRow, item: int, width: int, *, bars: bool) -> Iterator[Row]:
    """Yield the rows of a piece: path and tokens, `bars` with the matching words, and a note."""
    glyph, tone, _ = row.state.value
    label = Tone.ACCENT if row.state is CodeState.PINNED else Tone.DIM
    name = _name(row, _name_cells(width), tone)
    figures = f"{row.tokens:>{TOKENS_CELLS}}{row.score:>{SCORE_CELLS}}"
    yield Row(((f"{row.number:>2} {glyph} ", label), *name, (figures, Tone.DIM)), item)
    about = Tone.ACCENT if row.state is CodeState.PINNED else Tone.DIM
    briefly = f"{row.remark}  " if row.remark and len(row.remark) <= BRIEF_CHARS else ""
    reasons = tuple(_reasons(row, width - LABEL_CELLS - len(briefly))) if bars or not row.reasons else ()
    if briefly or reasons:
        yield Row(((f"{'':{LABEL_CELLS}}{briefly}", about), *reasons), item)
    if row.remark and not briefly:
        yield Row(((" " * LABEL_CELLS, Tone.DIM), (_fit(row.remark, width - LABEL_CELLS), about)), item)


def reason_rows(reasons: tuple[Reason, ...], item: int, width: int) -> Iterator[Row]:
    """Yield a row for each reason: name, bar, share, and matching words."""
    cells = LONG_BAR_CELLS if width >= 60 else BAR_CELLS
    for reason in reasons:
        room = width - LABEL_CELLS - 10 - cells - 8
        yield Row(
            (
                (f"{'':{LABEL_CELLS}}{reason.name:<10}", Tone.DIM),
                (f"{share_bar(reason.share, cells):<{cells}}", Tone.HUNK),
                (f"{reason.share:>6.0%}  ", Tone.DIM),
                (_fit(", ".join(reason.words), room) if reason.words and room > 0 else "", Tone.PLAIN),
            ),
            item,
        )


def code_rows(row: CodeRow, lines: Lines | None, item: int) -> Iterator[Row]:
    """Yield the numbered lines of a piece, highlighted if `lines` are known, with the matching words marked."""
    marked = mark_words(plain_lines(row.preview) if lines is None else lines, row.words)
    for offset, spans in enumerate(marked):
        yield Row(((f"{row.first_line + offset:>5} ", Tone.NUMBER), *spans), item, lead=LINE_CELLS)


def _name_cells(width: int) -> int:
    return max(12, width - LABEL_CELLS - TOKENS_CELLS - SCORE_CELLS)


def _name(row: CodeRow, cells: int, tone: Tone) -> tuple[Span, ...]:
    """Return path and symbol in so many cells; of a long path the end is kept."""
    place = sanitize_line(row.place, 300)
    if cell_len(place) > cells:
        while cell_len(place) > cells - 1:
            place = place[1:]
        place = f"…{place}"
    room = cells - cell_len(place) - 2
    symbol = f"  {_fit(row.symbol, room)}" if row.symbol and room >= 4 else ""
    return (place, tone), (set_cell_size(symbol, cells - cell_len(place)), Tone.PLAIN)


def _reasons(row: CodeRow, cells: int) -> Iterator[Span]:
    """Yield as many bars as fit, the strongest first, then the matching words."""
    left = cells
    for reason in row.reasons:
        drawn = share_bar(reason.share, BAR_CELLS)
        needed = cell_len(reason.name) + 1 + len(drawn) + 2
        if needed > left:
            break
        yield f"{reason.name} ", Tone.DIM
        yield f"{drawn}  ", Tone.HUNK
        left -= needed
    words = ", ".join(row.words)
    if words and left >= min(LEAST_WORDS_CELLS, cell_len(words)):
        yield _fit(words, left), Tone.PLAIN if row.reasons else Tone.DIM


def _fit(text: str, cells: int) -> str:
    return text if cell_len(text) <= cells else f"{set_cell_size(text, max(0, cells - 1))}…"
