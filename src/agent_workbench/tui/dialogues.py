"""What the workbench asks the user, and the intent that the answer becomes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from agent_workbench.core.ids import TaskId
from agent_workbench.core.inert import inert_line
from agent_workbench.core.intents import (
    AbortTask,
    AllowAlways,
    AnswerQuestion,
    CompactContext,
    EditProposal,
    EditScratchpad,
    RejectProposal,
    SayToModel,
)
from agent_workbench.core.live import Question, SessionUpdate
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import GateKind
from agent_workbench.core.views.gate import Waiting

if TYPE_CHECKING:
    from agent_workbench.core.views.receipt import Compacting
    from agent_workbench.tui.app import WorkbenchApp

NO_REASON = "no reason given"
WHAT_ALWAYS_MEANS = {
    GateKind.READ: "the model may read and search files without asking",
    GateKind.DIFF: "the model's diffs are applied in the workspace without asking (unusual paths still ask)",
    GateKind.CHECK: "tests and lint run without asking",
    GateKind.COMMAND: "commands of the model run without asking, as long as the sandbox holds",
    GateKind.COMMIT: "finished tasks are committed on their own branch without asking",
    GateKind.SUMMARY: "summaries of older steps take their place in the prompt without asking",
}
EDIT_TITLES = {
    GateKind.DIFF: "Edit the diff",
    GateKind.COMMAND: "Edit the command",
    GateKind.COMMIT: "Edit the message",
    GateKind.SUMMARY: "Edit the summary",
}


FOLLOWING = frozenset({"receipt", "piece", "find"})
"""Dialogues that go on with the session while they stand."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What the user made of a proposal, as long as it may have to be tried again."""

    proposal: Proposal
    text: str


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


def ask_reason(app: "WorkbenchApp", waiting: Waiting) -> None:
    """Ask why a proposal is rejected; nothing is rejected when the user thinks better of it."""
    from agent_workbench.tui.screens.reason import ReasonScreen

    async def reject(reason: str | None) -> None:
        if reason is not None:
            await app.want(RejectProposal(waiting.proposal.id, reason.strip() or NO_REASON))

    app.push_screen(ReasonScreen(f"Reject the {waiting.proposal.kind}"), reject)


def edit_proposal(app: "WorkbenchApp", waiting: Waiting) -> None:
    """Let the user change what waits; what was written and not taken is there again."""
    from agent_workbench.tui.screens.edit import EditScreen

    proposal = waiting.proposal
    draft = app.draft if app.draft is not None and app.draft.proposal == proposal else None

    async def replace(text: str | None) -> None:
        app.draft = None
        if text is not None and text != proposal.text:
            # Where it is taken, another proposal waits; as long as this one does, it is not lost.
            app.draft = Draft(proposal, text)
            await app.want(EditProposal(proposal.id, text))

    app.push_screen(
        EditScreen(
            EDIT_TITLES[proposal.kind],
            draft.text if draft is not None else proposal.text,
            "It is shown again before it counts." if draft is None else "This is what was not taken.",
            wraps=proposal.kind is GateKind.SUMMARY,
        ),
        replace,
    )


def confirm_always(app: "WorkbenchApp", waiting: Waiting) -> None:
    """Ask whether a kind of proposal shall be let through from now on."""
    kind = waiting.proposal.kind
    from agent_workbench.tui.screens.confirm import ConfirmScreen

    async def allow(yes: bool | None) -> None:
        if yes:
            await app.want(AllowAlways(kind))

    means = f"Until this session ends, {WHAT_ALWAYS_MEANS[kind]}."
    app.push_screen(ConfirmScreen(f"Always let each {kind} through?", (means,), app.clock), allow)


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


def show_receipt(app: "WorkbenchApp") -> None:
    """Show what the newest prompt was made of."""
    from agent_workbench.core.views.receipt import count_prompts
    from agent_workbench.tui.screens.receipt import ReceiptScreen

    update = app.update_shown
    if update is None or not count_prompts(update.state):
        app.tell("no prompt was made yet", "warning")
        return
    screen = ReceiptScreen(app.keymap, app.want, partial(confirm_compacting, app))
    screen.show(update)
    app.push_screen(screen)


def show_piece(app: "WorkbenchApp", key: str) -> None:
    """Show a piece of retrieved code with more room."""
    from agent_workbench.tui.screens.piece import PieceScreen

    update = app.update_shown
    if update is not None:
        screen = PieceScreen(key, app.keymap, app.want)
        screen.show(update)
        app.push_screen(screen)


def find_code(app: "WorkbenchApp") -> None:
    """Let the user put other code before the model."""
    from agent_workbench.tui.screens.find import FindScreen

    update = app.update_shown
    if update is not None:
        screen = FindScreen(app.keymap, app.want)
        screen.show(update)
        app.push_screen(screen)


def refresh(app: "WorkbenchApp", update: SessionUpdate) -> None:
    """Let what stands over the panes show what the session has come to."""
    for screen in app.screen_stack:
        if screen.id in FOLLOWING:
            cast("Following", screen).show(update)


def confirm_compacting(app: "WorkbenchApp", compacting: "Compacting") -> None:
    """Ask whether the older steps shall become a summary now, with what it frees and costs."""
    from agent_workbench.tui.screens.confirm import ConfirmScreen

    seconds = f" (about {compacting.seconds:.1f} s)" if compacting.seconds >= 0.05 else ""
    reads = f", and {compacting.reads:,} tokens that stay are read again{seconds}" if compacting.reads else ""
    lines = (
        f"The older steps become a summary; at most {compacting.frees:,} tokens become free.",
        f"It costs an answer of the model{reads}.",
        "",
        "Rules, task, pinned code, the change so far and the failing output",
        "stay as they are. You see the summary before it is used.",
    )

    async def compact(yes: bool | None) -> None:
        if yes:
            await app.want(CompactContext())

    app.push_screen(ConfirmScreen("Sum up the older steps now?", lines, app.clock), compact)
