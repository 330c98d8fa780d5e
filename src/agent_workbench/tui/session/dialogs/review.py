"""Dialogs about the changes and failures of a task: review, and files of the workspace."""

import asyncio
from functools import partial

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.core.intents import OpenFile
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.session.window import SessionWindow
from agent_workbench.views.sessions.read_only import read_only_reason


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
        from agent_workbench.views.diff.review import reviewable, view_review

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
