"""State of an offer of notes: notes that wait beside the runs of tasks until the user takes or leaves them."""

from msgspec import Struct

from agent_workbench.core.events.gate import ActionDecided
from agent_workbench.core.events.knowledge import NotesOffered
from agent_workbench.core.proposals import Proposal, ProposalStage


class NoteOffer(Struct, frozen=True):
    """Notes that were offered, and their proposal once nothing else is at the gate.

    It is `open` until the notes are written, rejected or skipped. `later` are offers that came meanwhile, oldest first.
    """

    offered: NotesOffered
    proposal: Proposal | None = None
    stage: ProposalStage = ProposalStage.FINISHED
    decision: ActionDecided | None = None
    open: bool = True
    later: tuple[NotesOffered, ...] = ()

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits at the gate, None if there is none."""
        return self.proposal if self.open and self.stage is ProposalStage.WAITING else None
