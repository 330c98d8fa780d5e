"""Code that the user wants before the model: asked for by its place or by words, chosen from what is found."""

from collections.abc import Awaitable, Callable, Iterable

from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.intents import FindCode, Intent, PinChunk
from agent_workbench.core.live import FoundCode, SessionUpdate
from agent_workbench.tui.dialogs.dialog import Dialog, why_fixed
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.piece_list import PieceList
from agent_workbench.views.code.code_pane import CodeRow, CodeState, view_search_results
from agent_workbench.views.code.reasons import index_line

MOST_CHARS = 2_000
INDEX_BEGINS = "the index has only begun"
HELP = "path, path:line, path:first-last, or words to search for"


class FoundList(PieceList):
    """What was found; Enter is the screen's."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.FIND


class FindScreen(Dialog[None]):
    """Hands on what is asked for and what is taken of it; goes on with the session."""

    BINDINGS = bindings(Scope.FIND)

    def __init__(self, keymap: Keymap, want: Callable[[Intent], Awaitable[None]]) -> None:
        super().__init__("Put code before the model", "", name="find")
        self._keymap = keymap
        self._want = want
        self._fixed = ""
        self._seen = 0
        self._searching = False
        self._partial = False
        self._rows: tuple[CodeRow, ...] = ()
        self._update: SessionUpdate | None = None

    def body(self) -> Iterable[Widget]:
        found = FoundList(id="found")
        found.display = False
        return Input(placeholder=HELP, max_length=MOST_CHARS, compact=True), Static("", id="find-said"), found

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._show()

    def show(self, update: SessionUpdate) -> None:
        """Show what was found since the screen stands, and what of it the model sees."""
        first = self._update is None
        self._update = update
        self._fixed = why_fixed(update)
        found = update.live.found
        if first:
            self._seen = found.number if found is not None else 0
        elif found is not None and found.number > self._seen:
            self._take(found, update)
        if self.is_mounted:
            self._show()

    def _take(self, found: FoundCode, update: SessionUpdate) -> None:
        self._rows = view_search_results(update.state, found)
        if self._searching:
            index = update.live.index
            self._partial = index is not None and not (index.complete and index.files)
            self._searching = False
            shown = self.query_one(FoundList)
            shown.display = bool(self._rows)
            shown.show_pieces(self._rows, empty="")
            shown.select(0)
            if self._rows:
                shown.focus()

    def _show(self) -> None:
        self.query_one(FoundList).show_pieces(self._rows, empty="")
        self.query_one("#find-said", Static).update(self._said())
        key = {action: self._keymap.first(Scope.FIND, action) for action in ("take", "expand", "ask", "close_found")}
        close = f"{key['close_found']} closes"
        if self.query_one(Input).has_focus:
            self.show_keys(f"Enter searches   {close}")
        else:
            told = f"{key['take']} adds or takes back   {key['expand']} shows   {key['ask']} asks again"
            self.show_keys(f"{told}   {close}")

    def _said(self) -> str:
        live = self._update.live if self._update is not None else None
        progress = index_line(live.index) if live is not None and live.index is not None else ""
        if self._fixed or not (self._searching or self._rows or self._answered):
            return self._fixed or progress
        if self._searching:
            return " · ".join(filter(None, ("searching", progress)))
        added = sum(row.standing is CodeState.PINNED for row in self._rows)
        pinned = f", {added} pinned: the model reads it with its next step" if added else ""
        if not self._partial:
            return f"{len(self._rows) or 'nothing'} found{pinned}"
        if self._rows:
            return f"{len(self._rows)} found{pinned} · {progress or INDEX_BEGINS}"
        return f"nothing found yet: {progress or INDEX_BEGINS}; ask again"

    @property
    def _answered(self) -> bool:
        found = self._update.live.found if self._update is not None else None
        return found is not None and found.number > self._seen

    async def on_input_submitted(self, message: Input.Submitted) -> None:
        asked = message.value.strip()
        if asked and not self._fixed:
            found = self._update.live.found if self._update is not None else None
            self._seen = found.number if found is not None else 0
            self._searching = True
            self._rows = ()
            self._show()
            await self._want(FindCode(asked))

    def on_descendant_focus(self) -> None:
        self._show()

    async def action_take(self) -> None:
        piece = self.query_one(FoundList).selected_piece
        if piece is not None and not self._fixed:
            await self._want(PinChunk(piece.place, piece.standing is not CodeState.PINNED))

    def action_expand(self) -> None:
        self.query_one(FoundList).action_expand()

    def action_ask(self) -> None:
        self.query_one(Input).focus()

    def action_close_found(self) -> None:
        self.dismiss(None)
