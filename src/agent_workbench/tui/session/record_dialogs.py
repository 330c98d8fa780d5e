"""Dialogs about changes and recorded sessions: hunks, review, files, comparison, fork, search, and pictures."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.errors import PatchError, WorkbenchError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import EditProposal, GoToEvent, OpenFile
from agent_workbench.core.patch.selection import hunk_text, with_hunk_text
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.panes.diff_viewer import HunkEditWanted, ReasonWanted
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.session.window import SessionWindow, UserDraft, is_read_only
from agent_workbench.tui.widgets.replay_bar import ReplayBar
from agent_workbench.views.sessions import read_only_reason

if TYPE_CHECKING:
    from agent_workbench.core.history.comparison import Comparison
    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.tui.screens.dialog import Dialog
    from agent_workbench.tui.screens.review import ChosenMatch


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
        from agent_workbench.tui.screens.review import RecordingSearchScreen

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


class ReviewDialogs:
    """Dialogs about what a session changed, and what failed."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show_place(self, place: CodePlace) -> None:
        """Show a line of a file: in the diff pane if the diff has it, else in the file as it is now."""
        from agent_workbench.tui.screens.code import FileScreen

        window = self._window
        update = window.update_shown
        if update is None:
            return
        if window.workbench.query_one(DiffPane).go_to_place(place):
            window.workbench.focus_pane("diff")
        elif read_only_reason(update.live) or not update.state.unfinished:
            window.tell(f"{place.path}:{place.line} is not in the diff, and no workspace is open", "warning")
        else:
            read = partial(window.ask, OpenFile(place.path, place.line))
            window.push_screen(FileScreen(f"{place.path}:{place.line}", window.keymap, read))

    async def show_review(self) -> None:
        """Show the changes of the task selected in the focused plan, else of the last task that has any."""
        from agent_workbench.tui.screens.review import ReviewScreen
        from agent_workbench.views.task_review import reviewable, view_review

        window = self._window
        plan, update = window.workbench.query_one(PlanPane), window.update_shown
        row = plan.selected_row if plan.has_focus else None
        run = reviewable(update.state, row.id if row is not None else "") if update is not None else None
        if run is None:
            window.tell("no diff was applied in this session", "warning")
        else:
            view = await asyncio.to_thread(view_review, run)
            window.push_screen(ReviewScreen(view, window.keymap, self._go_to_entry))

    def _go_to_entry(self, key: str) -> None:
        """Show an entry of the steps, selected."""
        self._window.workbench.focus_pane("steps")
        self._window.workbench.query_one(StepsPane).go_to(key)


class HunkDialogs:
    """Dialogs about hunks in the diff pane of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def ask_reason(self, message: ReasonWanted) -> None:
        """Ask why hunks are left out; Esc takes them again, or keeps a reason that they have."""
        from agent_workbench.tui.screens.dialog import ReasonDialog

        pane = self._window.workbench.query_one(DiffPane)
        shown = pane.view.proposal

        def explain(reason: str | None) -> None:
            if pane.view.proposal == shown and (reason is not None or not message.known):
                pane.hunks.explain(message.ids, None if reason is None else reason.strip())

        enter, escape = "leave it out, with or without a reason", "as it was" if message.known else "take it again"
        asks = "why, in a line; the model reads it when the rest is approved"
        update = self._window.update_shown
        waiting = update.state.waiting if update is not None else None
        about = waiting.id if waiting is not None else None
        dialog = ReasonDialog(f"Leave {message.what} out", enter, escape, asks, message.reason, about=about)
        self._window.push_screen(dialog, explain)

    async def edit(self, message: HunkEditWanted) -> None:
        """Let the user edit one hunk; the whole diff with it replaces the proposal."""
        from agent_workbench.tui.screens.dialog import EditDialog

        update = self._window.update_shown
        run = update.state.run if update is not None else None
        if run is None or run.gate.waiting is None or is_read_only(self._window):
            return
        proposal, before = run.gate.waiting, hunk_text(message.patch, message.hunk)

        async def replace(text: str | None) -> None:
            if text is not None and text != before:
                await self._replace(proposal, message, text)

        if message.outside:
            await replace(await self._window.edit_outside(before, ".diff"))
            return
        remark = "Each line begins with a space, + or -. It is shown again before it counts."
        self._window.push_screen(EditDialog(f"Edit {message.what}", before, remark), replace)

    async def _replace(self, proposal: Proposal, message: HunkEditWanted, text: str) -> None:
        try:
            diff = with_hunk_text(message.patch, message.hunk, text)
        except PatchError as error:
            self._window.tell(f"{error}. {error.advice}", "warning")
            return
        if not diff:
            self._window.tell("nothing would be left of the diff; reject it instead", "warning")
            return
        self._window.draft = UserDraft(proposal, diff)
        await self._window.want(EditProposal(proposal.id, diff))
