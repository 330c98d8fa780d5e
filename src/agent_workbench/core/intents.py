"""What a user or a client wants, in the imperative; a session turns intents into events."""

from dataclasses import dataclass

from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.marks import MarkKind
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.plan_intents import PlanIntent
from agent_workbench.core.rules import Keeping
from agent_workbench.core.settings import GateKind, Rule


@dataclass(frozen=True, slots=True)
class StartTask:
    """Work on this task next; None takes the plan's next one."""

    task: TaskId | None = None


@dataclass(frozen=True, slots=True)
class ApproveProposal:
    """Let it through as it is shown. `shown_sha` is `proposals.shown_sha` of what was on screen.

    Of a diff, what is `left` is not applied; what stays of it is `patch.leave_out`, and `result_sha` its `patch_hash`
    as it was shown.
    """

    proposal: ProposalId
    shown_sha: str
    left: tuple[LeftOut, ...] = ()
    result_sha: str = ""


@dataclass(frozen=True, slots=True)
class RejectProposal:
    """Do not do it; the reason goes to the model."""

    proposal: ProposalId
    reason: str


@dataclass(frozen=True, slots=True)
class SkipProposal:
    """Go on without it."""

    proposal: ProposalId


@dataclass(frozen=True, slots=True)
class EditProposal:
    """Put this text (a diff, a command, a commit message) in its place; it is shown again before it counts."""

    proposal: ProposalId
    text: str


@dataclass(frozen=True, slots=True)
class AllowAlways:
    """Keep a rule that lets proposals through from now on (or, not `always`, revoke it)."""

    rule: Rule
    kept: Keeping
    always: bool = True


@dataclass(frozen=True, slots=True)
class LookBack:
    """Show which past actions of a kind there were, in all sessions of the repo."""

    kind: GateKind


@dataclass(frozen=True, slots=True)
class AbortTask:
    """Give the task up: roll back, keep the attempts."""


@dataclass(frozen=True, slots=True)
class UndoStep:
    """Take back the diff that was applied last: the files go back to what they were before it, the model is told.

    `proposal` is the diff that was on screen as the last one; if it is not any more, nothing is taken back.
    """

    proposal: ProposalId | None = None


@dataclass(frozen=True, slots=True)
class PauseTask:
    """Stop before the model is asked again (or, not `paused`, go on)."""

    paused: bool = True


@dataclass(frozen=True, slots=True)
class RetryTrouble:
    """Try again what something outside had stopped."""


@dataclass(frozen=True, slots=True)
class EditScratchpad:
    """The user's text of the task's scratchpad; `before` is the text that was edited."""

    task: TaskId
    before: str
    text: str


@dataclass(frozen=True, slots=True)
class SayToModel:
    """A word to the model: it stands in the next prompt."""

    text: str


@dataclass(frozen=True, slots=True)
class PinChunk:
    """Keep the piece of code at `place` before the model, whatever is compacted (or, not `pinned`, no longer)."""

    place: str
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class DropChunk:
    """Tell the model that the piece of code at `place` does not matter; the next compaction leaves it out."""

    place: str


@dataclass(frozen=True, slots=True)
class FindCode:
    """Look for code to pin: `asked` is a place (`path`, `path:line`, `path:first-last`), or words.

    A place that there is becomes pinned, words bring a choice; one of it is taken by `PinChunk`.
    """

    asked: str


@dataclass(frozen=True, slots=True)
class OpenFile:
    """Show a file of the workspace as it is now, from line `line` (1: the first)."""

    path: str
    line: int = 1


@dataclass(frozen=True, slots=True)
class CompactContext:
    """Make the older steps a summary now, though there is room yet."""


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Propose to merge a task that is done."""

    task: TaskId


@dataclass(frozen=True, slots=True)
class Leave:
    """End the process; the session can be resumed."""

    reason: str = "left by the user"


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """Answer what must be settled before a session can start (init, trust)."""

    question: str
    yes: bool


@dataclass(frozen=True, slots=True)
class StepReplay:
    """Move by so many steps, back when negative."""

    steps: int


@dataclass(frozen=True, slots=True)
class SeekReplay:
    """Go to the start (0.0), the end (1.0), or in between."""

    fraction: float


@dataclass(frozen=True, slots=True)
class GoToEvent:
    """Go to the event `seq` of a recording, or to its nearest end."""

    seq: int


@dataclass(frozen=True, slots=True)
class JumpReplay:
    """Go to the next event of a kind, or (not `forward`) to the one before."""

    kind: MarkKind
    forward: bool = True


@dataclass(frozen=True, slots=True)
class PlayReplay:
    """Play or stop playing."""

    playing: bool


@dataclass(frozen=True, slots=True)
class PaceReplay:
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
