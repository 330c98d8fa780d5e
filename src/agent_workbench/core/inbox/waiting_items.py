"""Items of the inbox from the state of a session: what waits there, since when, with which risk, and from where."""

from collections.abc import Sequence

from agent_workbench.core.events import Recorded
from agent_workbench.core.ids import TaskId
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import Task, TaskOrigin, is_queued
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import newest_steps


def waiting_item(state: SessionState, events: Sequence[Recorded], holder: str) -> InboxItem | None:
    """Return what waits in a session, None if nothing does that can be decided now.

    `events` are its newest, `holder` is who has it open. The merge of a task that is over waits only while
    somebody has the session open.
    """
    run, proposal = state.run, state.waiting
    if proposal is None or (run is not None and run.undoing is not None) or not (state.at_work or holder):
        return None
    at_gate = state.run_at_gate
    task = at_gate.definition if at_gate is not None else None
    return InboxItem(
        state.session,
        at_gate.task if at_gate is not None else TaskId(""),
        proposal,
        next(step.since for step in newest_steps(events) if step.proposal.id == proposal.id),
        holder,
        risk=proposal.risk(
            foreign=task is not None and task.origin is not TaskOrigin.LOCAL,
            confined=state.config is not None and state.config.sandbox.holds,
        ),
        source=_source(task, state.plan_path) if task is not None else "",
    )


def may_expire(item: InboxItem, state: SessionState) -> bool:
    """Return True for what an unattended session parked and nobody has open.

    Without a summary there may be no room for the next step, and a fork is some person's.
    """
    forked = state.run is not None and bool(state.run.fork)
    parked = state.config is not None and state.config.headless and not item.holder and not forked
    return parked and bool(item.task) and item.proposal.kind is not Permission.SUMMARY


def _source(task: Task, plan_path: str) -> str:
    """Return where a task comes from, empty for one of the plan."""
    origin = "" if task.origin is TaskOrigin.LOCAL else str(task.origin)
    return task.source or origin or (plan_path if is_queued(plan_path) else "")
