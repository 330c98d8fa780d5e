"""A file of the workspace to look at, from a line on."""

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.live import OpenedFile, SessionUpdate
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.dialogs.dialog import Dialog
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.code_colours import Lines, coloured_lines, plain_lines
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Tone

ABOVE = 5
MOST_CHARS = 2_000_000


class FileLines(RowList):
    """The numbered lines of a file; the one that it was opened for is marked."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.FILE

    def __init__(self) -> None:
        super().__init__(id="file-lines")
        self._file: OpenedFile | None = None
        self._lines: Lines | None = None

    def show_file(self, file: OpenedFile, coloured: Lines | None) -> None:
        """Show a file, coloured where its colours are known."""
        self._file, self._lines = file, coloured
        self.lay_out_again()

    def go_to_line(self, line: int) -> None:
        """Bring a line on screen with some above it."""
        self.scroll_to(x=0, y=max(0, line - 1 - ABOVE), animate=False)

    def lay_out(self, width: int) -> None:
        del width
        self.rows = list(self._file_rows(self._file)) if self._file is not None else []

    def _file_rows(self, file: OpenedFile) -> Iterable[Row]:
        lines = self._lines or plain_lines(file.text)
        digits = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            marked = number == file.line
            gutter = (f"{'▶' if marked else ' '} {number:>{digits}} ", Tone.ACCENT if marked else Tone.NUMBER)
            yield Row((gutter, *line), fill=Tone.HIT if marked else None, lead=digits + 3)


class FileScreen(Dialog[None]):
    """Waits for the file that was asked for and shows it as it was then."""

    BINDINGS = bindings(Scope.FILE)

    def __init__(self, title: str, keymap: Keymap) -> None:
        super().__init__(title, f"{keymap.first(Scope.FILE, 'close_file')} closes", name="file")
        self._seen: int | None = None

    def body(self) -> Iterable[Widget]:
        return FileLines(), Static("reading the file …", id="file-said", markup=False)

    def on_mount(self) -> None:
        self.query_one(FileLines).focus()

    def show(self, update: SessionUpdate) -> None:
        """Show the file when it came."""
        opened = update.live.opened
        number = opened.number if opened is not None else 0
        if self._seen is None:
            self._seen = number
        elif opened is not None and number > self._seen and self.is_mounted:
            self._seen = number
            self._take(opened)

    def _take(self, opened: OpenedFile) -> None:
        file = replace(opened, text=sanitize(opened.text, limit_chars=MOST_CHARS))
        self.query_one("#file-said").display = False
        self.query_one(".frame").border_title = Content(sanitize_line(f"{file.path}:{file.line}", 300))
        shown = self.query_one(FileLines)
        shown.show_file(file, None)
        shown.go_to_line(file.line)
        self.run_worker(self._colour(file), group="colours")

    async def _colour(self, file: OpenedFile) -> None:
        dark = self.app.current_theme.dark
        self.query_one(FileLines).show_file(file, await asyncio.to_thread(coloured_lines, file.path, file.text, dark))

    def action_close_file(self) -> None:
        self.dismiss(None)
