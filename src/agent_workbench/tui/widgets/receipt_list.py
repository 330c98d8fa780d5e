"""Table of the parts of a prompt: name, tokens, share, what the server read, seconds."""

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from textual.message import Message

from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.receipt import ReceiptView
from agent_workbench.views.receipt_rows import ReceiptRow

TOKENS_CELLS = 9
SECONDS_CELLS = 8
MARK_CELLS = 8
WIDE_CELLS = 100


class ReceiptList(EntryList):
    """Shows the rows of a `ReceiptView`, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.RECEIPT

    class Selected(Message):
        """A part was selected."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._parts: dict[str, ReceiptRow] = {}
        self._total = 1
        self._sent = True

    def show(self, view: ReceiptView) -> None:
        """Show the parts of a prompt; the selected part stays selected if there is one like it."""
        self._total = max(1, view.tokens)
        self._sent = view.sent
        self._parts = {f"{n}:{row.place or row.label}": row for n, row in enumerate(view.rows)}
        # The entry holds the row, so that a changed part is another entry.
        entries = tuple(Entry(key, (Block(repr(row)),)) for key, row in self._parts.items())
        self.show_entries(entries, empty="nothing is known of its parts")
        if self.cursor < 0:
            pieces = (number for number, row in enumerate(view.rows) if row.place and not view.sent)
            self.select(next(pieces, 0))

    @property
    def selected_row(self) -> ReceiptRow | None:
        """The selected part."""
        return self._parts[self.selected.key] if self.selected is not None else None

    def selection_changed(self) -> None:
        self.post_message(self.Selected())

    def action_expand(self) -> None:
        """Do nothing: parts cannot be expanded."""

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        row = self._parts[entry.key]
        bar, words = (16, 38) if width >= WIDE_CELLS else (8, 17)
        # Nothing was read yet of a prompt that is not sent: its rows only say what is pinned or dropped.
        words, seconds = (words, SECONDS_CELLS) if self._sent else (MARK_CELLS, 0)
        name = max(12, width - TOKENS_CELLS - bar - words - seconds - 4)
        if number == 0:
            server, time = ("for the server", "seconds") if self._sent else ("", "")
            heading = (
                f"{'part':<{name}}{'tokens':>{TOKENS_CELLS}}  {'share':<{bar}}  {server:<{words}}{time:>{seconds}}"
            )
            yield Row(((heading, Tone.DIM),))
        yield Row((*_name(row, name), *_figures(row, self._total, bar, words, seconds)), number)


def _name(row: ReceiptRow, width: int) -> tuple[Span, ...]:
    glyph, tone = ("  ", Tone.PLAIN)
    if row.pinned:
        glyph, tone = "◆ ", Tone.ACCENT
    elif row.dropped:
        glyph, tone = "✗ ", Tone.GONE
    if not row.place:
        label = f"{row.label} · {row.note}" if row.note else row.label
        return ((_fit(label, width), tone if row.dropped else Tone.STRONG),)
    lead = f" {glyph}" if row.inside or glyph.strip() else ""
    label, room = row.label, width - len(lead)
    if cell_len(label) > room:  # the end of a path tells more than its beginning
        kind = "" if row.inside else f"{row.label.split(' ', 1)[0]} "
        left = room - cell_len(kind)
        label = kind + (row.place if cell_len(row.place) <= left else f"…{row.place[-(left - 1) :]}")
    plain = tone if row.inside or row.pinned or row.dropped else Tone.STRONG
    return ((lead, Tone.ACCENT), (_fit(label, room), plain))


def _figures(row: ReceiptRow, total: int, bar: int, words: int, seconds_cells: int) -> tuple[Span, ...]:
    tokens = f"{'~' if row.estimated else ''}{row.tokens:,}"
    seconds = f"{row.seconds:.2f}" if row.seconds >= 0.005 else ""
    tone = Tone.BAD if row.again else Tone.ACCENT if row.new else Tone.DIM
    return (
        (f"{tokens:>{TOKENS_CELLS}}  ", Tone.DIM if row.inside else Tone.PLAIN),
        (_bar(row.tokens / total, bar), tone),
        (f"  {_fit(_said(row, words), words)}", Tone.BAD if row.again else Tone.DIM),
        (f"{seconds:>{seconds_cells}}", Tone.DIM),
    )


def _said(row: ReceiptRow, cells: int) -> str:
    """Return what the server read of a part; the token counts alone if there is no room for more."""
    dropped = "left out" if row.skill else "dropped"
    mark = "pinned" if row.pinned else dropped if row.dropped else ""
    said = ", ".join(filter(None, (mark, row.read)))
    if cell_len(said) <= cells:
        return said
    read = (f"{row.new:,} new" if row.new else "", f"{row.again:,} again" if row.again else "")
    return ", ".join(filter(None, read)) or said


def _fit(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _bar(share: float, cells: int) -> str:
    halves = min(2 * cells, max(1, round(2 * cells * share))) if share > 0 else 0
    return f"{'━' * (halves // 2)}{'╸' * (halves % 2)}".ljust(cells)
