"""Trial of a policy: what it would have decided about the proposals of a recorded session."""

from collections.abc import Iterable

from msgspec.structs import replace

from agent_workbench.core.events import ActionProposed, ProposalReplaced, Recorded, SessionConfigured, TaskStarted
from agent_workbench.core.fold import fold
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.rules.policy_trial import TriedProposal
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.engine.approval.policy import parking_reason, ruling


def try_proposal(state: SessionState, proposal: Proposal, policy: SessionConfigured, task: Task) -> TriedProposal:
    """Return the decision about a proposal in this state under another policy, if it were of `task`.

    What a person approved in the recording does not count: an unattended task has nobody.
    """
    configured = fold(state, Recorded(state.seq + 1, state.time, policy))
    run = configured.run
    if run is not None:
        definition = replace(run.definition, origin=task.origin)
        configured = replace(configured, run=replace(run, definition=definition, approved_checks=()))
    found = ruling(configured, proposal)
    if found is None:
        return TriedProposal(proposal, None, parking_reason(configured, proposal))
    return TriedProposal(proposal, found.verdict, found.reason or found.by)


def is_passed(state: SessionState, policy: SessionConfigured) -> bool:
    """Return True if a policy decides what waits in a session, whatever it decides; nothing waits: False."""
    configured = fold(state, Recorded(state.seq + 1, state.time, policy))
    return configured.waiting is not None and ruling(configured, configured.waiting) is not None


def try_session(events: Iterable[Recorded], policy: SessionConfigured, task: Task) -> tuple[TriedProposal, ...]:
    """Return the decisions about the proposals of a session's tasks; if it worked on `task`, of that one alone."""
    tried: list[tuple[TaskRun, TriedProposal]] = []
    state = SessionState()
    for recorded in events:
        state = fold(state, recorded)
        event = recorded.event
        if isinstance(event, ActionProposed | ProposalReplaced) and state.run is not None:
            tried.append((state.run, try_proposal(state, event.proposal, policy, task)))
    own = [each for run, each in tried if run.task == task.id]
    return tuple(own or (each for _, each in tried))


def tasks_of(events: Iterable[Recorded]) -> tuple[Task, ...]:
    """Return the tasks that a session worked on, as they were defined then."""
    return tuple(each.event.definition for each in events if isinstance(each.event, TaskStarted))
