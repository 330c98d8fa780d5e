"""Gates of a recording that an export renders as pictures."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import ActionDecided, ActionProposed, ProposalReplaced, Recorded
from agent_workbench.core.proposals import POLICY, Proposal
from agent_workbench.core.settings import Permission

ALWAYS_SEEN = frozenset({Permission.DIFF, Permission.COMMIT, Permission.MERGE})
"""Permissions whose gates are pictured even if a rule or the policy decided."""
UNDECIDED = "waits"


class PicturedGate(Struct, frozen=True):
    """A gate after event `seq`: its proposal and the verdict that followed (`waits`: none did)."""

    seq: int
    proposal: Proposal
    verdict: str

    @property
    def name(self) -> str:
        """File name of the picture, in the order of the recording."""
        return f"{self.seq:05}-{self.proposal.kind}-{self.verdict}"


def pictured_gates(events: Sequence[Recorded]) -> Iterator[PicturedGate]:
    """Yield the gates: all diffs, commits and merges, and everything else that a person decided."""
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
