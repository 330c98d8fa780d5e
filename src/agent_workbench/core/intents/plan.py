"""Intents that concern the plan; they are accepted while a task runs too."""

from msgspec import Struct

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import PlanPiece


class OpenPlan(Struct, frozen=True):
    """Show the text of a task (None: of the whole plan) for editing, or a new task after it."""

    task: TaskId | None = None
    new: bool = False


class EditPlan(Struct, frozen=True):
    """Replace a piece of the plan that was shown by `text`."""

    piece: PlanPiece
    text: str


class MoveTask(Struct, frozen=True):
    """Move a task one place up or down in the plan."""

    task: TaskId
    up: bool


class BlockTask(Struct, frozen=True):
    """Block a task, with a reason, or unblock it (not `blocked`)."""

    task: TaskId
    reason: str = ""
    blocked: bool = True


PlanIntent = OpenPlan | EditPlan | MoveTask | BlockTask
