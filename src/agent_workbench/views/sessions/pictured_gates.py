"""Gates of a recording that an export renders as pictures."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import Recorded
from agent_workbench.core.proposals import POLICY, Proposal
from agent_workbench.core.state.steps import decisions_of, newest_steps

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
    pictured: tuple[Proposal, ...] = ()
    for each in decisions_of(events):
        # What waited again as it was is pictured once.
        if (shown := each.proposal) is None or each.versions is pictured:
            continue
        pictured = each.versions
        if shown.changes_code or not each.event.by.startswith(POLICY):
            yield PicturedGate(each.seq - 1, shown, each.event.verdict)
    newest = next(newest_steps(events), None)
    if newest is not None and newest.decision is None:
        yield PicturedGate(events[-1].seq, newest.proposal, UNDECIDED)
