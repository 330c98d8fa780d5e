"""Receipt of a prompt: a table of its parts, what the server read of them, and what can be dropped."""

from collections.abc import Awaitable, Callable, Iterable

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.intents import Intent, PauseTask, PreviewPrompt
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Outcome, PromptPreviewed, Refused
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.state.session_state import Phase, SessionState
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog, prompt_lock_reason
from agent_workbench.tui.widgets.bar import SEPARATOR
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.row_list import Readiness, queued_seconds
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.receipt import (
    CompactionEstimate,
    ReceiptRow,
    ReceiptView,
    head_lines,
    view_next_prompt,
    view_receipt,
)

TOKENS_CELLS = 9
SECONDS_CELLS = 8
MARK_CELLS = 8
WIDE_CELLS = 100


class ReceiptScreen(Dialog[None]):
    """Shows the newest prompt until another is chosen; pins, drops and adds code, and starts a compaction.

    While the first prompt of a task waits to be sent, it shows that one, and sends it.
    """

    BINDINGS = bindings(Scope.RECEIPT)

    def __init__(
        self,
        keymap: Keymap,
        clock: Clock,
        *,
        want: Callable[[Intent], Awaitable[None]],
        ask: Callable[[Intent], Awaitable[Outcome]],
        compact: Callable[[CompactionEstimate], None],
        add_code: Callable[[], None],
    ) -> None:
        super().__init__("Context", "", name="receipt")
        self._keymap = keymap
        self._readiness = Readiness(clock)
        self._want = want
        self._ask = ask
        self._compact = compact
        self._add_code = add_code
        self._fixed = ""
        self._number = 0
        self._state: SessionState | None = None
        self._view: ReceiptView | None = None
        self._preview: PromptPreviewed | Refused | None = None
        self._previewed_seq = -1
        self._pressed_at: float | None = None

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

    def on_screen_resume(self) -> None:
        """Show again what another screen covered and may have changed."""
        self._show()

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self._pressed_at = event.time

    @property
    def _awaits_send(self) -> bool:
        """True while the first prompt of the task waits to be sent."""
        run = self._state.run if self._state is not None else None
        return not self._fixed and run is not None and run.awaits_send

    @property
    def ready_to_send(self) -> bool:
        """True if the prompt that waits is shown, or why it cannot be."""
        return self._awaits_send and self._preview is not None

    def _show(self) -> None:
        if self._state is None:
            return
        next_one = self._awaits_send and not self._number
        if next_one:
            self._ask_preview(self._state)
        view = self._next_prompt(self._state) if next_one else view_receipt(self._state, self._number)
        self._view = view
        if view is None:
            refused = self._preview.reason if isinstance(self._preview, Refused) else "counting its tokens"
            said = sanitize_line(refused, 400) if next_one else "there is no such prompt here"
            self.query_one("#receipt-head", Static).update(said)
            self._show_hints()
            return
        which = f"prompt {view.number:,} of {view.count:,}" if view.sent else "what is sent first"
        title = f"Context · {which} · step {view.step} · {view.purpose}"
        self.query_one(".frame").border_title = Content(title)
        self.query_one("#receipt-head", Static).update("\n".join(head_lines(view)))
        self.query_one(ReceiptList).show(view)
        self._show_hints()

    def _ask_preview(self, state: SessionState) -> None:
        """Ask for the next prompt, once for each state; not while another screen, which asks too, is above."""
        if self._previewed_seq != state.seq and self.app.screen is self:
            self._previewed_seq = state.seq
            self.run_worker(self._take_preview(), group="preview", exclusive=True)

    async def _take_preview(self) -> None:
        outcome = await self._ask(PreviewPrompt())
        if isinstance(outcome, PromptPreviewed | Refused):
            self._preview = outcome
            self._show()
            self.call_after_refresh(self._readiness.painted, PREVIEW)

    def _next_prompt(self, state: SessionState) -> ReceiptView | None:
        return view_next_prompt(state, self._preview) if isinstance(self._preview, PromptPreviewed) else None

    def on_receipt_list_selected(self) -> None:
        self._show_hints()

    def _show_hints(self) -> None:
        row = self.query_one(ReceiptList).selected_row
        key = {action: self._keymap.first(Scope.RECEIPT, action) for action in ACTIONS}
        turn = f"prompts: {key['prompt_before']} {key['prompt_after']}"
        close = f"close: {key['close']}"
        if self._awaits_send and not self._number:
            own = _row_hints(row, key, saved=False) if self._view is not None else ()
            self.show_keys(SEPARATOR.join((f"send: {key['send']}", *own, f"add: {key['add_code']}", close)))
            return
        if self._fixed:
            self.show_keys(SEPARATOR.join((turn, close)))
            return
        own = _row_hints(row, key)
        compacting = self._view.compacting if self._view is not None else None
        frees = compacting.frees if compacting is not None and not self._is_compacting else 0
        more = (f"summarize (frees {frees:,}): {key['compact']}",) if frees else ()
        self.show_keys(SEPARATOR.join((*own, *more, turn, close)))

    @property
    def _is_compacting(self) -> bool:
        """True from the request for a summary until it is in the prompt."""
        run = self._state.run if self._state is not None else None
        return run is not None and (run.phase is Phase.COMPACTING or run.compaction_asked)

    async def action_pin(self) -> None:
        row = self._piece()
        if row is not None:
            await self._want(row.pin)

    async def action_drop(self) -> None:
        row = self._piece()
        if row is not None and not row.dropped:
            await self._want(row.drop)

    def _piece(self) -> ReceiptRow | None:
        row = self.query_one(ReceiptList).selected_row
        if self._fixed:
            self.show_keys(self._fixed)
        elif row is None or not row.changeable:
            self.show_keys("only code and skills can be pinned and dropped: select one")
        else:
            return row
        return None

    def action_prompt_before(self) -> None:
        if self._view is not None and self._view.number > 1:
            self._turn_to(self._view.number - 1)

    def action_prompt_after(self) -> None:
        if self._view is not None and self._number:
            after, newest = self._view.number + 1, self._view.count + int(self._awaits_send)
            self._turn_to(after if after < newest else 0)

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

    def action_add_code(self) -> None:
        if self._fixed:
            self.show_keys(self._fixed)
        else:
            self._add_code()

    async def action_send(self) -> None:
        """Send the first prompt, if it was on screen long enough."""
        queued = 0.0 if self._pressed_at is None else queued_seconds(self._pressed_at)
        if not self._awaits_send:
            self.show_keys("this prompt was sent before")
        elif not self.ready_to_send:
            self.show_keys("its tokens are still being counted")
        elif not self._readiness.ready(PREVIEW, queued):
            self.show_keys("too quick: this has only just appeared")
        else:
            await self._want(PauseTask(paused=False))
            self.dismiss(None)

    def action_close(self) -> None:
        self.dismiss(None)


ACTIONS = ("pin", "drop", "prompt_before", "prompt_after", "compact", "close", "send", "add_code")
PREVIEW = "preview"


def _row_hints(row: ReceiptRow | None, key: dict[str, str], *, saved: bool = True) -> tuple[str, ...]:
    """Return the hints for a row; `saved`: with the tokens that dropping it frees at the next summary."""
    if row is None or not row.changeable:
        return ()
    if row.skill:
        return (f"add: {key['pin']}" if row.dropped else f"drop: {key['drop']}",)
    pin = f"{'unpin' if row.pinned else 'pin'}: {key['pin']}"
    if row.dropped:
        return (pin,)
    frees = f" (frees {row.saves:,} at the next summary)" if row.saves and saved else ""
    return pin, f"drop{frees}: {key['drop']}"


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
