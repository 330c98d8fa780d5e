"""Dialogs about recorded sessions: list, comparison, fork, search, and pictures of the screen."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import GoToEvent
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.tui.session.window import SessionWindow
from agent_workbench.tui.widgets.replay_bar import ReplayBar

if TYPE_CHECKING:
    from agent_workbench.core.history.comparison import Comparison
    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.tui.screens.dialog import Dialog
    from agent_workbench.tui.screens.recording_search import ChosenMatch

NO_PICTURE = "a picture cannot be saved here; `agent sessions export --format svg` makes one"
NO_SESSIONS = "the sessions of this repository are not available here; `agent sessions` lists them"


class RecordDialogs:
    """Dialogs about the sessions of the repository, and about a recording that is replayed."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show_sessions(self) -> None:
        """List the sessions; a chosen one opens in a tab of its own."""
        from agent_workbench.tui.screens.sessions import SessionsScreen

        keymap = self._window.keymap
        self._choose(lambda past, here: SessionsScreen(keymap, past, here, self.fork, self._show_comparison))

    def show_audit(self) -> None:
        """List what the sessions record; a chosen record's session is replayed in a tab of its own."""
        from agent_workbench.subjects.audit.screen import AuditScreen

        self._choose(lambda past, here: AuditScreen(self._window.keymap, past, here))

    def _choose(self, listed: "Callable[[PastSessions, SessionId], Dialog[SessionRequest]]") -> None:
        """Show a list of the sessions, with the one that is open here; a chosen one opens in a tab of its own."""
        window = self._window
        if window.past is None:
            window.tell(NO_SESSIONS, "warning")
            return
        here = window.update_shown.state.session if window.update_shown is not None else SessionId("")

        async def go(request: SessionRequest | None) -> None:
            if request is not None:
                await window.open_session(request)

        window.push_screen(listed(window.past, here), go)

    def _show_comparison(self, comparison: "Comparison") -> None:
        from agent_workbench.tui.screens.review import ComparisonScreen

        self._window.push_screen(ComparisonScreen(comparison, self._window.keymap))

    def save_picture(self) -> None:
        """Save a picture of the screen as it is now, and tell the user where."""
        window = self._window
        update = window.update_shown
        if window.past is None or update is None:
            window.tell(NO_PICTURE, "warning")
            return
        state = update.state
        picture = window.picture(f"session {state.session} at event {state.seq}, {state.time[:19]}Z")
        window.run_worker(self._save(window.past.keep_picture(state.session, state.seq, picture)), group="picture")

    async def _save(self, saving: Coroutine[None, None, str]) -> None:
        try:
            self._window.tell(f"the picture is in {await saving}")
        except WorkbenchError as error:
            self._window.tell(with_advice(error), "error")

    def search(self) -> None:
        """Let the user search the replayed recording, and go to a match."""
        from agent_workbench.tui.screens.recording_search import RecordingSearchScreen

        window = self._window
        update = window.update_shown
        # A key that was queued opens no second screen.
        if update is None or update.live.replay is None or window.screen is not window.workbench:
            return

        async def go(chosen: "ChosenMatch | None") -> None:
            if chosen is not None:
                window.workbench.query_one(ReplayBar).take_matches(chosen.asked, chosen.seqs)
                await window.want(GoToEvent(chosen.seq))

        window.push_screen(RecordingSearchScreen(window.keymap, update.live.replay), go)

    def fork_here(self) -> None:
        """Ask about a fork of the replayed recording at its current event."""
        update = self._window.update_shown
        if update is not None and update.live.replay is not None:
            self.fork(update.state.session, update.live.replay.seq)

    def fork(self, session: SessionId, at: int | None = None) -> None:
        """Ask about a fork of a session after event `at` (None: its last)."""
        self._window.run_worker(self._confirm_fork(session, at), group="fork", exclusive=True)

    async def _confirm_fork(self, session: SessionId, at: int | None) -> None:
        from agent_workbench.tui.screens.dialog import ConfirmDialog

        window = self._window
        if window.past is None:
            window.tell(NO_SESSIONS, "warning")
            return
        try:
            lines = await window.past.foresee_fork(session, at)
        except WorkbenchError as error:
            window.tell(with_advice(error), "warning")
            return

        def answer(yes: bool | None) -> None:
            if yes:
                window.run_worker(self._fork(session, at), group="forking")

        window.push_screen(
            ConfirmDialog("Fork this session?", lines, window.clock, yes="fork it and go on there"), answer
        )

    async def _fork(self, session: SessionId, at: int | None) -> None:
        if self._window.past is None:
            return
        try:
            child = await self._window.past.fork(session, at)
        except WorkbenchError as error:
            self._window.tell(with_advice(error), "error")
            return
        await self._window.open_session(SessionRequest(session=child))


def with_advice(error: WorkbenchError) -> str:
    """Return an error with its advice, a line each."""
    return "\n".join(filter(None, (str(error), error.advice)))
