"""Screen of a file of the workspace."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.outcomes import FileOpened, Outcome, Refused
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.code_colours import Lines, coloured_lines, plain_lines
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Tone

ABOVE = 5
MOST_CHARS = 2_000_000


class NumberedLines(RowList):
    """Numbered lines of a file; the line that it was opened for is marked."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.FILE

    def __init__(self) -> None:
        super().__init__(id="file-lines")
        self._file: FileOpened | None = None
        self._lines: Lines | None = None

    def show_file(self, file: FileOpened, coloured: Lines | None) -> None:
        """Show a file, highlighted if its colours are known."""
        self._file, self._lines = file, coloured
        self.lay_out_again()

    def go_to_line(self, line: int) -> None:
        """Scroll to a line, with some lines above it."""
        self.scroll_to(x=0, y=max(0, line - 1 - ABOVE), animate=False)

    def lay_out(self, width: int) -> None:
        del width
        self.rows = list(self._file_rows(self._file)) if self._file is not None else []

    def _file_rows(self, file: FileOpened) -> Iterable[Row]:
        lines = self._lines or plain_lines(file.text)
        digits = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            marked = number == file.line
            gutter = (f"{'▶' if marked else ' '} {number:>{digits}} ", Tone.ACCENT if marked else Tone.NUMBER)
            yield Row((gutter, *line), fill=Tone.HIT if marked else None, lead=digits + 3)


class FileScreen(Dialog[None]):
    """Shows the content of a file as of the opening."""

    BINDINGS = bindings(Scope.FILE)

    def __init__(self, title: str, keymap: Keymap, read: Callable[[], Awaitable[Outcome]]) -> None:
        super().__init__(title, hint_line([(keymap.first(Scope.FILE, "close_file"), "close")]), name="file")
        self._read_file = read

    def body(self) -> Iterable[Widget]:
        return NumberedLines(), Static("reading the file …", id="file-said", markup=False)

    def on_mount(self) -> None:
        self.query_one(NumberedLines).focus()
        self.run_worker(self._read(), group="file")

    async def _read(self) -> None:
        outcome = await self._read_file()
        if isinstance(outcome, Refused):
            self.query_one("#file-said", Static).update(sanitize(outcome.reason, limit_chars=2000))
        elif isinstance(outcome, FileOpened):
            self._take(outcome)

    def _take(self, opened: FileOpened) -> None:
        file = replace(opened, text=sanitize(opened.text, limit_chars=MOST_CHARS))
        self.query_one("#file-said").display = False
        self.query_one(".frame").border_title = Content(sanitize_line(f"{file.path}:{file.line}", 300))
        shown = self.query_one(NumberedLines)
        shown.show_file(file, None)
        self.call_after_refresh(shown.go_to_line, file.line)
        self.run_worker(self._colour(file), group="colours")

    async def _colour(self, file: FileOpened) -> None:
        dark = self.app.current_theme.dark
        self.query_one(NumberedLines).show_file(
            file, await asyncio.to_thread(coloured_lines, file.path, file.text, dark)
        )

    def action_close_file(self) -> None:
        self.dismiss(None)
