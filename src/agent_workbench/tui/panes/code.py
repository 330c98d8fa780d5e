"""The retrieved code: each piece that is put before the model, why it came, and its text on demand."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.style import Style
from textual.message import Message

from agent_workbench.core.views.code import CodeRow, CodeView, Standing
from agent_workbench.core.views.tones import Entry, Tone
from agent_workbench.tui.keymap import Scope, bindings
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span

Lines = list[list[Span]]


class CodePane(EntryList):
    """Shows a `CodeView`; a preview is coloured as soon as its colours are known. Posts what is pinned and dropped."""

    BINDINGS = bindings(Scope.CODE, Scope.SCROLL)
    scope = Scope.CODE
    label_cells = 3

    @dataclass
    class PinWanted(Message):
        """The user wants this piece to be kept before the model, or no longer."""

        place: str
        pinned: bool

    @dataclass
    class DropWanted(Message):
        """The user says that this piece does not matter."""

        place: str

    def __init__(self) -> None:
        super().__init__(id="code")
        self._rows_by_key: dict[str, CodeRow] = {}
        self._coloured: dict[str, Lines] = {}

    def show(self, view: CodeView) -> None:
        """Show the pieces of code."""
        self.show_title(f"5 {view.title}")
        by_key = {row.entry.key: row for row in view.rows}
        before, self._rows_by_key = self._rows_by_key, by_key
        for key in [key for key in self._coloured if key not in by_key or by_key[key].preview != before[key].preview]:
            del self._coloured[key]
        self.show_entries(tuple(row.entry for row in view.rows), empty=view.empty)

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        yield from super().rows_of(number, entry, width)
        if self.is_expanded(entry):
            yield from self._preview(number, self._rows_by_key[entry.key])

    def action_expand(self) -> None:
        super().action_expand()
        entry = self.selected
        if entry is not None and self.is_expanded(entry) and entry.key not in self._coloured:
            self.run_worker(self._colour(self._rows_by_key[entry.key]), group="colours")

    async def _colour(self, row: CodeRow) -> None:
        dark = self.app.current_theme.dark
        self._coloured[row.entry.key] = await asyncio.to_thread(_coloured, row.path, row.preview, dark)
        now = self._rows_by_key.get(row.entry.key)
        if now is not None and now.preview == row.preview:
            self.lay_out_again()

    def action_pin(self) -> None:
        row = self._selected_row()
        if row is not None:
            self.post_message(self.PinWanted(row.place, row.standing is not Standing.PINNED))

    def action_drop(self) -> None:
        row = self._selected_row()
        if row is not None:
            self.post_message(self.DropWanted(row.place))

    def _selected_row(self) -> CodeRow | None:
        if self.cursor < 0 and self.entries:
            self.select(self._at(self.scroll_offset.y))
        return self._rows_by_key[self.selected.key] if self.selected is not None else None

    def _preview(self, number: int, row: CodeRow) -> Iterator[Row]:
        plain: Lines = [[(line, Tone.PLAIN)] for line in row.preview.split("\n")]
        for offset, spans in enumerate(self._coloured.get(row.entry.key, plain)):
            yield Row(((f"{row.first_line + offset:>5} ", Tone.NUMBER), *spans), number)


def _coloured(path: str, text: str, dark: bool) -> Lines:
    """Return the lines of `text` in the colours of its language; slow the first time, so it runs in a thread."""
    from rich.console import Console
    from rich.syntax import Syntax

    lexer = Syntax.guess_lexer(path, text)
    code = Syntax(text, lexer, theme="monokai" if dark else "friendly", background_color="default").highlight(text)
    console = Console(width=10, force_terminal=False)
    code.rstrip()
    return [
        [(segment.text, _foreground(segment.style)) for segment in line.render(console) if segment.text]
        for line in code.split("\n", allow_blank=True)
    ]


def _foreground(style: Style | None) -> Style:
    return Style() if style is None else Style(color=style.color, bold=style.bold, italic=style.italic)
