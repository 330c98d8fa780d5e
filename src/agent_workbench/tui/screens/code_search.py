"""Screen to search for code by path or words, or for a skill by its name, and to add it to the prompt."""

from collections.abc import Awaitable, Callable, Iterable

from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.intents import FindCode, Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import CodeFound, Outcome, Refused
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog, prompt_lock_reason
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.piece_list import PieceList
from agent_workbench.views.code import CodeRow, CodeState, index_line, view_search_results

MOST_CHARS = 2_000
INDEX_BEGINS = "the index has only begun"
HELP = "path, path:line, path:first-last, words to search for, or a skill"


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
