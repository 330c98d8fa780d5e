"""The gate's events: what waited, and what was decided."""

from agent_workbench.core.events.plan import Author
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import HunkVerdict, Preimage, Proposal, Verdict
from agent_workbench.core.recorded_value import RecordedValue


class ActionProposed(RecordedValue, frozen=True):
    """An action stands at the gate."""

    proposal: Proposal


class ProposalReplaced(RecordedValue, frozen=True):
    """What waits was changed before its decision: by the user's editing, or because a file moved under it."""

    proposal: Proposal
    reason: str
    by: Author


class ActionDecided(RecordedValue, frozen=True):
    """The gate was answered; `by` is `user` or `policy:<rule>`."""

    proposal_id: ProposalId
    verdict: Verdict
    by: str
    reason: str = ""
    resulting_patch_sha: str = ""
    hunks: tuple[HunkVerdict, ...] = ()
    preimages: tuple[Preimage, ...] = ()


class AbortAsked(RecordedValue, frozen=True):
    """The user gave the task up while nothing waited at the gate."""

    reason: str


class UndoAsked(RecordedValue, frozen=True):
    """The user wants this diff, the one applied last, to be taken back; what waits is not carried out any more."""

    proposal_id: ProposalId


class PauseChanged(RecordedValue, frozen=True):
    """The user wants the model not to be asked again for the time being, or (not `paused`) wants the task to go on."""

    paused: bool
