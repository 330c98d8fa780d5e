"""What the workbench shows of a task's changes and failures, and where one goes from there."""

from typing import TYPE_CHECKING

from agent_workbench.core.failure_tree import CodePlace
from agent_workbench.core.intents import OpenFile
from agent_workbench.core.views.review import reviewable, view_review

if TYPE_CHECKING:
    from agent_workbench.tui.app import WorkbenchApp


async def show_place(app: "WorkbenchApp", place: CodePlace) -> None:
    """Show a line of a file: in the diff pane where the diff there holds it, else in the file as it is now."""
    from agent_workbench.tui.panes.diff import DiffPane
    from agent_workbench.tui.screens.file import FileScreen

    update, pane = app.update_shown, app.workbench.query_one(DiffPane)
    if update is None:
        return
    if pane.go_to_place(place):
        app.workbench.focus_pane("diff")
    elif update.live.replay is not None or not update.state.unfinished:
        app.tell(f"{place.path}:{place.line} is not in the diff, and no workspace is open", "warning")
    else:
        screen = FileScreen(f"{place.path}:{place.line}", app.keymap)
        screen.show(update)
        app.push_screen(screen)
        await app.want(OpenFile(place.path, place.line))


def show_review(app: "WorkbenchApp", task: str) -> None:
    """Show the changes of a task, or of the last one that has any, as one diff; say so where there are none."""
    from agent_workbench.tui.screens.review import ReviewScreen

    update = app.update_shown
    run = reviewable(update.state, task) if update is not None else None
    if run is None:
        app.tell("no diff was applied in this session", "warning")
    else:
        app.push_screen(ReviewScreen(view_review(run), app.keymap, app.workbench.go_to_entry))
