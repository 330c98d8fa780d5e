"""State of a task, or of the session that has it, in the one word that every front end uses."""

from enum import StrEnum

from agent_workbench.core.plan import TaskStatus


class WorkState(StrEnum):
    """State of a task or of a session.

    `WAITS`: a proposal waits in an open session. `PARKED`: one waits in a session that nobody has open. `STOPPED`: the
    session ended before its task did; a further run continues it. What follows `FAILED` is only said of sessions.
    """

    PENDING = "pending"
    QUEUED = "queued"
    BLOCKED = "blocked"
    RUNNING = "running"
    WAITS = "waits"
    PARKED = "parked"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
    OPEN = "open"
    ANSWERED = "answered"
    NO_TASK = "no task"
    EMPTY = "empty"
    DAMAGED = "damaged"


def work_state(status: TaskStatus, *, held: bool, waits: bool) -> WorkState:
    """Return the state of a task of which the plan, or the journal, says `status`.

    `held`: a process has its session open. `waits`: a proposal of it waits.
    """
    if status is not TaskStatus.IN_PROGRESS:
        return WorkState(status)
    if waits:
        return WorkState.WAITS if held else WorkState.PARKED
    return WorkState.RUNNING if held else WorkState.STOPPED
