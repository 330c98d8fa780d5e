"""What the workbench asks the user, and the intent that the answer becomes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from agent_workbench.core.ids import TaskId
from agent_workbench.core.inert import inert_line
from agent_workbench.core.intents import (
    AbortTask,
    AnswerQuestion,
    EditScratchpad,
    SayToModel,
    UndoStep,
)
from agent_workbench.core.live import Question, SessionUpdate
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import GateKind
from agent_workbench.core.views.diff_lines import diff_stat

if TYPE_CHECKING:
    from agent_workbench.tui.app import WorkbenchApp

FOLLOWING = frozenset({"allow", "rules", "receipt", "piece", "find", "plan-text", "file"})
"""Dialogues that go on with the session while they stand."""

MOST_PATHS = 8


class Following(Protocol):
    """A dialogue that goes on with the session."""

    def show(self, update: SessionUpdate) -> None:
        """Show what the session has come to."""


async def welcome(app: "WorkbenchApp", closed: Callable[[], None]) -> None:
    """Explain the workbench to somebody who sees it for the first time."""
    from agent_workbench.tui.screens.welcome import WelcomeScreen

    await app.push_screen(WelcomeScreen(app.keymap), lambda _: closed())


def say_scripted(app: "WorkbenchApp") -> None:
    """Say on the first screen, while it stands, that the model's answers are scripted."""
    from agent_workbench.tui.screens.welcome import WelcomeScreen

    screen = app.screen
    model = app.update_shown.state.model if app.update_shown is not None else None
    if isinstance(screen, WelcomeScreen) and screen.is_mounted and model is not None and model.scripted:
        screen.say_scripted()


def ask_question(app: "WorkbenchApp", question: Question) -> None:
    """Ask what must be settled before the session starts."""
    from agent_workbench.tui.screens.question import QuestionScreen

    async def answer(yes: bool | None) -> None:
        if yes is not None:
            await app.want(AnswerQuestion(question.key, yes))

    app.push_screen(QuestionScreen(question, app.clock), answer)


def confirm_abort(app: "WorkbenchApp") -> None:
    """Ask whether the task shall be given up."""
    from agent_workbench.tui.screens.confirm import ConfirmScreen

    run = app.update_shown.state.run if app.update_shown is not None else None
    task = inert_line(f"{run.task}  {run.definition.description}") if run is not None else "the task"
    lines = (task, "", "Its workspace goes back to where it began. What was tried stays in the journal.")

    async def abort(yes: bool | None) -> None:
        if yes:
            await app.want(AbortTask())

    app.push_screen(ConfirmScreen("Give the task up?", lines, app.clock), abort)


def confirm_undo(app: "WorkbenchApp", proposal: Proposal) -> None:
    """Ask whether the diff that was applied last shall be taken back."""
    from agent_workbench.tui.screens.confirm import ConfirmScreen

    run = app.update_shown.state.run if app.update_shown is not None else None
    waits = run is not None and run.waiting is not None and run.waiting.kind is not GateKind.SUMMARY
    lines = (
        *(inert_line(path, 200) for path in proposal.paths[:MOST_PATHS]),
        *((f"and {len(proposal.paths) - MOST_PATHS} more files",) if len(proposal.paths) > MOST_PATHS else ()),
        str(diff_stat(proposal.diff)),
        "",
        "The files go back to what they were before it, and the model is told. The diff stays in the journal.",
        *(("What waits now was made on these files, and is refused.",) if waits else ()),
    )

    async def undo(yes: bool | None) -> None:
        if yes:
            await app.want(UndoStep(proposal.id))

    app.push_screen(ConfirmScreen(f"Take the diff of step {proposal.step} back?", lines, app.clock), undo)


def edit_notes(app: "WorkbenchApp", task: TaskId, text: str) -> None:
    """Let the user write in the notes of a task."""
    from agent_workbench.tui.screens.edit import EditScreen

    async def keep(written: str | None) -> None:
        if written is not None and written != text:
            await app.want(EditScratchpad(task, text, written))

    # Notes are added to more often than they are changed.
    remark = "The model reads it with its next step."
    app.push_screen(EditScreen(f"Scratchpad of {task}", text, remark, at_end=True), keep)


def say_to_model(app: "WorkbenchApp") -> None:
    """Let the user say a word to the model."""
    from agent_workbench.tui.screens.say import SayScreen

    async def say(text: str | None) -> None:
        if text is not None:
            await app.want(SayToModel(text))

    app.push_screen(SayScreen(), say)


def refresh(app: "WorkbenchApp", update: SessionUpdate) -> None:
    """Let what stands over the panes show what the session has come to."""
    for screen in app.screen_stack:
        if screen.id in FOLLOWING:
            cast("Following", screen).show(update)
