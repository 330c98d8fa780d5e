"""Intents of a user or client, in the imperative. Those about the plan are accepted while a task runs too."""

from msgspec import Struct

from agent_workbench.core.approval_rules import RuleScope
from agent_workbench.core.events.beside_tasks import OfferedNote
from agent_workbench.core.history.replay_marks import MarkKind
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.inbox import InboxDecision
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.plan import PlanPiece, Task
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import ApprovalMode, Permission, Rule

MOST_SAID_CHARS = 16_000
"""Maximum length of what the user says at once: to the model, or of a new task. It is half of a small context."""


class OpenPlan(Struct, frozen=True):
    """Show the text of a task (None: of the whole plan) for editing, or a new task after it.

    `draft` is the new task as proposed (None: a template). A `proposal` is a proposed plan, which is shown instead.
    """

    task: TaskId | None = None
    new: bool = False
    draft: Task | None = None
    proposal: ProposalId | None = None


class EditPlan(Struct, frozen=True):
    """Replace a piece of the plan that was shown by `text`."""

    piece: PlanPiece
    text: str


class DraftTask(Struct, frozen=True):
    """Propose a task from the user's words: goal, scope and checks from the repository. Nothing is written.

    `seen`: the user sees it before it starts, so its words may name its checks.
    """

    words: str
    seen: bool = False


class AddTask(Struct, frozen=True):
    """Append a task to the plan; if another task has its id by now, it gets the next free one."""

    task: Task


class MoveTask(Struct, frozen=True):
    """Move a task one place up or down in the plan."""

    task: TaskId
    up: bool


class BlockTask(Struct, frozen=True):
    """Block a task, with a reason, or unblock it (not `blocked`)."""

    task: TaskId
    reason: str = ""
    blocked: bool = True


class ProposePlan(Struct, frozen=True):
    """Ask the model for a plan that reaches `goal`; it `replaces` the plan, or is appended to it.

    `rest`: it replaces the tasks of the plan that are not over; those that are queued are withdrawn then.
    """

    goal: str
    replaces: bool = False
    rest: bool = False


class ArrangePlan(Struct, frozen=True):
    """Arrange the proposed plan: the order of all its tasks, those that are `left` out, and append or replace."""

    proposal: ProposalId
    order: tuple[TaskId, ...]
    left: tuple[TaskId, ...] = ()
    replaces: bool = False


PlanChange = OpenPlan | EditPlan | AddTask | MoveTask | BlockTask | ProposePlan | ArrangePlan
PlanIntent = PlanChange | DraftTask


class StartTask(Struct, frozen=True):
    """Start this task; None starts the plan's next one.

    With `unsaved` it begins with what the user did not commit: the files as they are on the disk, and these paths with
    the text that an editor has of them. None: it begins at the last commit.
    """

    task: TaskId | None = None
    unsaved: dict[str, str] | None = None


class ApproveProposal(Struct, frozen=True):
    """Approve a proposal as shown; `shown_sha` is `proposals.shown_sha` of what was on screen.

    `left` are the parts of a diff that are not applied; `result_sha` is the `patch_hash` of the rest, as shown.
    """

    proposal: ProposalId
    shown_sha: str
    left: tuple[LeftOut, ...] = ()
    result_sha: str = ""


class RejectProposal(Struct, frozen=True):
    """Reject a proposal; the reason goes to the model."""

    proposal: ProposalId
    reason: str


class SkipProposal(Struct, frozen=True):
    """Continue without carrying out the proposal."""

    proposal: ProposalId


class EditProposal(Struct, frozen=True):
    """Replace the proposal's text (a diff, a command, a commit message). The result is shown again for approval."""

    proposal: ProposalId
    text: str


class ChooseMergeMethod(Struct, frozen=True):
    """Merge by another method. The proposal is shown again for approval."""

    proposal: ProposalId
    method: MergeMethod


class ChangeRule(Struct, frozen=True):
    """Add an approval rule, or revoke it (not `always`)."""

    rule: Rule
    kept: RuleScope
    always: bool = True


class ChangeMode(Struct, frozen=True):
    """Enter an approval mode. What waits already needs the user's decision, unless the user said that the mode has it.

    `shown_sha` says so for *accept until done*: the hash of the proposal that the user saw, empty for a first prompt.
    """

    mode: ApprovalMode
    shown_sha: str | None = None


class ListPastActions(Struct, frozen=True):
    """Show the past actions of a kind in all sessions of the repo."""

    kind: Permission


class AbortTask(Struct, frozen=True):
    """Abort the task: roll back, keep the attempts."""


class StopAnswer(Struct, frozen=True):
    """Cut the answer that the model is giving, and pause the task."""


class StopAction(Struct, frozen=True):
    """End the running check, command or call of this proposal, and pause the task."""

    proposal: ProposalId


class UndoStep(Struct, frozen=True):
    """Undo the newest applied diff: its files are restored and the model is told.

    `proposal` is the diff that the screen showed as the newest. If it no longer is, nothing is undone.
    """

    proposal: ProposalId | None = None


class PauseTask(Struct, frozen=True):
    """Pause before the next question to the model, or resume (not `paused`)."""

    paused: bool = True


class ListModels(Struct, frozen=True):
    """List the models of the servers in the settings."""


class LoadModel(Struct, frozen=True):
    """Load a model of the server of `endpoint`; the outcome comes when it is in memory."""

    endpoint: str
    model: str


class UnloadModel(Struct, frozen=True):
    """Unload a model of the server of `endpoint`."""

    endpoint: str
    model: str


