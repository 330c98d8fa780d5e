"""Screens of code: the search for it, one retrieved piece with its reasons, and a file of the workspace."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.intents import FindCode, Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import CodeFound, FileOpened, Outcome, Refused
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog, prompt_lock_reason
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.colours import Lines, coloured_lines, plain_lines
from agent_workbench.tui.widgets.piece_list import LABEL_CELLS, PieceList, code_rows, reason_rows
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Tone
from agent_workbench.views.code import CodeRow, CodeState, index_line, view_code, view_search_results

MOST_CHARS = 2_000
INDEX_BEGINS = "the index has only begun"
HELP = "path, path:line, path:first-last, words to search for, or a skill"

ABOVE = 5
MOST_FILE_CHARS = 2_000_000


class PieceLines(RowList):
    """The reasons of a piece, followed by its context and its lines."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.PIECE

    def __init__(self) -> None:
        super().__init__(id="piece-lines")
        self._piece: CodeRow | None = None
        self._coloured: Lines | None = None

    def show_piece(self, piece: CodeRow | None, coloured: Lines | None) -> None:
        """Show a piece, highlighted if its colours are known."""
        self._piece, self._coloured = piece, coloured
        self.lay_out_again()

    def lay_out(self, width: int) -> None:
        self.rows = []
        if self._piece is None:
            self.rows = [Row((("this piece is not there any more", Tone.DIM),))]
            return
        reasons = list(reason_rows(self._piece.reasons, -1, width))
        words = ", ".join(self._piece.words)
        if not reasons and words:
            reasons = [Row(((f"{'':{LABEL_CELLS}}for {words}", Tone.DIM),))]
        self.rows += [*reasons, Row((("", Tone.PLAIN),))] if reasons else []
        context = self._piece.context.split("\n") if self._piece.context else []
        self.rows += [Row(((f"{'':{LABEL_CELLS}}{line}", Tone.DIM),)) for line in context]
        self.rows += code_rows(self._piece, self._coloured, -1)

    def go_to_hit(self, step: int) -> None:
        """Scroll to the next line with a search word, or (-1) to the previous one."""
        top = self.scroll_offset.y
        hits = [at for at, row in enumerate(self.rows) if any(tone is Tone.HIT for _, tone in row.spans)]
        ahead = [at for at in hits if (at > top if step > 0 else at < top)]
        if ahead:
            self.scroll_to(y=ahead[0] if step > 0 else ahead[-1], animate=False)


class PieceScreen(Dialog[None]):
    """Shows one piece of code, updated with the session; its keys pin and drop the piece."""

    BINDINGS = bindings(Scope.PIECE)

    def __init__(self, key: str, keymap: Keymap, want: Callable[[Intent], Awaitable[None]]) -> None:
        super().__init__("Code", "", name="piece")
        self._key = key
        self._keymap = keymap
        self._want = want
        self._fixed = ""
        self._piece: CodeRow | None = None
        self._coloured: Lines | None = None

    def body(self) -> Iterable[Widget]:
        return (PieceLines(),)

    async def on_mount(self) -> None:
        self.query_one(PieceLines).focus()
        self._show()
        if self._piece is not None:
            self.run_worker(self._colour(self._piece), group="colours")

    def show(self, update: SessionUpdate) -> None:
        """Show the piece as it is now."""
        self._fixed = prompt_lock_reason(update)
        rows = {row.key: row for row in view_code(update.state).rows}
        piece = rows.get(self._key, self._piece)
        if piece != self._piece:
            self._piece = piece
            if self.is_mounted:
                self._show()

    async def _colour(self, piece: CodeRow) -> None:
        dark = self.app.current_theme.dark
        self._coloured = await asyncio.to_thread(coloured_lines, piece.path, piece.preview, dark)
        self.query_one(PieceLines).show_piece(self._piece, self._coloured)

    def _show(self) -> None:
        self.query_one(PieceLines).show_piece(self._piece, self._coloured)
        piece = self._piece
        if piece is None:
            return
        glyph, _, _ = piece.state.value
        named = "  ".join(filter(None, (glyph, sanitize_line(piece.place, 300), piece.symbol)))
        frame = self.query_one(".frame")
        frame.border_title = Content(named)
        tokens = f"{piece.tokens} tokens" if piece.tokens else ""
        score = f"score {piece.score}" if piece.score else ""
        frame.border_subtitle = Content(" · ".join(filter(None, (piece.remark, tokens, score))))
        self._show_hints(piece)

    def _show_hints(self, piece: CodeRow) -> None:
        key = {action: self._keymap.first(Scope.PIECE, action) for action in ACTIONS}
        pin = (key["pin"], "unpin" if piece.state is CodeState.PINNED else "pin")
        dropped = piece.state in (CodeState.DROPPED, CodeState.LEFT_OUT)
        own = () if self._fixed else (pin,) if dropped else (pin, (key["drop"], "drop"))
        hits = ((f"{key['next_hit']} {key['previous_hit']}", "hits"),) if piece.words else ()
        self.show_keys(hint_line((*own, *hits, (key["close_piece"], "close"))))

    async def action_pin(self) -> None:
        if self._changeable() and self._piece is not None:
            await self._want(self._piece.pin)

    async def action_drop(self) -> None:
        if self._changeable() and self._piece is not None:
            await self._want(self._piece.drop)

    def action_next_hit(self) -> None:
        self.query_one(PieceLines).go_to_hit(1)

    def action_previous_hit(self) -> None:
        self.query_one(PieceLines).go_to_hit(-1)

    def action_close_piece(self) -> None:
        self.dismiss(None)

    def _changeable(self) -> bool:
        if self._fixed:
            self.show_keys(self._fixed)
        return not self._fixed


