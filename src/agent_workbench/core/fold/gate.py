"""Fold of the gate: one proposal, the same for every kind of work, the hooks that answer to it, and the decision."""

from typing import TypeVar, assert_never

from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ActionStarted,
    GateEvent,
    HookAnswered,
    HookEvent,
    HookStarted,
    NotesOffered,
    PauseChanged,
    ProposalReplaced,
    UndoAsked,
    WorkEvent,
)
from agent_workbench.core.hook_answers import HookAnswer, HookRun
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import COMPACT, OURS, Proposal, ProposalStage, Verdict, is_person
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import ENDED, Phase, SessionState, TaskRun
from agent_workbench.core.state.work import Gate, Work

AnyWork = TypeVar("AnyWork", bound=Work)


def fold_gate(work: AnyWork, event: GateEvent | WorkEvent) -> AnyWork:
    """Return the work with its gate after an event; events that are not about its proposal change nothing."""
    gate = _moved(work.gate, event)
    return work if gate is work.gate else replace(work, gate=gate)


def _moved(gate: Gate, event: GateEvent | WorkEvent) -> Gate:
    match event:
        case ActionProposed():
            return Gate(event.proposal, ProposalStage.WAITING)
        case ProposalReplaced():
            return replace(gate, proposal=event.proposal, stage=ProposalStage.WAITING)
        case ActionDecided():
            approved = event.verdict is Verdict.APPROVE
            return replace(gate, decision=event, stage=ProposalStage.APPROVED if approved else ProposalStage.REFUSED)
        case ActionStarted():
            return replace(gate, stage=ProposalStage.RUNNING)
        case ActionFinished():
            unknown = event.result is ActionResult.UNKNOWN
            return replace(gate, stage=ProposalStage.UNKNOWN if unknown else ProposalStage.FINISHED)
        case _:
            return gate


def at_stage(work: AnyWork, stage: ProposalStage) -> AnyWork:
    """Return the work with its proposal in another stage."""
    return replace(work, gate=replace(work.gate, stage=stage))


def dropped(work: AnyWork) -> AnyWork:
    """Return the work after the user ended it, with nothing left to do at its gate, whatever was decided there."""
    return replace(work, gate=Gate(work.gate.proposal, ProposalStage.REFUSED))


def waiting_again(work: AnyWork) -> AnyWork:
    """Return the work whose proposal waits again, undecided."""
    return replace(work, gate=Gate(work.gate.proposal, ProposalStage.WAITING))


def without_approval(work: AnyWork) -> AnyWork:
    """Return the work with its proposal at the gate again if it was approved and is not begun."""
    return waiting_again(work) if work.gate.stage is ProposalStage.APPROVED else work


def fold_run_gate(state: SessionState, run: TaskRun, event: GateEvent) -> SessionState:
    """Return the state after an event of the gate group; `run` is the one whose gate it moved."""
    match event:
        case ActionProposed():
            calls = run.tool_calls + int(event.proposal.tool not in OURS)
            return replace(state, main=replace(run, answer=None, tool_calls=calls))
        case ProposalReplaced():
            return replace(state, main=run)
        case ActionDecided():
            trouble = None if event.verdict is Verdict.ABORT else state.trouble
            return replace(state, trouble=trouble, main=_decided(run, event))
        case AbortAsked():
            # A running action ends first; one that is approved but not started is dropped.
            aborted = replace(run, phase=Phase.ROLLING_BACK, reason=event.reason, undoing=None)
            return replace(state, trouble=None, main=aborted if run.gate.running else dropped(aborted))
        case UndoAsked() if run.phase in ENDED:
            return state
        case UndoAsked():
            return replace(state, trouble=None, main=_to_undo(run, event))
        case PauseChanged():
            return replace(state, main=replace(run, paused=event.paused))
        case NotesOffered():
            return state  # notes are beside the runs
    assert_never(event)


def _to_undo(run: TaskRun, event: UndoAsked) -> TaskRun:
    """Return the run with a diff to undo. A running action ends first; a summary touches no files and stays."""
    begun = run.gate.stage is ProposalStage.APPROVED and run.gate.tool not in {"", COMPACT}
    undoing = replace(run, undoing=event.proposal_id, answer=None)
    return at_stage(undoing, ProposalStage.REFUSED) if begun else undoing


def _decided(run: TaskRun, event: ActionDecided) -> TaskRun:
    proposal = run.gate.proposal
    if proposal is None:
        return run
    match event.verdict:
        case Verdict.APPROVE:
            by_user = proposal.kind is Permission.CHECK and is_person(event.by)
            return replace(run, approved_checks=proposal.commands if by_user else run.approved_checks)
        case Verdict.ABORT:
            return replace(run, phase=Phase.ROLLING_BACK, reason=event.reason or "aborted")
        case Verdict.REJECT | Verdict.SKIP:
            if proposal.tool == COMPACT:
                return _without_summary(run, event.verdict)
            return replace(run, phase=_phase_after_refusal(run.phase, proposal, event.verdict))
    assert_never(event.verdict)


def _without_summary(run: TaskRun, verdict: Verdict) -> TaskRun:
    """Return the run without the pending summary: an optional one is skipped, another is requested again.

    A skipped summary of the notes leaves them as they are.
    """
    if run.notes_full:
        return run.with_notes_settled(run.notes_settled)
    if run.phase is Phase.COMPACTING and run.compaction_asked and verdict is Verdict.SKIP:
        return replace(run, phase=run.compacts_for, compaction_asked=False)
    return run


def _phase_after_refusal(phase: Phase, proposal: Proposal, verdict: Verdict) -> Phase:
    if proposal.kind is Permission.MERGE:
        return Phase.OVER
    match proposal.purpose:
        case CheckPurpose.BASELINE:
            return Phase.RETRIEVING
        case CheckPurpose.FINAL if verdict is Verdict.SKIP:
            return Phase.COMMITTING
        case _:
            return phase if phase is Phase.ROLLING_BACK else Phase.STEPPING


def fold_hooks(state: SessionState, event: HookEvent) -> SessionState:
    """Return the state after an event of a hook."""
    if not event.proposal_id:
        return state
    match event:
        case HookStarted() if state.waiting is None or state.waiting.id != event.proposal_id:
            return state  # it was decided meanwhile
        case HookStarted():
            begun = HookRun(event.proposal_id, event.hook, event.point)
            return replace(state, hook_runs=(*state.hook_runs, begun))
        case HookAnswered():
            answer = HookAnswer(event.verdict, event.reason, event.failed)
            ended = HookRun(event.proposal_id, event.hook, event.point)
            runs = tuple(replace(run, answer=answer) if run == ended else run for run in state.hook_runs)
            return replace(state, hook_runs=runs)
    assert_never(event)


def fold_hook_gate(state: SessionState, event: GateEvent | WorkEvent) -> SessionState:
    """Return the state without the runs for a content that was decided, or no longer waits."""
    match event:
        case ActionProposed() | ProposalReplaced():
            return _without_runs(state, event.proposal.id)
        case ActionDecided():
            return _without_runs(state, event.proposal_id)
        case _:
            return state


def _without_runs(state: SessionState, proposal: ProposalId) -> SessionState:
    if not state.hook_runs:
        return state
    return replace(state, hook_runs=tuple(run for run in state.hook_runs if run.proposal != proposal))
