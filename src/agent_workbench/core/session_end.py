"""The end of a session: its exit code, one line of why, and the outcome of each task."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.ids import TaskId


class TaskOutcomeKind(StrEnum):
    """Result of an unattended run for one task; the order is that of the final sentence.

    `BLOCKED`: it could not begin. `HELD`: another process works on it. `WAITING`: it depends on one that is not done.
    """

    FAILED = "failed"
    BLOCKED = "blocked"
    PARKED = "parked"
    HELD = "held"
    WAITING = "waiting"
    DONE = "done"


class TaskOutcome(Struct, frozen=True):
    """Outcome of one task and one line of why; `commit` is on its branch, and can be merged."""

    task: TaskId
    outcome: TaskOutcomeKind
    reason: str
    commit: str = ""


class SessionEnd(Struct, frozen=True):
    """End of a session: exit code, one line of why, and the outcome of each task an unattended run came to."""

    exit_code: ExitCode = ExitCode.DONE
    reason: str = ""
    outcomes: tuple[TaskOutcome, ...] = ()
