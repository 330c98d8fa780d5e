"""Dialogs about changes: one hunk of a proposed diff, the review of a task, and files of the workspace."""

import asyncio
from functools import partial

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.errors import PatchError
from agent_workbench.core.intents import EditProposal, OpenFile
from agent_workbench.core.patch.selection import hunk_text, with_hunk_text
from agent_workbench.core.proposals import Proposal
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.panes.diff_viewer import HunkEditWanted, ReasonWanted
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.session.window import SessionWindow, UserDraft, is_read_only
from agent_workbench.views.session_tabs import read_only_reason


class ReviewDialogs:
    """Dialogs about what a session changed, and what failed."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show_place(self, place: CodePlace) -> None:
        """Show a line of a file: in the diff pane if the diff has it, else in the file as it is now."""
        from agent_workbench.tui.screens.file import FileScreen

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
