"""Recorded sessions of the repository, as a tree: open, replay, fork, compare, export or verify one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.history.comparison import Comparison
from agent_workbench.core.history.journal_proof import JournalProof, Proof
from agent_workbench.core.history.summaries import PastSessions
from agent_workbench.core.ids import SessionId
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.reports.proofs import WORDS, journal_proof_lines
from agent_workbench.views.sessions import SessionRow, view_sessions

EMPTY = "There is no session yet. Start a task, and it is recorded here."
LOADING = "reading the sessions"
HINTS = {
    "fork_session": "fork",
    "compare_session": "compare",
    "verify_session": "verify",
    "export_session": "export",
    "close_sessions": "close",
}

# Each includes the blank before the next column, because texts are not cut to their columns.
STATE_CELLS = 10
WHEN_CELLS = 18
STEPS_CELLS = 10
TOKENS_CELLS = 16
WIDE_CELLS = 100
PROOFS = {Proof.GREEN: ("✓", Tone.GOOD), Proof.RED: ("✗", Tone.BAD), Proof.UNPROVABLE: ("?", Tone.WARN)}


class SessionsScreen(Dialog[SessionRequest]):
    """Returns the session to open, None if it was closed. `here` is the session in front.

    `fork` asks about a fork of a session and makes it, `show` opens a comparison above this screen.
    """

    BINDINGS = bindings(Scope.SESSIONS)

    def __init__(
        self,
        keymap: Keymap,
        sessions: PastSessions,
        here: SessionId,
        fork: Callable[[SessionId], None],
        show: Callable[[Comparison], None],
    ) -> None:
        super().__init__("Sessions", "", name="sessions")
        self._keymap = keymap
        self._sessions = sessions
        self._here = here
        self._fork = fork
        self._show_comparison = show
        self._marked: SessionId | None = None
        self._rows: tuple[SessionRow, ...] = ()
        self._found: dict[SessionId, JournalProof] = {}
        self._said = LOADING
        self._turn = asyncio.Lock()

    def body(self) -> Iterable[Widget]:
        return SessionList(id="session-list"), Static("", id="sessions-said", markup=False)

    def on_mount(self) -> None:
        self.query_one(SessionList).focus()
        self._show()
        self._do(self._load())

    def _do(self, doing: Coroutine[None, None, None]) -> None:
        """Run an action in the background, after those before it; show an error in the screen."""

        async def guarded() -> None:
            async with self._turn:
                try:
                    await doing
                except WorkbenchError as error:
                    self._say(": ".join(filter(None, (str(error), error.advice))))

        self.run_worker(guarded(), group="sessions")

    async def _load(self) -> None:
        self._rows = view_sessions(await self._sessions.summaries())
        self._say("")
        places = {row.summary.id: number for number, row in enumerate(self._rows)}
        self.query_one(SessionList).select(places.get(self._here, 0))

    def _say(self, said: str) -> None:
        self._said = sanitize_line(said, 600)
        self._show()

    def _show(self) -> None:
        shown = self.query_one(SessionList)
        shown.show(self._rows, self._found, self._here, self._marked, empty="" if self._said else EMPTY)
        said = self.query_one("#sessions-said", Static)
        said.display = bool(self._said)
        said.update(self._said)
        self._show_hints()

    def on_session_list_selected(self) -> None:
        self._show_hints()

    def _show_hints(self) -> None:
        row = self._selected
        again = "replay"
        opens = {"open_session": "resume", "see_again": again} if row is not None and row.resumable else {}
        if row is not None and row.summary.holder:
            opens = {"open_session": "follow", "see_again": again}
        says = (opens or {"open_session": again}) | HINTS
        self.show_keys(hint_line((self._keymap.first(Scope.SESSIONS, action), said) for action, said in says.items()))

    @property
    def _selected(self) -> SessionRow | None:
        return self.query_one(SessionList).selected_session

    def action_open_session(self) -> None:
        row = self._selected
        if row is not None:
            mode = OpenMode.RESUME if row.resumable else OpenMode.REPLAY
            self._leave_for(row, OpenMode.FOLLOW if row.summary.holder else mode)

    def action_see_again(self) -> None:
        row = self._selected
        if row is not None:
            self._leave_for(row, OpenMode.REPLAY)

    def _leave_for(self, row: SessionRow, mode: OpenMode) -> None:
        if row.summary.id == self._here:
            self._say("this session is in front")
        elif row.summary.problem:
            self._say(row.summary.problem)
        else:
            self.dismiss(SessionRequest(mode, row.summary.id))

    def action_fork_session(self) -> None:
        row = self._selected
        if row is not None:
            self._fork(row.summary.id)

    def action_verify_session(self) -> None:
        row = self._selected
        if row is not None:
            self._do(self._verify(row.summary.id))

    async def _verify(self, session: SessionId) -> None:
        self._say(f"verifying {session}")
        self._found[session] = await self._sessions.verify(session)
        self._say("")

    def action_export_session(self) -> None:
        row = self._selected
        if row is not None:
            self._do(self._export(row.summary.id))

    async def _export(self, session: SessionId) -> None:
        self._say(f"written to {await self._sessions.export(session)}")

    def action_mark_session(self) -> None:
        """Mark the selected session for a comparison, or remove its mark."""
        row = self._selected
        if row is not None:
            self._marked = row.summary.id if row.summary.id != self._marked else None
            self._show()

    def action_compare_session(self) -> None:
        row = self._selected
        if row is None:
            return
        other = self._marked or row.summary.parent
        if other is None or other == row.summary.id:
            mark = self._keymap.first(Scope.SESSIONS, "mark_session")
            self._say(f"{mark} marks a session; then another one can be compared with it")
        else:
            self._do(self._compare(other, row.summary.id))

    async def _compare(self, first: SessionId, second: SessionId) -> None:
        self._say(f"comparing {first} with {second}")
        comparison = await self._sessions.compare(first, second)
        self._say("")
        self._show_comparison(comparison)

    def action_close_sessions(self) -> None:
        self.dismiss(None)


class SessionList(EntryList):
    """Shows `SessionRow`s, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.SESSIONS

    class Selected(Message):
        """A session was selected."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._sessions: dict[str, SessionRow] = {}
        self._found: Mapping[SessionId, JournalProof] = {}
        self._here = SessionId("")
        self._marked: SessionId | None = None
        self._name_cells = 0

    def show(
        self,
        rows: Sequence[SessionRow],
        found: Mapping[SessionId, JournalProof],
        here: SessionId,
        marked: SessionId | None = None,
        *,
        empty: str,
    ) -> None:
        """Show these sessions with their proofs (`found`); `here` is in front, `marked` is to be compared."""
        self._marked = marked
        self._sessions, self._found, self._here = {row.summary.id: row for row in rows}, dict(found), here
        self._name_cells = max((len(row.branch) + len(row.summary.id) for row in rows), default=0)
        # The entry holds all that is visible, so that a changed session is another entry.
        entries = tuple(
            Entry(row.summary.id, (Block(f"{row}{found.get(row.summary.id)}{row.summary.id == marked}"),))
            for row in rows
        )
        self.show_entries(entries, empty=empty)

    @property
    def selected_session(self) -> SessionRow | None:
        """The selected session."""
        return self._sessions[self.selected.key] if self.selected is not None else None

    def selection_changed(self) -> None:
        self.post_message(self.Selected())

    def action_expand(self) -> None:
        """Do nothing: sessions cannot be expanded."""

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        row = self._sessions[entry.key]
        summary = row.summary
        here = summary.id == self._here
        gap = " " * (self._name_cells - len(row.branch) - len(summary.id) + 2)
        named = Tone.ACCENT if here else Tone.STRONG
        name: list[Span] = [(row.branch, Tone.DIM), (summary.id, named), (gap, Tone.DIM)]
        state: list[Span] = [(f"{row.glyph} {'here' if here else row.state} ".ljust(STATE_CELLS), row.tone)]
        figures: list[Span] = [(f"{row.when:<{WHEN_CELLS}}", Tone.DIM)]
        if width >= WIDE_CELLS:
            steps, tokens = counted_text(summary.steps, "step"), counted_text(summary.tokens, "token")
            figures += [(f" {steps:>{STEPS_CELLS}} {tokens:>{TOKENS_CELLS}}  ", Tone.PLAIN)]
        spans = [*name, *state, *figures]
        room = max(8, width - sum(cell_len(text) for text, _ in spans))
        task = _cut(sanitize_line(row.task), room)
        origin = _cut(row.origin, max(0, room - cell_len(task) - 2)) if row.origin else ""
        yield Row((*spans, (task, Tone.PLAIN), (f"  {origin}" if origin else "", Tone.DIM)), number)
        indent = " " * (cell_len(row.branch) + 2)
        for text, tone in self._below(row):
            yield Row(((indent, Tone.DIM), (_cut(text, width - len(indent)), tone)), number)

    def _below(self, row: SessionRow) -> Iterable[Span]:
        if row.note and row.summary.id != self._here:
            yield row.note, Tone.BAD if row.summary.problem else Tone.DIM
        if row.summary.id == self._marked:
            yield "marked: another one is compared with it", Tone.ACCENT
        if row.summary.id in self._found:
            yield from self._proved(self._found[row.summary.id])

    def _proved(self, found: JournalProof) -> Iterable[Span]:
        glyph, tone = PROOFS[found.proof]
        said = next(journal_proof_lines(found))
        yield f"{glyph} {WORDS[found.proof]}: {said}", tone


def _cut(text: str, cells: int) -> str:
    if cells < 2:
        return ""
    return text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1)}…"
