"""The plan's events: what it holds, how tasks stand, what scratchpads say."""

from dataclasses import dataclass
from enum import StrEnum

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, TaskStatus


class Author(StrEnum):
    """Who changed a plan or a scratchpad."""

    USER = "user"
    MODEL = "model"
    WORKBENCH = "workbench"


@dataclass(frozen=True, slots=True)
class PlanRead:
    """The plan as it stood in its file."""

    path: str
    plan: Plan
    by: Author = Author.WORKBENCH


@dataclass(frozen=True, slots=True)
class TaskStatusChanged:
    """A task's status was written to the plan."""

    task: TaskId
    status: TaskStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ScratchpadChanged:
    """The whole text of a task's scratchpad after a change; prompts show `told_chars` characters of it (0: all)."""

    task: TaskId
    text: str
    by: Author
    told_chars: int = 0
