"""Events of the plan: its content, the status of tasks, scratchpads."""

from enum import StrEnum

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.recorded_value import RecordedValue


class Author(StrEnum):
    """Author of a change to a plan or a scratchpad."""

    USER = "user"
    MODEL = "model"
    WORKBENCH = "workbench"


class PlanRead(RecordedValue, frozen=True):
    """The plan was read from its file."""

    path: str
    plan: Plan
    by: Author = Author.WORKBENCH


class TaskStatusChanged(RecordedValue, frozen=True):
    """A task's status was written to the plan."""

    task: TaskId
    status: TaskStatus
    reason: str = ""


class ScratchpadChanged(RecordedValue, frozen=True):
    """A task's scratchpad was changed to `text`; prompts show `told_chars` characters of it (0: all)."""

    task: TaskId
    text: str
    by: Author
    told_chars: int = 0
