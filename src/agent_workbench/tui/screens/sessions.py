"""Recorded sessions of the repository: open, replay, fork, compare, export or verify one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.history.comparison import Comparison
from agent_workbench.core.history.journal_proof import JournalProof
from agent_workbench.core.history.summaries import PastSessions
from agent_workbench.core.ids import SessionId
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.session_list import SessionList
from agent_workbench.views.session_tree import SessionRow, view_sessions

EMPTY = "There is no session yet. Start a task, and it is recorded here."
LOADING = "reading the sessions"
HINTS = {
    "fork_session": "fork",
    "compare_session": "compare",
    "verify_session": "verify",
    "export_session": "export",
    "close_sessions": "close",
}


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
