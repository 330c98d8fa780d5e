"""The next move of a session, as a pure function of its state: after a crash it continues exactly where it was."""

from itertools import takewhile
from typing import assert_never

from msgspec import Struct

from agent_workbench.core.checks.results import NEARLY, CheckPurpose, all_passed, fewer_fail
from agent_workbench.core.events import SHORT_DOCSTRINGS, TroubleMet
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import (
    APPLY_EDITS,
    CHECKS,
    COMMIT,
    Proposal,
    ProposalStage,
    Verdict,
    is_person,
)
from agent_workbench.core.settings import Limits, Permission
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.proposal_hooks import awaited_hook
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.state.work import Chat, Gate, NoteOffer, Planning
from agent_workbench.core.tools.spec import REWRITE
from agent_workbench.engine.runtime.budget import seconds_left, spent, time_spent

GIVEN_NAMES = {APPLY_EDITS: "the edits were", CHECKS: "the checks were", COMMIT: "the commit was"}


class Idle(Struct, frozen=True):
    """Wait for a task."""


class AwaitRetry(Struct, frozen=True):
    """Wait until the user retries what something outside stopped."""

    trouble: TroubleMet


class AwaitGo(Struct, frozen=True):
    """Wait until the user resumes the task: the model would be asked next."""


class Undo(Struct, frozen=True):
    """Undo the applied diff of this proposal."""

    proposal: ProposalId


class KeepAttempt(Struct, frozen=True):
    """Keep the change although it fails, because few tests do, and build the next prompt on it."""


class StartAfresh(Struct, frozen=True):
    """Undo the diffs of an attempt that failed, of which this one is the newest, and ask again from the beginning."""

    proposal: ProposalId


class Decide(Struct, frozen=True):
    """Wait for the decision about a proposal."""

    proposal: Proposal


class RunHook(Struct, frozen=True):
    """Run a hook that has to answer before a proposal is decided."""

    proposal: Proposal
    hook: str


class Execute(Struct, frozen=True):
    """Execute an approved proposal."""

    proposal: Proposal


class Recover(Struct, frozen=True):
    """Recover a proposal that was started and has no recorded outcome. It is never run again automatically."""

    proposal: Proposal


class ProposeChecks(Struct, frozen=True):
    """Propose the checks of the task."""

    purpose: CheckPurpose


class Retrieve(Struct, frozen=True):
    """Search the code for the first prompt."""


class ProposeEdits(Struct, frozen=True):
    """Propose the edits that the task names itself."""


class Ask(Struct, frozen=True):
    """Ask the model."""

    purpose: Purpose


class ReadAnswer(Struct, frozen=True):
    """Read the model's answer: a step, a reflexion, or a summary."""


class ReviewChange(Struct, frozen=True):
    """Ask a consultant to review the whole change before its commit."""


class ProposeCommit(Struct, frozen=True):
    """Propose the approved changes as a commit."""


class ProposeEnd(Struct, frozen=True):
    """Propose to end a task that changed nothing."""


class RollBack(Struct, frozen=True):
    """Reset the workspace to its base."""

    reason: str


class Close(Struct, frozen=True):
    """Write the end of the task to the plan and the journal."""


class Survey(Struct, frozen=True):
    """Search the repository for what the planner has to see."""


class AskPlan(Struct, frozen=True):
    """Ask the planner for a plan."""


class ReadPlan(Struct, frozen=True):
    """Read the planner's answer, or the plan that was put aside, and propose it."""


class TakePlan(Struct, frozen=True):
    """Write an approved plan. `begun`: a stop interrupted that; it is not repeated."""

    proposal: Proposal
    begun: bool


class ProposeNotes(Struct, frozen=True):
    """Propose the notes that were offered."""


class WriteNotes(Struct, frozen=True):
    """Write approved notes. `begun`: a stop interrupted that; it is not repeated."""

    proposal: Proposal
    begun: bool


