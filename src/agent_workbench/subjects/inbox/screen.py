"""Inbox screen: the proposals that wait in all sessions of the repository."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.inbox.view import InboxRow, view_inbox
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone

EMPTY = "nothing waits in the sessions of this repository"
LOADING = "reading the sessions"
AGE_CELLS, RISK_CELLS = 7, 6
RELOAD_SECONDS = 5.0
HINTS = {"open_item": "show", "open_its_session": "open here", "close_inbox": "close"}


class InboxList(EntryList):
    """Shows `InboxRow`s, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.INBOX

    def __init__(self) -> None:
        super().__init__(id="inbox-list")
        self._items: dict[str, InboxRow] = {}
        self._task_cells = 0

    def show(self, rows: Sequence[InboxRow], *, empty: str) -> None:
        """Show these rows."""
        self._items = {row.id: row for row in rows}
        self._task_cells = max((cell_len(row.task) for row in rows), default=0)
        # The entry holds all that is visible, so that a changed row is another entry.
        self.show_entries(tuple(Entry(row.id, (Block(repr(row)),)) for row in rows), empty=empty)
        if self.cursor < 0:
            self.select(0)

    @property
    def selected_row(self) -> InboxRow | None:
        """The selected row."""
        return self._items.get(self.selected.key) if self.selected is not None else None

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        row = self._items[entry.key]
        task = set_cell_size(row.task, self._task_cells)
        spans: tuple[Span, ...] = (
            (f"{row.risk:<{RISK_CELLS}}", row.risk_tone),
            (f"{row.age:>{AGE_CELLS}}  ", Tone.DIM),
            (f"{task}  ", Tone.STRONG),
        )
        room = width - sum(cell_len(text) for text, _ in spans) - cell_len(row.kind) - 2
        yield Row((*spans, (f"{row.kind}  ", Tone.ACCENT), (_cut(row.effect, room), Tone.PLAIN)), number)
        state = f"  {row.state}" if row.state else ""
        named = "  ".join(filter(None, (row.source, row.id)))
        about = _cut(f"{'':>{RISK_CELLS + AGE_CELLS}}  {named}", width - cell_len(state))
        yield Row(((about, Tone.DIM), (state, row.tone)), number)

    def action_expand(self) -> None:
        """Do nothing: proposals are opened by a key."""


class InboxScreen(Dialog[SessionRequest]):
    """Returns how the session of an item is opened, None if it was closed. `load` may raise `WorkbenchError`."""

    BINDINGS = bindings(Scope.INBOX)

    def __init__(self, keymap: Keymap, clock: Clock, load: Callable[[], Awaitable[Sequence[InboxItem]]]) -> None:
        hints = hint_line((keymap.first(Scope.INBOX, action), label) for action, label in HINTS.items())
        super().__init__("Inbox", hints, name="inbox")
        self._clock = clock
        self._load = load

    def body(self) -> Iterable[Widget]:
        return InboxList(), Static("", id="inbox-said", markup=False)

    def on_mount(self) -> None:
        self.query_one(InboxList).focus()
        self._say(LOADING)
        self.run_worker(self._show_items(), group="inbox")
        self.set_interval(RELOAD_SECONDS, self._reload)

    def _reload(self) -> None:
        """Show what came, and what was decided elsewhere."""
        self.run_worker(self._show_items(), group="inbox", exclusive=True)

    async def _show_items(self) -> None:
        """Read the inbox and show it; show an error in the screen."""
        try:
            rows = view_inbox(await self._load(), self._clock.now())
        except WorkbenchError as error:
            self._say(": ".join(filter(None, (str(error), error.advice))))
        else:
            self.query_one(InboxList).show(rows, empty=EMPTY)
            self._say("")

    def _say(self, text: str) -> None:
        said = self.query_one("#inbox-said", Static)
        said.display = bool(text)
        said.update(sanitize_line(text, 600))

    def action_open_item(self) -> None:
        self._open(OpenMode.FOLLOW)

    def action_open_its_session(self) -> None:
        self._open(OpenMode.RESUME)

    def _open(self, mode: OpenMode) -> None:
        row = self.query_one(InboxList).selected_row
        if row is not None and self.is_current:
            self.dismiss(SessionRequest(mode, row.item.session))

    def action_close_inbox(self) -> None:
        self.dismiss(None)


def _cut(text: str, cells: int) -> str:
    if cells < 2:
        return ""
    return text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1)}…"