class SwitchModel(Struct, frozen=True):
    """Ask another model of the server of `endpoint` from now on in this task; both empty: that of the settings."""

    endpoint: str = ""
    model: str = ""


class RetryTrouble(Struct, frozen=True):
    """Retry what an outside failure stopped."""


class EditScratchpad(Struct, frozen=True):
    """Replace the task's scratchpad by the user's text; `before` is the text that was edited."""

    task: TaskId
    before: str
    text: str


class SayToModel(Struct, frozen=True):
    """Add a message from the user to the next prompt."""

    text: str


class PinChunk(Struct, frozen=True):
    """Keep the code at `place` in the prompt through every compaction, or unpin it (not `pinned`)."""

    place: str
    pinned: bool = True


class DropChunk(Struct, frozen=True):
    """Mark the code at `place` as irrelevant; the next compaction removes it."""

    place: str


class ChooseSkill(Struct, frozen=True):
    """Put a skill into the prompts of the task, or drop it (not `chosen`)."""

    name: str
    chosen: bool = True


class FindCode(Struct, frozen=True):
    """Find code to pin. `asked` is a location (`path`, `path:line`, `path:first-last`) or words to search for.

    An existing location is pinned at once. Words lead to a list, from which `PinChunk` pins one.
    """

    asked: str


class CompleteCode(Struct, frozen=True):
    """Complete what is typed of a path or symbol; a newer question of this kind takes its place."""

    prefix: str


class ListSkills(Struct, frozen=True):
    """List the skills that a task, or a message of a chat, may take."""


class ListPrompts(Struct, frozen=True):
    """List the prompts of the user's own, which words may call by name."""


class ExpandPrompt(Struct, frozen=True):
    """Put the words of a call such as `/fix 12` into the prompt that they name. Nothing is sent or recorded."""

    words: str


class OpenFile(Struct, frozen=True):
    """Show a file of the workspace as it is now, from line `line` (1: the first)."""

    path: str
    line: int = 1


class PreviewPrompt(Struct, frozen=True):
    """Show the next prompt, which waits until the user resumes the task."""


class CompactContext(Struct, frozen=True):
    """Summarize the older steps now, before the context is full."""


class MergeTask(Struct, frozen=True):
    """Propose the merge of a finished task."""

    task: TaskId


class Leave(Struct, frozen=True):
    """End the process; the session can be resumed."""

    reason: str = "left by the user"


class AnswerQuestion(Struct, frozen=True):
    """Answer a question of the preflight (init, trust)."""

    question: str
    yes: bool


class OfferNotes(Struct, frozen=True):
    """Offer notes to the user, who takes or leaves each at the gate; `origin` says where they come from.

    Without notes, what the user rejected in the newest task is offered.
    """

    notes: tuple[OfferedNote, ...] = ()
    origin: str = ""


class FindNotes(Struct, frozen=True):
    """Search the notes that outlive a task; without words all are wanted, by name."""

    words: str = ""


class EditNote(Struct, frozen=True):
    """Put the user's text in place of `before` in a note."""

    name: str
    before: str
    text: str


class StepReplay(Struct, frozen=True):
    """Move a replay by `steps` events; back if negative."""

    steps: int


class SeekReplay(Struct, frozen=True):
    """Move a replay to a fraction of its length: 0.0 is the start, 1.0 the end."""

    fraction: float


class GoToEvent(Struct, frozen=True):
    """Move a replay to event `seq`, or to the nearest end."""

    seq: int


class JumpReplay(Struct, frozen=True):
    """Move a replay to the next event of a kind, or to the previous one (not `forward`)."""

    kind: MarkKind
    forward: bool = True


class PlayReplay(Struct, frozen=True):
    """Play or pause a replay."""

    playing: bool


class ChangeReplaySpeed(Struct, frozen=True):
    """Change the speed of a replay by one step of `replay_marks.SPEEDS`."""

    faster: bool


class AskConsultant(Struct, frozen=True):
    """Ask a consultant: about the proposal that waits (`review`), the failed checks (`debug`), or a `task` (`spec`)."""

    skill: str
    proposal: ProposalId | None = None
    task: TaskId | None = None


class StopConsultation(Struct, frozen=True):
    """Stop the consultation that runs; what came of it is kept."""


class RecordDecision(Struct, frozen=True):
    """Record a decision that was put into the inbox by another process."""

    decision: InboxDecision


Intent = (
    StartTask
    | ApproveProposal
    | RejectProposal
    | SkipProposal
    | EditProposal
    | ChooseMergeMethod
    | ChangeRule
    | ChangeMode
    | ListPastActions
    | AbortTask
    | StopAnswer
    | StopAction
    | UndoStep
    | PauseTask
    | ListModels
    | LoadModel
    | UnloadModel
    | SwitchModel
    | RetryTrouble
    | EditScratchpad
    | SayToModel
    | PinChunk
    | DropChunk
    | ChooseSkill
    | FindCode
    | CompleteCode
    | ListSkills
    | ListPrompts
    | ExpandPrompt
    | OpenFile
    | PreviewPrompt
    | CompactContext
    | MergeTask
    | AskConsultant
    | StopConsultation
    | RecordDecision
    | OfferNotes
    | FindNotes
    | EditNote
    | PlanIntent
    | Leave
    | AnswerQuestion
    | StepReplay
    | SeekReplay
    | GoToEvent
    | JumpReplay
    | PlayReplay
    | ChangeReplaySpeed
)