Move = (
    Idle
    | AwaitRetry
    | AwaitGo
    | Undo
    | KeepAttempt
    | StartAfresh
    | Decide
    | RunHook
    | Execute
    | Recover
    | ProposeChecks
    | Retrieve
    | ProposeEdits
    | Ask
    | ReadAnswer
    | ReviewChange
    | ProposeCommit
    | ProposeEnd
    | RollBack
    | Close
    | Survey
    | AskPlan
    | ReadPlan
    | TakePlan
    | ProposeNotes
    | WriteNotes
)


def next_move(state: SessionState) -> Move:
    """Return the next move. A proposal waits for its hooks before anything but a person decides it."""
    move = _next_move(state)
    hook = awaited_hook(state, move.proposal) if isinstance(move, Decide) else ""
    return RunHook(move.proposal, hook) if isinstance(move, Decide) and hook else move


def _next_move(state: SessionState) -> Move:
    work = state.work
    if work is not None and state.trouble is not None:
        return AwaitRetry(state.trouble)
    match work:
        case TaskRun():
            return _run_move(work, state.config.limits if state.config else Limits())
        case Chat():
            return _chat_move(work)
        case Planning():
            return _plan_move(work)
        case NoteOffer():
            return _note_move(work)
        case None:
            return Idle()
    assert_never(work)


def _run_move(run: TaskRun, limits: Limits) -> Move:
    if run.undoing is not None and not run.gate.running:
        return Undo(run.undoing)
    return _gate_move(run.gate) or _by_phase(run, limits)


def _chat_move(chat: Chat) -> Move:
    if (move := _gate_move(chat.gate)) is not None:
        return move
    if not chat.due:
        return Idle()
    return ReadAnswer() if chat.answer is not None else Ask(Purpose.CHAT)


def _gate_move(gate: Gate) -> Move | None:
    """Return the next move of the proposal at a gate, None without one, or if it is over.

    A server whose question is refused waits for that word.
    """
    if gate.begun is not None:
        return Recover(gate.begun) if gate.running else Execute(gate.begun)
    if gate.waiting is not None:
        return Decide(gate.waiting)
    if gate.proposal is None or not gate.proposal.is_question or gate.stage is not ProposalStage.REFUSED:
        return None
    refused = gate.decision is not None and gate.decision.verdict in {Verdict.REJECT, Verdict.SKIP}
    return Execute(gate.proposal) if refused else None


def _note_move(offer: NoteOffer) -> Move:
    if offer.gate.begun is not None:
        return WriteNotes(offer.gate.begun, offer.gate.running)
    return _gate_move(offer.gate) or ProposeNotes()


def _plan_move(planning: Planning) -> Move:
    if planning.gate.begun is not None:
        return TakePlan(planning.gate.begun, planning.gate.running)
    if (move := _gate_move(planning.gate)) is not None:
        return move
    if planning.answer is not None or planning.aside is not None:
        return ReadPlan()
    return AskPlan() if planning.survey is not None else Survey()


def _by_phase(run: TaskRun, limits: Limits) -> Move:
    match run.phase:
        case Phase.BASELINE:
            return ProposeChecks(CheckPurpose.BASELINE)
        case Phase.RETRIEVING | Phase.STEPPING if run.definition.edits:
            return _edit(run, limits)
        case Phase.RETRIEVING:
            return Retrieve()
        case Phase.STEPPING:
            return (_afresh(run, limits) if run.kept_in_vain else None) or _step(run, limits, Purpose.EXECUTOR)
        case Phase.CHECKING:
            return RollBack(time_spent(run)) if seconds_left(run) == 0 else ProposeChecks(run.check_purpose)
        case Phase.REFLECTING:
            return _afresh(run, limits) or _step(run, limits, Purpose.REFLEXION)
        case Phase.COMPACTING:
            return _step(run, limits, Purpose.SUMMARY)
        case Phase.COMMITTING if run.changed and run.reviewed != run.tree and _is_reviewed(run, limits):
            return ReviewChange()
        case Phase.COMMITTING:
            return ProposeCommit() if run.changed else ProposeEnd()
        case Phase.ROLLING_BACK:
            return RollBack(run.reason)
        case Phase.CLOSING:
            return Close()
        case Phase.OVER:
            return Idle()
    assert_never(run.phase)


