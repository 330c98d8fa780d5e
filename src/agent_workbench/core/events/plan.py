"""The plan's events: what it holds, how tasks stand, what scratchpads say."""

from enum import StrEnum

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.recorded_value import RecordedValue


class Author(StrEnum):
    """Who changed a plan or a scratchpad."""

    USER = "user"
    MODEL = "model"
    WORKBENCH = "workbench"


class PlanRead(RecordedValue, frozen=True):
    """The plan as it stood in its file."""

    path: str
    plan: Plan
    by: Author = Author.WORKBENCH


class TaskStatusChanged(RecordedValue, frozen=True):
    """A task's status was written to the plan."""

    task: TaskId
    status: TaskStatus
    reason: str = ""


class ScratchpadChanged(RecordedValue, frozen=True):
    """The whole text of a task's scratchpad after a change; prompts show `told_chars` characters of it (0: all)."""

    task: TaskId
    text: str
    by: Author
    told_chars: int = 0
