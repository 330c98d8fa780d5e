"""What a user or a client wants, in the imperative; a session turns intents into events."""

from msgspec import Struct

from agent_workbench.core.history.replay_marks import MarkKind
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.intents.plan import PlanIntent
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.rules.matching import RuleScope
from agent_workbench.core.settings import Permission, Rule


class StartTask(Struct, frozen=True):
    """Work on this task next; None takes the plan's next one."""

    task: TaskId | None = None


class ApproveProposal(Struct, frozen=True):
    """Let it through as it is shown. `shown_sha` is `proposals.shown_sha` of what was on screen.

    Of a diff, what is `left` is not applied; what stays of it is `patch.leave_out`, and `result_sha` its `patch_hash`
    as it was shown.
    """

    proposal: ProposalId
    shown_sha: str
    left: tuple[LeftOut, ...] = ()
    result_sha: str = ""


class RejectProposal(Struct, frozen=True):
    """Do not do it; the reason goes to the model."""

    proposal: ProposalId
    reason: str


class SkipProposal(Struct, frozen=True):
    """Go on without it."""

    proposal: ProposalId


class EditProposal(Struct, frozen=True):
    """Put this text (a diff, a command, a commit message) in its place; it is shown again before it counts."""

    proposal: ProposalId
    text: str


class AllowAlways(Struct, frozen=True):
    """Keep a rule that lets proposals through from now on (or, not `always`, revoke it)."""

    rule: Rule
    kept: RuleScope
    always: bool = True


class LookBack(Struct, frozen=True):
    """Show which past actions of a kind there were, in all sessions of the repo."""

    kind: Permission


class AbortTask(Struct, frozen=True):
    """Give the task up: roll back, keep the attempts."""


class UndoStep(Struct, frozen=True):
    """Take back the diff that was applied last: the files go back to what they were before it, the model is told.

    `proposal` is the diff that was on screen as the last one; if it is not any more, nothing is taken back.
    """

    proposal: ProposalId | None = None


class PauseTask(Struct, frozen=True):
    """Stop before the model is asked again (or, not `paused`, go on)."""

    paused: bool = True


class RetryTrouble(Struct, frozen=True):
    """Try again what something outside had stopped."""


class EditScratchpad(Struct, frozen=True):
    """The user's text of the task's scratchpad; `before` is the text that was edited."""

    task: TaskId
    before: str
    text: str


class SayToModel(Struct, frozen=True):
    """A word to the model: it stands in the next prompt."""

    text: str


class PinChunk(Struct, frozen=True):
    """Keep the piece of code at `place` before the model, whatever is compacted (or, not `pinned`, no longer)."""

    place: str
    pinned: bool = True


class DropChunk(Struct, frozen=True):
    """Tell the model that the piece of code at `place` does not matter; the next compaction leaves it out."""

    place: str


class FindCode(Struct, frozen=True):
    """Look for code to pin: `asked` is a place (`path`, `path:line`, `path:first-last`), or words.

    A place that there is becomes pinned, words bring a choice; one of it is taken by `PinChunk`.
    """

    asked: str


class OpenFile(Struct, frozen=True):
    """Show a file of the workspace as it is now, from line `line` (1: the first)."""

    path: str
    line: int = 1


class CompactContext(Struct, frozen=True):
    """Make the older steps a summary now, though there is room yet."""


class MergeTask(Struct, frozen=True):
    """Propose to merge a task that is done."""

    task: TaskId


class Leave(Struct, frozen=True):
    """End the process; the session can be resumed."""

    reason: str = "left by the user"


class AnswerQuestion(Struct, frozen=True):
    """Answer what must be settled before a session can start (init, trust)."""

    question: str
    yes: bool


class StepReplay(Struct, frozen=True):
    """Move by so many steps, back when negative."""

    steps: int


class SeekReplay(Struct, frozen=True):
    """Go to the start (0.0), the end (1.0), or in between."""

    fraction: float


class GoToEvent(Struct, frozen=True):
    """Go to the event `seq` of a recording, or to its nearest end."""

    seq: int


class JumpReplay(Struct, frozen=True):
    """Go to the next event of a kind, or (not `forward`) to the one before."""

    kind: MarkKind
    forward: bool = True


class PlayReplay(Struct, frozen=True):
    """Play or stop playing."""

    playing: bool


class PaceReplay(Struct, frozen=True):
    """Play faster or slower from now on, by one speed of `pacing.SPEEDS`."""

    faster: bool


Intent = (
    StartTask
    | ApproveProposal
    | RejectProposal
    | SkipProposal
    | EditProposal
    | AllowAlways
    | LookBack
    | AbortTask
    | UndoStep
    | PauseTask
    | RetryTrouble
    | EditScratchpad
    | SayToModel
    | PinChunk
    | DropChunk
    | FindCode
    | OpenFile
    | CompactContext
    | MergeTask
    | PlanIntent
    | Leave
    | AnswerQuestion
    | StepReplay
    | SeekReplay
    | GoToEvent
    | JumpReplay
    | PlayReplay
    | PaceReplay
)
