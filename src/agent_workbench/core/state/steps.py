"""Steps of a session: each action with its answer, proposal, decisions and result, joined from the events once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionStarted,
    Event,
    ModelAnswered,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    StepUndone,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Proposal

Of = TypeVar("Of")

# Tuples, because long histories are read, and a union takes twice as long.
_PROPOSALS = (ActionProposed, ProposalReplaced)
_OUTCOMES = (ActionDecided, ActionStarted, PatchApplied, ActionFinished, StepUndone)


class Placed(Struct, Generic[Of], frozen=True):
    """An event of a known kind with its number and time."""

    seq: int
    time: str
    event: Of


class StepDecision(Struct, frozen=True):
    """A decision with number, time and hash of its event. `versions` are the proposal as it was shown until then.

    The newest is last; there is none if the events that were read do not have the proposal.
    """

    seq: int
    time: str
    hash: str
    event: ActionDecided
    versions: tuple[Proposal, ...] = ()

    @property
    def proposal(self) -> Proposal | None:
        """The proposal as it was when it was decided, None if the events that were read lack it."""
        return self.versions[-1] if self.versions else None


class Step(Struct, frozen=True):
    """One round of thought, action and observation, as far as it came.

    `answer` is the newest one of the model before the action: an action of the workbench itself (`OURS`) follows the
    one that it completes. `later` are the events about the action after its proposal.
    """

    answer: Placed[ModelAnswered] | None
    proposed: Placed[ActionProposed]
    later: tuple[Recorded, ...]

    @property
    def seq(self) -> int:
        """The number of the event that proposed the action."""
        return self.proposed.seq

    @property
    def first(self) -> Proposal:
        """The action as it was proposed first."""
        return self.proposed.event.proposal

    @property
    def proposal(self) -> Proposal:
        """The action as it was proposed last."""
        return (self._newest(ProposalReplaced) or self.proposed).event.proposal

    @property
    def since(self) -> str:
        """The time at which it was proposed last."""
        return (self._newest(ProposalReplaced) or self.proposed).time

    @property
    def versions(self) -> tuple[Proposal, ...]:
        """The action as it was proposed, and as it was replaced."""
        return (self.first, *(each.event.proposal for each in self.later if isinstance(each.event, ProposalReplaced)))

    @property
    def decisions(self) -> tuple[StepDecision, ...]:
        """The decisions; several where the proposal had to wait again."""
        return tuple(decisions_of(self.later, self.first))

    @property
    def decision(self) -> StepDecision | None:
        """The decision about the proposal as it is now, None if there is none."""
        last = self.decisions[-1:]
        return next((each for each in last if each.versions == self.versions), None)

    @property
    def by(self) -> str:
        """The newest decision's author, empty without a decision."""
        decided = self._newest(ActionDecided)
        return decided.event.by if decided is not None else ""

    @property
    def started(self) -> Placed[ActionStarted] | None:
        """The start of the effect."""
        return self._newest(ActionStarted)

    @property
    def result(self) -> Placed[ActionFinished] | None:
        """The newest outcome."""
        return self._newest(ActionFinished)

    @property
    def applied(self) -> Placed[PatchApplied] | None:
        """The change of the files."""
        return self._newest(PatchApplied)

    @property
    def undone(self) -> Placed[StepUndone] | None:
        """The undo of that change."""
        return self._newest(StepUndone)

    @property
    def tree(self) -> str:
        """The tree of all approved content after the action was applied, empty if it was not."""
        return self.applied.event.tree if self.applied is not None else ""

    def _newest(self, kind: type[Of]) -> Placed[Of] | None:
        for recorded in reversed(self.later):
            if isinstance(recorded.event, kind):
                return Placed(recorded.seq, recorded.time, recorded.event)
        return None


def newest_steps(history: Sequence[Recorded]) -> Iterator[Step]:
    """Yield the steps that are proposed in these events, newest first; they are read lazily, from their end."""
    later: dict[ProposalId, list[Recorded]] = {}
    unanswered: list[tuple[Placed[ActionProposed], tuple[Recorded, ...]]] = []
    for recorded in reversed(history):
        event = recorded.event
        if isinstance(event, ActionProposed):
            about = tuple(reversed(later.pop(event.proposal.id, ())))
            unanswered.append((Placed(recorded.seq, recorded.time, event), about))
        elif isinstance(event, ModelAnswered):
            answer = Placed(recorded.seq, recorded.time, event)
            yield from (Step(answer, *each) for each in unanswered)
            unanswered = []
        elif (proposal := proposal_of(event)) is not None:
            later.setdefault(proposal, []).append(recorded)
    yield from (Step(None, *each) for each in unanswered)


def steps_of(history: Sequence[Recorded]) -> tuple[Step, ...]:
    """Return the steps that are proposed in these events, in order."""
    return tuple(newest_steps(history))[::-1]


def proposals_of(history: Sequence[Recorded]) -> dict[ProposalId, Proposal]:
    """Return each proposal of these events as it was last, by its id, in order."""
    return {step.proposal.id: step.proposal for step in steps_of(history)}


def decisions_of(history: Iterable[Recorded], *proposed: Proposal) -> Iterator[StepDecision]:
    """Yield the decisions in order, those too whose proposal is in other events and not `proposed`."""
    versions: dict[ProposalId, tuple[Proposal, ...]] = {each.id: (each,) for each in proposed}
    for recorded in history:
        match recorded.event:
            case ActionProposed(proposal=proposal):
                versions[proposal.id] = (proposal,)
            case ProposalReplaced(proposal=proposal):
                versions[proposal.id] = (*versions.get(proposal.id, ()), proposal)
            case ActionDecided() as event:
                shown = versions.get(event.proposal_id, ())
                yield StepDecision(recorded.seq, recorded.time, recorded.hash, event, shown)
            case _:
                continue


def proposal_of(event: Event) -> ProposalId | None:
    """Return the proposal that an event of a step is about, None for any other event."""
    if isinstance(event, _OUTCOMES):
        return event.proposal_id
    return event.proposal.id if isinstance(event, _PROPOSALS) else None
