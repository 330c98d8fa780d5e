"""Dialogs about the running task: abort, undo, scratchpad, and messages to the model."""

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import AbortTask, EditScratchpad, SayToModel, UndoStep
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import last_applied_diff
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.session.window import SessionWindow, has_open_task
from agent_workbench.views.diff.lines import diff_stat

MOST_PATHS = 8


class TaskDialogs:
    """Dialogs about the task of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    @property
    def _run(self) -> TaskRun | None:
        update = self._window.update_shown
        return update.state.run if update is not None else None

    def abort(self) -> None:
        """Ask whether the task is aborted."""
        from agent_workbench.tui.dialogs.confirm import ConfirmDialog

        update, run = self._window.update_shown, self._run
        if run is not None and run.merging and update is not None and not update.state.unfinished:
            self._window.tell(f"{run.task} is being merged; a merge cannot be aborted", "warning")
            return
        if update is None or not update.state.unfinished:
            self._window.tell("no task is being worked on", "warning")
            return
        task = sanitize_line(f"{run.task}  {run.definition.description}") if run is not None else "the task"
        lines = (task, "", "Its workspace goes back to where it began. What was tried stays in the journal.")

        async def abort(yes: bool | None) -> None:
            if yes:
                await self._window.want(AbortTask())

        self._window.push_screen(ConfirmDialog("Abort the task?", lines, self._window.clock), abort)

    def undo(self) -> None:
        """Ask whether the diff that was applied last is undone."""
        if not has_open_task(self._window):
            return
        last = last_applied_diff(self._run) if self._run is not None else None
        if last is None:
            self._window.tell("no diff is applied that could be undone", "warning")
        else:
            self._confirm_undo(last.proposal)

    def _confirm_undo(self, proposal: Proposal) -> None:
        from agent_workbench.tui.dialogs.confirm import ConfirmDialog

        run = self._run
        waits = run is not None and run.waiting is not None and run.waiting.kind is not Permission.SUMMARY
        lines = (
            *(sanitize_line(path, 200) for path in proposal.paths[:MOST_PATHS]),
            *((f"and {len(proposal.paths) - MOST_PATHS} more files",) if len(proposal.paths) > MOST_PATHS else ()),
            str(diff_stat(proposal.diff)),
            "",
            "The files go back to what they were before it, and the model is told. The diff stays in the journal.",
            *(("The pending proposal was made on these files, and is rejected.",) if waits else ()),
        )

        async def undo(yes: bool | None) -> None:
            if yes:
                await self._window.want(UndoStep(proposal.id))

        self._window.push_screen(
            ConfirmDialog(f"Undo the diff of step {proposal.step}?", lines, self._window.clock), undo
        )

    def edit_notes(self, task: TaskId, text: str) -> None:
        """Let the user edit the scratchpad of a task."""
        from agent_workbench.tui.dialogs.text_edit import EditDialog

        async def keep(written: str | None) -> None:
            if written is not None and written != text:
                await self._window.want(EditScratchpad(task, text, written))

        # Notes are added to more often than they are changed.
        remark = "The model reads it with its next step."
        self._window.push_screen(EditDialog(f"Scratchpad of {task}", text, remark, at_end=True), keep)

    def tell_model(self) -> None:
        """Let the user write a message to the model."""
        from agent_workbench.tui.dialogs.message import MessageDialog

        if not has_open_task(self._window):
            return

        async def send(text: str | None) -> None:
            if text is not None:
                await self._window.want(SayToModel(text))

        self._window.push_screen(MessageDialog(), send)
