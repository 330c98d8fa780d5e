"""What comes next, as a pure function of the state; so a session goes on after a crash exactly where it stood."""

from typing import assert_never

from msgspec import Struct

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import TroubleMet
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import Proposal, ProposalStage
from agent_workbench.core.settings import Limits
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.engine.runtime.budget import spent


class Idle(Struct, frozen=True):
    """No task is being worked on."""


class AwaitRetry(Struct, frozen=True):
    """Something outside stopped the work."""

    trouble: TroubleMet


class AwaitGo(Struct, frozen=True):
    """The user paused the task: the model would be asked now."""


class Undo(Struct, frozen=True):
    """The diff of this proposal is to be taken back."""

    proposal: ProposalId


class Decide(Struct, frozen=True):
    """A proposal waits for its decision."""

    proposal: Proposal


class Carry(Struct, frozen=True):
    """An approved proposal is to be carried out."""

    proposal: Proposal


class Settle(Struct, frozen=True):
    """A proposal was started and nobody knows its outcome: it is never run again by itself."""

    proposal: Proposal


class ProposeChecks(Struct, frozen=True):
    """The task's checks are to be proposed."""

    purpose: CheckPurpose


class Retrieve(Struct, frozen=True):
    """Code for the first prompt is to be found."""


class Ask(Struct, frozen=True):
    """The model is to be asked."""

    purpose: Purpose


class ReadAnswer(Struct, frozen=True):
    """An answer is to be read: a step, a reflexion, or a summary."""


class ProposeCommit(Struct, frozen=True):
    """What was approved is to be offered as a commit."""


class ProposeEnd(Struct, frozen=True):
    """The end of a task in which nothing is changed is to be put before the gate."""


class RollBack(Struct, frozen=True):
    """The workspace is to go back to its base."""

    reason: str


class Close(Struct, frozen=True):
    """The task's end is to be written down."""


Move = (
    Idle
    | AwaitRetry
    | AwaitGo
    | Undo
    | Decide
    | Carry
    | Settle
    | ProposeChecks
    | Retrieve
    | Ask
    | ReadAnswer
    | ProposeCommit
    | ProposeEnd
    | RollBack
    | Close
)


def next_move(state: SessionState) -> Move:
    """Return what is to be done now."""
    run = state.run
    if run is None:
        return Idle()
    if state.trouble is not None:
        return AwaitRetry(state.trouble)
    if run.undoing is not None and run.stage is not ProposalStage.RUNNING:
        return Undo(run.undoing)
    if run.proposal is not None:
        match run.stage:
            case ProposalStage.WAITING:
                return Decide(run.proposal)
            case ProposalStage.APPROVED:
                return Carry(run.proposal)
            case ProposalStage.RUNNING:
                return Settle(run.proposal)
            case ProposalStage.REFUSED | ProposalStage.FINISHED | ProposalStage.UNKNOWN:
                pass
            case _:
                assert_never(run.stage)
    return _by_phase(run, state.config.limits if state.config else Limits())


def _by_phase(run: TaskRun, limits: Limits) -> Move:
    match run.phase:
        case Phase.BASELINE:
            return ProposeChecks(CheckPurpose.BASELINE)
        case Phase.RETRIEVING:
            return Retrieve()
        case Phase.STEPPING:
            return _step(run, limits, Purpose.EXECUTOR)
        case Phase.CHECKING:
            return ProposeChecks(run.check_purpose)
        case Phase.REFLECTING:
            return _step(run, limits, Purpose.REFLEXION)
        case Phase.COMPACTING:
            return _step(run, limits, Purpose.SUMMARY)
        case Phase.COMMITTING:
            return ProposeCommit() if run.changed else ProposeEnd()
        case Phase.ROLLING_BACK:
            return RollBack(run.reason)
        case Phase.CLOSING:
            return Close()
        case Phase.OVER:
            return Idle()
    assert_never(run.phase)


def _step(run: TaskRun, limits: Limits, purpose: Purpose) -> Move:
    if run.answer is not None:
        return ReadAnswer()
    if run.paused:
        return AwaitGo()
    if reason := spent(run, limits):
        return RollBack(reason)
    return Ask(purpose)
