"""What the workbench asks the user, and the intent that the answer becomes."""

from typing import TYPE_CHECKING, Protocol, cast

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    AbortTask,
    AnswerQuestion,
    EditScratchpad,
    SayToModel,
    UndoStep,
)
from agent_workbench.core.live import PreflightQuestion, SessionUpdate
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.diff.lines import diff_stat

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab

FOLLOWING = frozenset({"allow", "rules", "receipt", "piece", "find"})
"""Dialogues that go on with the session while they stand."""

MOST_PATHS = 8


class Following(Protocol):
    """A dialogue that goes on with the session."""

    def show(self, update: SessionUpdate) -> None:
        """Show what the session has come to."""


async def take_tour(tab: "SessionTab") -> None:
    """Explain the workbench, page by page."""
    from agent_workbench.tui.screens.tour import TourScreen

    await tab.push_screen(TourScreen(tab.keymap), lambda _: tab.settle_question())
    say_scripted(tab)


def say_scripted(tab: "SessionTab") -> None:
    """Say in the tour, while it stands, that the model's answers are scripted."""
    from agent_workbench.tui.screens.tour import TourScreen

    screen = tab.screen
    model = tab.update_shown.state.model if tab.update_shown is not None else None
    if isinstance(screen, TourScreen) and screen.is_mounted and model is not None and model.scripted:
        screen.say_scripted()


def ask_question(tab: "SessionTab", question: PreflightQuestion) -> None:
    """Ask what must be settled before the session starts."""
    from agent_workbench.tui.dialogs.question import QuestionScreen

    async def answer(yes: bool | None) -> None:
        if yes is not None:
            await tab.want(AnswerQuestion(question.key, yes))

    tab.push_screen(QuestionScreen(question, tab.clock), answer)


def confirm_abort(tab: "SessionTab") -> None:
    """Ask whether the task shall be given up."""
    from agent_workbench.tui.dialogs.confirm import ConfirmScreen

    run = tab.update_shown.state.run if tab.update_shown is not None else None
    task = sanitize_line(f"{run.task}  {run.definition.description}") if run is not None else "the task"
    lines = (task, "", "Its workspace goes back to where it began. What was tried stays in the journal.")

    async def abort(yes: bool | None) -> None:
        if yes:
            await tab.want(AbortTask())

    tab.push_screen(ConfirmScreen("Give the task up?", lines, tab.clock), abort)


def confirm_undo(tab: "SessionTab", proposal: Proposal) -> None:
    """Ask whether the diff that was applied last shall be taken back."""
    from agent_workbench.tui.dialogs.confirm import ConfirmScreen

    run = tab.update_shown.state.run if tab.update_shown is not None else None
    waits = run is not None and run.waiting is not None and run.waiting.kind is not Permission.SUMMARY
    lines = (
        *(sanitize_line(path, 200) for path in proposal.paths[:MOST_PATHS]),
        *((f"and {len(proposal.paths) - MOST_PATHS} more files",) if len(proposal.paths) > MOST_PATHS else ()),
        str(diff_stat(proposal.diff)),
        "",
        "The files go back to what they were before it, and the model is told. The diff stays in the journal.",
        *(("What waits now was made on these files, and is refused.",) if waits else ()),
    )

    async def undo(yes: bool | None) -> None:
        if yes:
            await tab.want(UndoStep(proposal.id))

    tab.push_screen(ConfirmScreen(f"Take the diff of step {proposal.step} back?", lines, tab.clock), undo)


def edit_notes(tab: "SessionTab", task: TaskId, text: str) -> None:
    """Let the user write in the notes of a task."""
    from agent_workbench.tui.dialogs.text_edit import EditScreen

    async def keep(written: str | None) -> None:
        if written is not None and written != text:
            await tab.want(EditScratchpad(task, text, written))

    # Notes are added to more often than they are changed.
    remark = "The model reads it with its next step."
    tab.push_screen(EditScreen(f"Scratchpad of {task}", text, remark, at_end=True), keep)


def say_to_model(tab: "SessionTab") -> None:
    """Let the user say a word to the model."""
    from agent_workbench.tui.dialogs.message import SayScreen

    async def say(text: str | None) -> None:
        if text is not None:
            await tab.want(SayToModel(text))

    tab.push_screen(SayScreen(), say)


def refresh(tab: "SessionTab", update: SessionUpdate) -> None:
    """Let what stands over the panes show what the session has come to."""
    for screen in tab.screens:
        if screen.name in FOLLOWING:
            cast("Following", screen).show(update)
