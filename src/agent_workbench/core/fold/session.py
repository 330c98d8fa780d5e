"""Fold of the session's own events: start, configuration, model, trouble, end."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.approval_rules import ActiveMode, RuleScope, StoredRule
from agent_workbench.core.events import (
    ApprovalChanged,
    EndpointChosen,
    EndpointPassed,
    GrammarIgnored,
    ModeChanged,
    ModelObserved,
    ModelSwitched,
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
from agent_workbench.core.fold.gate import without_approval
from agent_workbench.core.ids import ProposalId, session_suffix
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.settings import ApprovalMode, Rule
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.work import Chat


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
            forked = replace(_left_alone(state), main=_moved(state, event))
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
        case ModelSwitched():
            # A chat and a session without a task have no run, and their model is that of the settings.
            if state.run is None:
                return state
            return replace(state, main=replace(state.run, switched=event if event.model else None))
        case EndpointChosen() | EndpointPassed():
            return state
        case TaskRouted():
            return replace(state, routed=event.decision)
        case GrammarIgnored():
            return replace(state, ungrammatical=tuple(dict.fromkeys((*state.ungrammatical, event.endpoint))))
        case TroubleMet():
            return replace(state, trouble=event)
        case RetryAsked():
            # The answers so far no longer count as misses.
            again = state.planning and replace(state.planning, misses=0)
            return replace(state, trouble=None, planning=again, main=state.main and replace(state.main, misses=0))
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
    waiting = state.waiting
    return ActiveMode(mode, kept, waiting.id if waiting is not None and waiting.id != covers else None)


def _left_alone(state: SessionState) -> SessionState:
    """Return the state without what counts only as long as the session is open: its trouble, own rules and mode."""
    return replace(state, left="", trouble=None, rules=_but(state, RuleScope.SESSION), mode=ActiveMode())


def _but(state: SessionState, kept: RuleScope) -> tuple[StoredRule, ...]:
    return tuple(each for each in state.rules if each.kept is not kept)


def _elsewhere(state: SessionState, event: SessionResumed) -> SessionState:
    """Return the state with the folders of the machine that resumed the session."""
    main = state.main
    if event.workspace and isinstance(main, TaskRun):
        main = replace(main, workspace=replace(main.workspace, path=event.workspace))
    moved = replace(state, repo=event.repo or state.repo, main=main)
    return _as_foreign(moved) if event.arrived else moved


def _as_foreign(state: SessionState) -> SessionState:
    """Return the state of a session that another machine wrote: its journal approves nothing here.

    The key of that machine stands for what it did, not for a person: what was approved and not begun waits again, and
    the task is not the user's own.
    """
    main = state.main and without_approval(state.main)
    if isinstance(main, TaskRun):
        origin = TaskOrigin.DATABASE if main.definition.origin is TaskOrigin.LOCAL else main.definition.origin
        main = replace(main, definition=replace(main.definition, origin=origin), approved_checks=())
    return replace(
        state,
        main=main,
        planning=state.planning and without_approval(state.planning),
        note_offer=state.note_offer and without_approval(state.note_offer),
    )


def _moved(state: SessionState, event: SessionForked) -> TaskRun | Chat | None:
    """Return the work with its open run in the fork's own workspace, with notes of its own."""
    if not isinstance(state.main, TaskRun) or event.workspace is None:
        return state.main
    fork = session_suffix(state.session)
    return replace(state.main, workspace=event.workspace, checkpoint=event.checkpoint, fork=fork)
