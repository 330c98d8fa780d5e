"""What the workbench shows of a task's changes and failures, and where one goes from there."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.core.intents import OpenFile
from agent_workbench.views.diff.review import reviewable, view_review

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab


async def show_place(tab: "SessionTab", place: CodePlace) -> None:
    """Show a line of a file: in the diff pane where the diff there holds it, else in the file as it is now."""
    from agent_workbench.tui.panes.diff import DiffPane
    from agent_workbench.tui.screens.file import FileScreen

    update, pane = tab.update_shown, tab.workbench.query_one(DiffPane)
    if update is None:
        return
    if pane.go_to_place(place):
        tab.workbench.focus_pane("diff")
    elif update.live.replay is not None or not update.state.unfinished:
        tab.tell(f"{place.path}:{place.line} is not in the diff, and no workspace is open", "warning")
    else:
        read = partial(tab.ask, OpenFile(place.path, place.line))
        tab.push_screen(FileScreen(f"{place.path}:{place.line}", tab.keymap, read))


async def show_review(tab: "SessionTab", task: str) -> None:
    """Show the changes of a task, or of the last one that has any, as one diff; say so where there are none."""
    from agent_workbench.tui.screens.review import ReviewScreen

    update = tab.update_shown
    run = reviewable(update.state, task) if update is not None else None
    if run is None:
        tab.tell("no diff was applied in this session", "warning")
    else:
        view = await asyncio.to_thread(view_review, run)
        tab.push_screen(ReviewScreen(view, tab.keymap, tab.workbench.go_to_entry))
