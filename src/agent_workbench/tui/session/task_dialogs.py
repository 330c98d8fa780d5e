"""Dialogs about the running task, and the input line that says something to the model or makes a new task."""

from typing import TYPE_CHECKING

from agent_workbench.core.consult_requests import OFFERED
from agent_workbench.core.custom_prompts import named_call
from agent_workbench.core.events import UserSaid
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    AbortTask,
    AddTask,
    DraftTask,
    EditScratchpad,
    ExpandPrompt,
    Intent,
    OpenPlan,
    PauseTask,
    SayToModel,
    StartTask,
    UndoStep,
)
from agent_workbench.core.outcomes import Outcome, PromptExpanded, Refused, TaskAdded, TaskDrafted
from agent_workbench.core.plan import Task, TaskDraft
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import last_applied_diff
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.session.window import SessionWindow, has_open_task, is_chat, is_read_only
from agent_workbench.views.diff_document import diff_stat
from agent_workbench.views.sessions import read_only_reason

if TYPE_CHECKING:
    from agent_workbench.tui.palette import LineCommand

MOST_PATHS = 8


class TaskDialogs:
    """Dialogs about the task of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window
        self._unsent = ""
        self.early_words = ""

    @property
    def _run(self) -> TaskRun | None:
        update = self._window.update_shown
        return update.state.run if update is not None else None

    def abort(self) -> None:
        """Ask whether the task is aborted."""
        from agent_workbench.tui.screens.dialog import ConfirmDialog

        update, run = self._window.update_shown, self._run
        if is_read_only(self._window):
            return
        free = update is not None and (update.state.open_planning is not None or update.state.in_chat)
        if free:
            # Nothing is lost by it: a plan, or an answer, can be asked for again.
            self._window.run_worker(self._window.want(AbortTask()), group="abort")
            return
        if run is not None and run.merging and update is not None and not update.state.unfinished:
            self._window.tell(f"{run.task} is being merged; a merge cannot be aborted", "warning")
            return
        if update is None or not update.state.unfinished:
            self._window.tell("no task is being worked on", "warning")
            return
        task = sanitize_line(f"{run.task}  {run.definition.title}") if run is not None else "the task"
        lines = (task, "", "Its workspace goes back to where it began. What was tried stays in the journal.")

        async def abort(yes: bool | None) -> None:
            if yes:
                await self._window.want(AbortTask())

        self._window.push_screen(ConfirmDialog("Abort the task?", lines, self._window.clock, by_letter=True), abort)

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
        from agent_workbench.tui.screens.dialog import ConfirmDialog

        run = self._run
        waits = run is not None and run.gate.waiting is not None and run.gate.waiting.kind is not Permission.SUMMARY
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
        from agent_workbench.tui.screens.dialog import EditDialog

        if is_read_only(self._window):
            return

        async def keep(written: str | None) -> None:
            if written is not None and written != text:
                await self._window.want(EditScratchpad(task, text, written))

        # Notes are added to more often than they are changed.
        remark = "The model reads it with its next step."
        self._window.push_screen(EditDialog(f"Scratchpad of {task}", text, remark, at_end=True), keep)

    def say_after_stop(self) -> None:
        """Open the input line after an answer was cut; the task goes on after Enter, with words or without."""
        update = self._window.update_shown
        if update is not None and update.state.unfinished:
            self.open_line("say something, or Enter to continue", PauseTask(paused=False))

    def open_line(
        self, title: str = "", afterwards: Intent | None = None, *, words: str = "", at_once: bool = False
    ) -> None:
        """Open the input line. `afterwards` is submitted after whatever is entered.

        `words` are in it already, and are sent `at_once` as if Enter was pressed. The session need not be open yet.
        """
        from agent_workbench.tui.screens.input_line import InputLine

        window, update = self._window, self._window.update_shown
        chat = is_chat(window)
        if not is_read_only(window) and window.screen.name != "line":  # a key that was queued opens no second one
            commands = _line_commands(window, in_chat=chat)
            line = InputLine(
                lambda said: self._send(said, afterwards),
                *(window.ask, commands),
                words=words or self._unsent,
                title=title,
                on_close=self._keep,
                at_once=at_once,
                chat=chat,
            )
            if update is not None:
                line.show(update)
            window.push_screen(line, self._show_draft)

    def make_task(self) -> None:
        """Open the input line for a task in words; they are those of the newest message of a chat."""
        window, update = self._window, self._window.update_shown
        if update is None or not update.state.in_chat or read_only_reason(update.live):
            window.tell("this is no chat; say a task with :", "warning")
            return
        from agent_workbench.tui.screens.input_line import TASK, InputLine

        said = [each.event.text for each in update.state.latest_events if isinstance(each.event, UserSaid)]
        words = said[-1] if said else ""
        line = InputLine(lambda said: window.ask(DraftTask(said, seen=True)), window.ask, (), words=words, title=TASK)
        window.push_screen(line, self._show_draft)

    def _keep(self, words: str) -> None:
        self._unsent = words

    async def _send(self, words: str, afterwards: Intent | None) -> Outcome | None:
        """Return the outcome of the words: said to the model while a task is worked on, else made a task.

        As long as the session is not open they are only kept: a question may have to be answered before.
        """
        update, outcome = self._window.update_shown, None
        if words and (update is None or not update.state.session):
            self._unsent = self.early_words = words
            self._window.tell("your words are entered as soon as the session is open")
            return None
        if words:
            said = self._window.opens_chat or (update is not None and update.state.takes_words)
            if said and (expanded := await _called_prompt(self._window, words)) is not None:
                return expanded
            outcome = await self._window.ask(SayToModel(words) if said else DraftTask(words, seen=True))
        if not isinstance(outcome, Refused):
            self._unsent = words if isinstance(outcome, TaskDrafted) else ""
            if afterwards is not None:
                await self._window.want(afterwards)
        return outcome

    async def _show_draft(self, draft: TaskDraft | None) -> None:
        """Show the task that the words became; it is written and started only if the user says so."""
        if draft is None:
            return
        from agent_workbench.tui.screens.plan_text import DraftVerdict, TaskDraftDialog

        def decide(verdict: DraftVerdict | None) -> None:
            match verdict:
                case DraftVerdict.START | DraftVerdict.ADD:
                    adding = self._add(draft.task, start=verdict is DraftVerdict.START)
                    self._window.run_worker(adding, group="line")  # keys do not wait for the plan's file
                case DraftVerdict.EDIT:
                    self._edit(draft.task)
                case _:
                    self.open_line()

        await self._window.push_screen(TaskDraftDialog(draft, self._window.clock, self._window.keymap), decide)

    async def _add(self, task: Task, *, start: bool) -> None:
        outcome = await self._window.ask(AddTask(task))
        if isinstance(outcome, Refused):
            self._window.tell(f"the task was not added: {outcome.reason}", "error")
        elif isinstance(outcome, TaskAdded):
            self._unsent = ""
            if outcome.task.id != task.id:
                self._window.tell(f"it became {outcome.task.id}: another task has its id by now")
            if start:
                await self._window.want(StartTask(outcome.task.id))

    def _edit(self, task: Task) -> None:
        from agent_workbench.tui.screens.plan_text import PlanTextDialog

        wanted = OpenPlan(new=True, draft=task)
        self._window.push_screen(PlanTextDialog(f"Task {task.id}", wanted, self._window.ask, editable=True))


async def _called_prompt(window: SessionWindow, words: str) -> Outcome | None:
    """Return the prompt that the words call, which the user sees before it is sent; None if they call none."""
    if named_call(words) is None:
        return None
    outcome = await window.ask(ExpandPrompt(words))
    return None if isinstance(outcome, PromptExpanded) and not outcome.file else outcome


def _line_commands(window: SessionWindow, *, in_chat: bool) -> "tuple[LineCommand, ...]":
    """Return the commands behind `/`; in a chat a consultant's name is a message, and not the key of that name."""
    from agent_workbench.tui.palette import line_commands

    found = line_commands(window.workbench, window.keymap)
    return tuple(each for each in found if each.name not in OFFERED) if in_chat else found
