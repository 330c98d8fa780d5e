"""Steps of a session: each action with its answer, proposal, decisions and result, joined from the events once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

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
        """What was decided about."""
        return self.versions[-1] if self.versions else None


class Step(Struct, frozen=True):
    """One round of thought, action and observation, as far as it came.

    `versions` are the proposal as it was made in event `seq` and as it was replaced, the newest since the time `since`.
    `answer` is the model's newest before it: an action of the workbench itself (`OURS`) follows the one that it
    completes. `decisions` are several where the proposal had to wait again. `started` is the event before the effect,
    `applied` and `undone` are what was done to the files, `result` is the newest outcome.
    """

    seq: int
    since: str
    versions: tuple[Proposal, ...]
    answer: Placed[ModelAnswered] | None = None
    decisions: tuple[StepDecision, ...] = ()
    started: int | None = None
    applied: Placed[PatchApplied] | None = None
    result: Placed[ActionFinished] | None = None
    undone: Placed[StepUndone] | None = None

    @property
    def proposal(self) -> Proposal:
        """The action as it was proposed last."""
        return self.versions[-1]

    @property
    def first(self) -> Proposal:
        """The action as it was proposed first."""
        return self.versions[0]

    @property
    def tree(self) -> str:
        """The tree of all approved content after the action was applied, empty if it was not."""
        return self.applied.event.tree if self.applied is not None else ""

    @property
    def decision(self) -> StepDecision | None:
        """The decision about the proposal as it is now, None if there is none."""
        last = self.decisions[-1] if self.decisions else None
        return last if last is not None and len(last.versions) == len(self.versions) else None

    @property
    def by(self) -> str:
        """Who decided last, empty if nobody did."""
        return self.decisions[-1].event.by if self.decisions else ""


def newest_steps(history: Sequence[Recorded]) -> Iterator[Step]:
    """Yield the steps that are proposed in these events, newest first; they are read lazily, from their end."""
    later: dict[ProposalId, list[Recorded]] = {}
    unanswered: list[Step] = []
    for recorded in reversed(history):
        event = recorded.event
        if isinstance(event, ActionProposed):
            unanswered.append(_step(recorded, event.proposal, reversed(later.pop(event.proposal.id, ()))))
        elif isinstance(event, ModelAnswered):
            answer = Placed(recorded.seq, recorded.time, event)
            yield from (replace(step, answer=answer) for step in unanswered)
            unanswered = []
        elif (about := proposal_of(event)) is not None:
            later.setdefault(about, []).append(recorded)
    yield from unanswered


def steps_of(history: Sequence[Recorded]) -> tuple[Step, ...]:
    """Return the steps that are proposed in these events, in order."""
    return tuple(newest_steps(history))[::-1]


def proposals_of(history: Sequence[Recorded]) -> dict[ProposalId, Proposal]:
    """Return each proposal of these events as it was last, by its id, in order."""
    return {step.proposal.id: step.proposal for step in steps_of(history)}


def decisions_of(history: Iterable[Recorded]) -> Iterator[StepDecision]:
    """Yield the decisions in order, those too whose proposal is in other events."""
    versions: dict[ProposalId, tuple[Proposal, ...]] = {}
    for recorded in history:
        match recorded.event:
            case ActionProposed(proposal=proposal):
                versions[proposal.id] = (proposal,)
            case ProposalReplaced(proposal=proposal):
                versions[proposal.id] = (*versions.get(proposal.id, ()), proposal)
            case ActionDecided() as event:
                yield _decided(recorded, event, versions.get(event.proposal_id, ()))
            case _:
                continue


def proposal_of(event: Event) -> ProposalId | None:
    """Return the proposal that an event of a step is about, None for any other event."""
    match event:
        case ActionProposed() | ProposalReplaced():
            return event.proposal.id
        case ActionDecided() | ActionStarted() | PatchApplied() | ActionFinished() | StepUndone():
            return event.proposal_id
        case _:
            return None


def _decided(recorded: Recorded, event: ActionDecided, versions: tuple[Proposal, ...]) -> StepDecision:
    return StepDecision(recorded.seq, recorded.time, recorded.hash, event, versions)


def _step(first: Recorded, proposal: Proposal, later: Iterable[Recorded]) -> Step:
    """Return the step of a proposal from its later events."""
    versions: tuple[Proposal, ...] = (proposal,)
    since = first.time
    decisions, started = list[StepDecision](), None
    applied: Placed[PatchApplied] | None = None
    result: Placed[ActionFinished] | None = None
    undone: Placed[StepUndone] | None = None
    for recorded in later:
        match recorded.event:
            case ProposalReplaced() as event:
                versions, since = (*versions, event.proposal), recorded.time
            case ActionDecided() as event:
                decisions.append(_decided(recorded, event, versions))
            case ActionStarted():
                started = recorded.seq
            case PatchApplied() as event:
                applied = Placed(recorded.seq, recorded.time, event)
            case ActionFinished() as event:
                result = Placed(recorded.seq, recorded.time, event)
            case StepUndone() as event:
                undone = Placed(recorded.seq, recorded.time, event)
            case _:
                continue
    return Step(first.seq, since, versions, None, tuple(decisions), started, applied, result, undone)
