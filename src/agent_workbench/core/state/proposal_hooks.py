"""Hooks of the proposal that waits: those that have not answered, and the objections of the others."""

from agent_workbench.core.hook_answers import INTERRUPTED, HookAnswer, HookRun, HookVerdict, describe_answer
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.state.session_state import SessionState

_POINTS = {point.value: point for point in HookPoint if point.is_proposal}


def point_of(proposal: Proposal) -> HookPoint | None:
    """Return the event of a proposal, None for one that no hook runs for."""
    return _POINTS.get(f"{proposal.kind}_proposed")


def awaited_hook(state: SessionState, proposal: Proposal) -> str:
    """Return the name of the next hook that has to answer before the proposal is decided, empty if there is none.

    Hooks run one after the other, in the order of the settings, until one refuses.
    """
    point = point_of(proposal)
    if point is None or state.config is None:
        return ""
    runs = hook_runs(state, proposal)
    if any(run.answer is not None and run.answer.verdict is HookVerdict.REFUSE for run in runs):
        return ""
    answered = {run.hook for run in runs if run.point is point and run.answer is not None}
    waited_for = (each.name for each in state.config.hooks if point in each.events and each.name not in answered)
    return next(waited_for, "")


def hook_runs(state: SessionState, proposal: Proposal) -> tuple[HookRun, ...]:
    """Return the runs of hooks for the present content of a proposal, oldest first."""
    return tuple(run for run in state.hook_runs if run.proposal == proposal.id)


def began(state: SessionState, proposal: Proposal, hook: str, point: HookPoint) -> bool:
    """Return True if this hook was started for the present content of the proposal."""
    return any(run.hook == hook and run.point is point for run in hook_runs(state, proposal))


def objections(state: SessionState, proposal: Proposal) -> tuple[HookRun, ...]:
    """Return the runs whose hook refuses the proposal or asks for a person, a refusal first.

    A run without an answer asks: nobody knows what it would have said.
    """
    judged = tuple(_judged(run) for run in hook_runs(state, proposal) if run.point.is_proposal)
    against = (run for run in judged if run.answer is not None and run.answer.verdict is not HookVerdict.NONE)
    return tuple(sorted(against, key=lambda run: run.answer is not None and run.answer.verdict is HookVerdict.ASK))


def _judged(run: HookRun) -> HookRun:
    if run.answer is not None:
        return run
    return HookRun(run.proposal, run.hook, run.point, HookAnswer(HookVerdict.ASK, INTERRUPTED, failed=True))


def describe_objection(run: HookRun) -> str:
    """Return an objection as a line."""
    answer = run.answer or HookAnswer(HookVerdict.ASK, INTERRUPTED)
    return describe_answer(run.hook, answer.verdict, answer.reason)
