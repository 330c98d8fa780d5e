"""The gate's events: what waited, and what was decided."""

from dataclasses import dataclass

from agent_workbench.core.events.plan import Author
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import HunkVerdict, Preimage, Proposal, Verdict


@dataclass(frozen=True, slots=True)
class ActionProposed:
    """An action stands at the gate."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class ProposalReplaced:
    """What waits was changed before its decision: by the user's editing, or because a file moved under it."""

    proposal: Proposal
    reason: str
    by: Author


@dataclass(frozen=True, slots=True)
class ActionDecided:
    """The gate was answered; `by` is `user` or `policy:<rule>`."""

    proposal_id: ProposalId
    verdict: Verdict
    by: str
    reason: str = ""
    resulting_patch_sha: str = ""
    hunks: tuple[HunkVerdict, ...] = ()
    preimages: tuple[Preimage, ...] = ()


@dataclass(frozen=True, slots=True)
class AbortAsked:
    """The user gave the task up while nothing waited at the gate."""

    reason: str


@dataclass(frozen=True, slots=True)
class UndoAsked:
    """The user wants this diff, the one applied last, to be taken back; what waits is not carried out any more."""

    proposal_id: ProposalId


@dataclass(frozen=True, slots=True)
class PauseChanged:
    """The user wants the model not to be asked again for the time being, or (not `paused`) wants the task to go on."""

    paused: bool
