"""Screen of one piece of retrieved code: why it was retrieved, and its lines with the search words marked."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from textual.content import Content
from textual.widget import Widget

from agent_workbench.core.intents import Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog, prompt_lock_reason
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.code_colours import Lines, coloured_lines
from agent_workbench.tui.widgets.piece_rows import LABEL_CELLS, code_rows, reason_rows
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Tone
from agent_workbench.views.code import CodeRow, CodeState, view_code


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