ACTIONS = ("pin", "drop", "next_hit", "previous_hit", "close_piece")


class ResultList(PieceList):
    """List of search results. Enter is handled by the screen, not by the list."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.FIND


class CodeSearchScreen(Dialog[None]):
    """Searches code and pins the selected result; updated with the session."""

    BINDINGS = bindings(Scope.FIND)

    def __init__(
        self,
        keymap: Keymap,
        want: Callable[[Intent], Awaitable[None]],
        ask: Callable[[Intent], Awaitable[Outcome]],
    ) -> None:
        super().__init__("Put code or a skill before the model", "", name="find")
        self._keymap = keymap
        self._want = want
        self._ask = ask
        self._fixed = ""
        self._found: CodeFound | None = None
        self._refused = ""
        self._searching = False
        self._partial = False
        self._rows: tuple[CodeRow, ...] = ()
        self._update: SessionUpdate | None = None

    def body(self) -> Iterable[Widget]:
        found = ResultList(id="found")
        found.display = False
        return Input(placeholder=HELP, max_length=MOST_CHARS, compact=True), Static("", id="find-said"), found

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._show()

    def show(self, update: SessionUpdate) -> None:
        """Show the results, and which of them are in the prompt now."""
        self._update = update
        self._fixed = prompt_lock_reason(update)
        if self._found is not None:
            self._rows = view_search_results(update.state, self._found)
        if self.is_mounted:
            self._show()

    async def _search(self, asked: str) -> None:
        """Search, and show the results or the reason why there are none."""
        outcome = await self._ask(FindCode(asked))
        self._searching = False
        if isinstance(outcome, Refused):
            self._refused = outcome.reason
        elif isinstance(outcome, CodeFound) and self._update is not None:
            self._found = outcome
            self._rows = view_search_results(self._update.state, outcome)
            index = self._update.live.index
            self._partial = index is not None and not (index.complete and index.files)
        results = self.query_one(ResultList)
        results.display = bool(self._rows)
        results.show_pieces(self._rows, empty="")
        results.select(0)
        if self._rows:
            results.focus()
        self._show()

    def _show(self) -> None:
        self.query_one(ResultList).show_pieces(self._rows, empty="")
        self.query_one("#find-said", Static).update(self._said())
        key = {action: self._keymap.first(Scope.FIND, action) for action in ("take", "expand", "ask", "close_found")}
        told = list(zip(key.values(), ("add or take back", "show", "search again", "close"), strict=True))
        self.show_keys(hint_line([("Enter", "search"), told[-1]] if self.query_one(Input).has_focus else told))

    def _said(self) -> str:
        live = self._update.live if self._update is not None else None
        progress = index_line(live.index) if live is not None and live.index is not None else ""
        if self._fixed or self._refused:
            return self._fixed or sanitize(self._refused, limit_chars=500)
        if not self._searching and self._found is None:
            return progress
        if self._searching:
            return " · ".join(filter(None, ("searching", progress)))
        added = sum(row.state is CodeState.PINNED for row in self._rows)
        pinned = f", {added} pinned: the model reads it with its next step" if added else ""
        if not self._partial:
            return f"{len(self._rows) or 'nothing'} found{pinned}"
        if self._rows:
            return f"{len(self._rows)} found{pinned} · {progress or INDEX_BEGINS}"
        return f"nothing found yet: {progress or INDEX_BEGINS}; ask again"

    async def on_input_submitted(self, message: Input.Submitted) -> None:
        asked = message.value.strip()
        if asked and not self._fixed:
            self._found, self._refused, self._rows = None, "", ()
            self._searching = True
            self._show()
            self.run_worker(self._search(asked), group="search", exclusive=True)

    def on_descendant_focus(self) -> None:
        self._show()

    async def action_take(self) -> None:
        piece = self.query_one(ResultList).selected_piece
        if piece is not None and not self._fixed:
            await self._want(piece.pin)

    def action_expand(self) -> None:
        self.query_one(ResultList).action_expand()

    def action_ask(self) -> None:
        self.query_one(Input).focus()

    def action_close_found(self) -> None:
        self.dismiss(None)


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
        file = replace(opened, text=sanitize(opened.text, limit_chars=MOST_FILE_CHARS))
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
