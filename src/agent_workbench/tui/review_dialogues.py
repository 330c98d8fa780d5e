"""What the workbench shows of a task's changes and failures, and where one goes from there."""

from typing import TYPE_CHECKING

from agent_workbench.core.views.review import reviewable, view_review

if TYPE_CHECKING:
    from agent_workbench.tui.app import WorkbenchApp


def show_review(app: "WorkbenchApp", task: str) -> None:
    """Show the changes of a task (empty: of the one worked on last) as one diff; say so where there are none."""
    from agent_workbench.tui.screens.review import ReviewScreen

    update = app.update_shown
    run = reviewable(update.state, task) if update is not None else None
    if run is None:
        app.tell(f"no diff{f' of {task}' if task else ''} was applied in this session", "warning")
    else:
        app.push_screen(ReviewScreen(view_review(run), app.keymap, app.workbench.go_to_entry))