def _edit(run: TaskRun, limits: Limits) -> Move:
    """Return the next move of a task whose change is given: no model is asked."""
    if run.paused:
        return AwaitGo()
    if reason := _why_given_up(run) or spent(run, limits):
        return RollBack(reason)
    if not run.changed:
        return ProposeEdits()
    # The checks were stopped.
    return ProposeChecks(CheckPurpose.FINAL) if run.checks else ProposeCommit()


def _why_given_up(run: TaskRun) -> str:
    """Return why a task with given edits cannot be done any more, empty if it can.

    Without a model, nothing that is refused can be tried again.
    """
    proposal = run.gate.proposal
    if proposal is None or proposal.purpose is CheckPurpose.BASELINE:
        return ""
    if run.gate.stage is ProposalStage.REFUSED:
        decision = run.gate.decision
        verdict, reason = (decision.verdict, decision.reason) if decision is not None else (Verdict.REJECT, "")
        what = f"{GIVEN_NAMES.get(proposal.tool, f'{proposal.tool} was')} {verdict.past}"
        return f"{what}: {reason}" if reason else what
    if run.changed or run.gate.stage is not ProposalStage.FINISHED:
        return ""
    steps = tuple(newest_steps(run.history))
    if any(step.undone is not None for step in steps):
        return "the edits were undone"
    told = next((step.result.event.observation for step in steps if step.result is not None), "")
    return f"the edits were not made: {told}" if told else "the edits were not made"


def _afresh(run: TaskRun, limits: Limits) -> Move | None:
    """Return the move that ends an attempt, None where it goes on.

    Where a failing check alone is to pass, another attempt helps a small model more than an account of its mistakes.
    One after which nearly all pass is kept, and so is one that only other checks than tests speak against: the next
    begins there, and where that does not help either, without it. Any other is given up, unless a person edited it
    or left hunks out. Diffs that a model wrote itself stay: who can write them builds on them.
    """
    if not run.tries_afresh or run.answer is not None or run.paused or spent(run, limits):
        return None
    diffs = tuple(applied_diffs(run.history))
    attempt = tuple(takewhile(lambda each: each.tree != run.attempt_base, diffs))
    if run.kept_in_vain and not diffs:
        return KeepAttempt()
    taken_back = bool(run.kept_tree) and not run.kept_in_vain and len(attempt) == len(diffs)
    if not attempt or taken_back or any(each.proposal.tool != REWRITE for each in attempt):
        return None
    if _is_kept(run):
        return KeepAttempt()
    chosen = any(each.proposal.edited or each.proposal.hunks for each in attempt)
    # Sessions of 1.0 kept every attempt that a person approved.
    kept = run.wording < SHORT_DOCSTRINGS and any(is_person(each.by) for each in attempt)
    return None if chosen or kept else StartAfresh(attempt[0].proposal.id)


def _is_kept(run: TaskRun) -> bool:
    """Return True if an attempt is nearer to its end than the one that is kept, or near to it if none is."""
    if not run.results:
        return False
    done, kept = (all_passed(each[: run.required]) for each in (run.results, run.kept_results))
    known = {test for each in run.baseline or () for test in each.failed_tests}
    breaks = any(test not in known for each in run.results for test in each.failed_tests)
    if done and not breaks and not (run.kept_tree and kept):
        return True
    before, share = (run.kept_results, 1.0) if run.kept_tree else (run.baseline or (), NEARLY)
    return fewer_fail(before, run.results, share)


def _is_reviewed(run: TaskRun, limits: Limits) -> bool:
    """Return True if a consultant reviews the change before its commit."""
    own = run.definition.constraints.review
    return limits.review if own is None else own


def _step(run: TaskRun, limits: Limits, purpose: Purpose) -> Move:
    if run.answer is not None:
        return ReadAnswer()
    if run.paused:
        return AwaitGo()
    if reason := spent(run, limits):
        return ProposeCommit() if _is_ready(run) else RollBack(reason)
    return Ask(purpose)


def _is_ready(run: TaskRun) -> bool:
    """Return True if a change makes the failing acceptance pass, and its commit was not refused: it is no failure."""
    refused = run.gate.proposal is not None and run.gate.proposal.kind is Permission.COMMIT
    return run.tries_afresh and run.changed and run.shown_to_pass and not refused
