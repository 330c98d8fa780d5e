"""Events at the gate: proposals, the hooks' answers to them, and the decisions."""

from agent_workbench.core.events.plan import Author
from agent_workbench.core.hook_answers import HookVerdict
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import HunkVerdict, Preimage, Proposal, Verdict
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.signed import SignedText


class ActionProposed(RecordedValue, frozen=True):
    """An action was proposed and waits at the gate."""

    proposal: Proposal


class ProposalReplaced(RecordedValue, frozen=True):
    """The waiting proposal was replaced, because the user edited it or a file changed under it."""

    proposal: Proposal
    reason: str
    by: Author


class ActionDecided(RecordedValue, frozen=True):
    """The proposal was decided; `by` is `user`, `acp:<editor>` or `policy:<rule>`, `via` the way if it was no screen.

    `signed` is the decision as a person on another machine signed it (`core.history.signed_approvals`).
    """

    proposal_id: ProposalId
    verdict: Verdict
    by: str
    reason: str = ""
    resulting_patch_sha: str = ""
    hunks: tuple[HunkVerdict, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    via: str = ""
    signed: SignedText | None = None

    @property
    def decider(self) -> str:
        """The one who decided, and the way if it was not the screen; without the time that `via` ends with."""
        return f"{self.by} ({self.via.rpartition(' at ')[0] or self.via})" if self.via else self.by


class AbortAsked(RecordedValue, frozen=True):
    """The user aborted the task while nothing waited at the gate."""

    reason: str


class UndoAsked(RecordedValue, frozen=True):
    """The user asked to undo this diff, the newest one. A waiting proposal is dropped.

    The workbench asks (`by`) where the model is to try again from the first prompt, because the checks fail.
    """

    proposal_id: ProposalId
    by: Author = Author.USER


class PauseChanged(RecordedValue, frozen=True):
    """The user paused the task before the next question to the model, or resumed it (not `paused`)."""

    paused: bool


class HookStarted(RecordedValue, frozen=True):
    """A hook is about to run. `proposal_id` is the proposal that it is about, empty if it is about none."""

    hook: str
    point: HookPoint
    proposal_id: ProposalId = ProposalId("")


class HookAnswered(RecordedValue, frozen=True):
    """A hook ended. `failed`: the answer is not its own, `reason` says what went wrong.

    Only the `verdict` of a hook that ran before a decision has an effect.
    """

    hook: str
    point: HookPoint
    verdict: HookVerdict
    proposal_id: ProposalId = ProposalId("")
    reason: str = ""
    seconds: float = 0.0
    failed: bool = False
