"""Which moments of a recording are worth a picture: the gates, as they stood when they were decided."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import ActionDecided, ActionProposed, ProposalReplaced, Recorded
from agent_workbench.core.proposals import POLICY, Proposal
from agent_workbench.core.settings import Permission

ALWAYS_SEEN = frozenset({Permission.DIFF, Permission.COMMIT, Permission.MERGE})
"""The kinds that are pictured also where a rule or the policy decided."""
UNDECIDED = "waits"


class PicturedGate(Struct, frozen=True):
    """A gate after event `seq`, what waited at it, and the verdict that followed (`waits`: none did)."""

    seq: int
    proposal: Proposal
    verdict: str

    @property
    def name(self) -> str:
        """A name for the file, in the order of the recording."""
        return f"{self.seq:05}-{self.proposal.kind}-{self.verdict}"


def pictured_gates(events: Sequence[Recorded]) -> Iterator[PicturedGate]:
    """Yield the gates: all diffs, commits and merges, and whatever else a person decided."""
    waiting: Proposal | None = None
    last = 0
    for recorded in events:
        match recorded.event:
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal):
                waiting = proposal
            case ActionDecided(proposal_id=name, by=by, verdict=verdict) if waiting and waiting.id == name:
                if waiting.kind in ALWAYS_SEEN or not by.startswith(POLICY):
                    yield PicturedGate(last, waiting, verdict)
                waiting = None
            case _:
                pass
        last = recorded.seq
    if waiting is not None:
        yield PicturedGate(last, waiting, UNDECIDED)
