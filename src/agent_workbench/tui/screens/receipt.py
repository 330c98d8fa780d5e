"""Receipt of a prompt: its parts, what the server read of them, and what can be dropped."""

from collections.abc import Awaitable, Callable, Iterable

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.intents import DropChunk, Intent, PinChunk
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.session_state import Phase, SessionState
from agent_workbench.tui.dialogs.dialog import Dialog, prompt_lock_reason
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.receipt_list import ReceiptList
from agent_workbench.views.receipt.receipt import CompactionEstimate, ReceiptView, view_receipt
from agent_workbench.views.receipt.rows import ReceiptRow
from agent_workbench.views.receipt.text_lines import head_lines


class ReceiptScreen(Dialog[None]):
    """Shows the newest prompt until another is chosen. Pins and drops pieces of code, and starts a compaction."""

    BINDINGS = bindings(Scope.RECEIPT)

    def __init__(
        self, keymap: Keymap, want: Callable[[Intent], Awaitable[None]], compact: Callable[[CompactionEstimate], None]
    ) -> None:
        super().__init__("Context", "", name="receipt")
        self._keymap = keymap
        self._want = want
        self._compact = compact
        self._fixed = ""
        self._number = 0
        self._state: SessionState | None = None
        self._view: ReceiptView | None = None

    def body(self) -> Iterable[Widget]:
        return Static("", id="receipt-head", markup=False), ReceiptList(id="parts")

    def on_mount(self) -> None:
        self.query_one(ReceiptList).focus()
        self._show()

    def show(self, update: SessionUpdate) -> None:
        """Show the receipt of the current state; streamed text does not change it."""
        self._fixed = prompt_lock_reason(update)
        if update.state is not self._state:
            self._state = update.state
            if self.is_mounted:
                self._show()

    def _show(self) -> None:
        view = None if self._state is None else view_receipt(self._state, self._number)
        self._view = view
        if view is None:
            self.query_one("#receipt-head", Static).update("there is no such prompt here")
            return
        title = f"Context · prompt {view.number:,} of {view.count:,} · step {view.step} · {view.purpose}"
        self.query_one(".frame").border_title = Content(title)
        self.query_one("#receipt-head", Static).update("\n".join(head_lines(view)))
        self.query_one(ReceiptList).show(view)
        self._show_hints()

    def on_receipt_list_selected(self) -> None:
        self._show_hints()

    def _show_hints(self) -> None:
        row = self.query_one(ReceiptList).selected_row
        key = {action: self._keymap.first(Scope.RECEIPT, action) for action in ACTIONS}
        turn = f"{key['prompt_before']} {key['prompt_after']} prompts"
        close = f"{key['close']} close"
        if self._fixed:
            self.show_keys(f"{turn}   {close}")
            return
        own = _row_hints(row, key)
        compacting = self._view.compacting if self._view is not None else None
        frees = compacting.frees if compacting is not None and not self._is_compacting else 0
        more = (f"{key['compact']} summarize (frees {frees:,})",) if frees else ()
        self.show_keys("   ".join((*own, *more, turn, close)))

    @property
    def _is_compacting(self) -> bool:
        """True from the request for a summary until it is in the prompt."""
        run = self._state.run if self._state is not None else None
        return run is not None and (run.phase is Phase.COMPACTING or run.compaction_asked)

    async def action_pin(self) -> None:
        row = self._piece()
        if row is not None:
            await self._want(PinChunk(row.place, not row.pinned))

    async def action_drop(self) -> None:
        row = self._piece()
        if row is not None and not row.dropped:
            await self._want(DropChunk(row.place))

    def _piece(self) -> ReceiptRow | None:
        row = self.query_one(ReceiptList).selected_row
        if self._fixed:
            self.show_keys(self._fixed)
        elif row is None or not row.place:
            self.show_keys("only pieces of code can be pinned and dropped: select one")
        else:
            return row
        return None

    def action_prompt_before(self) -> None:
        if self._view is not None and self._view.number > 1:
            self._turn_to(self._view.number - 1)

    def action_prompt_after(self) -> None:
        if self._view is not None and self._number:
            after = self._view.number + 1
            self._turn_to(after if after < self._view.count else 0)

    def _turn_to(self, number: int) -> None:
        self._number = number
        self._show()

    def action_compact(self) -> None:
        compacting = self._view.compacting if self._view is not None else None
        if self._fixed:
            self.show_keys(self._fixed)
        elif self._is_compacting:
            self.show_keys("the older steps are already being summarized")
        elif compacting is None:
            self.show_keys("only the newest prompt can be summarized")
        elif not compacting.frees:
            self.show_keys("nothing in this prompt is old enough to summarize")
        else:
            self._compact(compacting)

    def action_close(self) -> None:
        self.dismiss(None)


ACTIONS = ("pin", "drop", "prompt_before", "prompt_after", "compact", "close")


def _row_hints(row: ReceiptRow | None, key: dict[str, str]) -> tuple[str, ...]:
    if row is None or not row.place:
        return ()
    pin = f"{key['pin']} {'unpin' if row.pinned else 'pin'}"
    if row.dropped:
        return (pin,)
    return pin, f"{key['drop']} drop" + (f" (frees {row.saves:,} at the next summary)" if row.saves else "")
