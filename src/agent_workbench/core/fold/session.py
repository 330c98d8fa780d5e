"""Fold of the session's own events: start, configuration, model, trouble, end."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import (
    ApprovalChanged,
    EndpointChosen,
    EndpointPassed,
    GrammarIgnored,
    ModeChanged,
    ModelObserved,
    RetryAsked,
    SessionConfigured,
    SessionEvent,
    SessionForked,
    SessionLeft,
    SessionResumed,
    SessionStarted,
    TaskRouted,
    TroubleMet,
)
from agent_workbench.core.fold.chat import retried_chat
from agent_workbench.core.fold.planning import retried
from agent_workbench.core.fold.proposal import waiting_again
from agent_workbench.core.ids import ProposalId, session_suffix
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.rules.matching import RuleScope, StoredRule
from agent_workbench.core.rules.modes import ActiveMode
from agent_workbench.core.settings import ApprovalMode, Rule
from agent_workbench.core.state.session_state import SessionState, TaskRun


def fold_session(state: SessionState, event: SessionEvent) -> SessionState:
    """Return the state after an event of the session group."""
    match event:
        case SessionStarted():
            return replace(
                state,
                session=event.session,
                repo=event.repo,
                base=event.base,
                parent=event.parent,
                parent_seq=event.parent_seq,
                label=event.label,
            )
        case SessionForked():
            forked = replace(_left_alone(state), run=_moved(state, event))
            return _as_foreign(forked) if event.arrived else forked
        case SessionConfigured():
            entered = _entered(state, event.mode, RuleScope.EVERYWHERE)
            return replace(state, config=event, rules=_configured(state, event), mode=entered)
        case SessionResumed():
            return _elsewhere(_left_alone(state), event)
        case SessionLeft():
            return replace(state, left=event.reason)
        case ModelObserved():
            others = tuple(pair for pair in state.models if pair[0] is not event.purpose)
            return replace(state, models=(*others, (event.purpose, event.facts)))
        case EndpointChosen() | EndpointPassed():
            return state
        case TaskRouted():
            return replace(state, routed=event.decision)
        case GrammarIgnored():
            return replace(state, ungrammatical=tuple(dict.fromkeys((*state.ungrammatical, event.endpoint))))
        case TroubleMet():
            return replace(state, trouble=event)
        case RetryAsked():
            return replace(state, trouble=None, planning=retried(state.planning), chat=retried_chat(state.chat))
        case ApprovalChanged():
            kept = StoredRule(event.rule or Rule(event.kind, any=True), event.kept)
            rules = tuple(each for each in state.rules if each != kept)
            return replace(state, rules=(*rules, kept) if event.always else rules)
        case ModeChanged():
            return replace(state, mode=_entered(state, event.mode, RuleScope.SESSION, event.covers))
    assert_never(event)


def _configured(state: SessionState, event: SessionConfigured) -> tuple[StoredRule, ...]:
    """Return the session's own rules and the ones found in files now."""
    session = tuple(each for each in state.rules if each.kept is RuleScope.SESSION)
    return (*session, *(StoredRule(rule, RuleScope.REPO) for rule in event.approvals.rules), *event.own_rules)


def _entered(state: SessionState, mode: ApprovalMode, kept: RuleScope, covers: ProposalId | None = None) -> ActiveMode:
    """Return the mode as it is entered now: a proposal that waits already stays with the user, except for `covers`."""
    waiting = state.run.waiting if state.run is not None else None
    return ActiveMode(mode, kept, waiting.id if waiting is not None and waiting.id != covers else None)


def _left_alone(state: SessionState) -> SessionState:
    """Return the state without what counts only as long as the session is open: its trouble, own rules and mode."""
    return replace(state, left="", trouble=None, rules=_but(state, RuleScope.SESSION), mode=ActiveMode())


def _but(state: SessionState, kept: RuleScope) -> tuple[StoredRule, ...]:
    return tuple(each for each in state.rules if each.kept is not kept)


def _elsewhere(state: SessionState, event: SessionResumed) -> SessionState:
    """Return the state with the folders of the machine that resumed the session."""
    run = state.run
    if event.workspace and run is not None:
        run = replace(run, workspace=replace(run.workspace, path=event.workspace))
    moved = replace(state, repo=event.repo or state.repo, run=run)
    return _as_foreign(moved) if event.arrived else moved


def _as_foreign(state: SessionState) -> SessionState:
    """Return the state of a session that another machine wrote: its journal approves nothing here.

    The key of that machine stands for what it did, not for a person: what was approved and not begun waits again, and
    the task is not the user's own.
    """
    run = state.run
    if run is not None:
        origin = TaskOrigin.DATABASE if run.definition.origin is TaskOrigin.LOCAL else run.definition.origin
        run = replace(waiting_again(run), definition=replace(run.definition, origin=origin), approved_checks=())
    return replace(
        state,
        run=run,
        chat=state.chat and waiting_again(state.chat),
        planning=state.planning and waiting_again(state.planning),
        note_offer=state.note_offer and waiting_again(state.note_offer),
    )


def _moved(state: SessionState, event: SessionForked) -> TaskRun | None:
    """Return the open run in the fork's own workspace, with notes of its own."""
    if state.run is None or event.workspace is None:
        return state.run
    fork = session_suffix(state.session)
    return replace(state.run, workspace=event.workspace, checkpoint=event.checkpoint, fork=fork)
