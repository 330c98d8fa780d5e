"""What a user wants of the plan, also while it is worked on; `core.intents` holds the rest."""

from msgspec import Struct

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan_text import PlanPiece


class OpenPlan(Struct, frozen=True):
    """Show the text of a task (None: of the whole plan), or a new one behind it, so that it can be edited."""

    task: TaskId | None = None
    new: bool = False


class EditPlan(Struct, frozen=True):
    """Put `text` in the place of a piece that was shown."""

    piece: PlanPiece
    text: str


class MoveTask(Struct, frozen=True):
    """Bring a task before its neighbour in the plan, or behind it."""

    task: TaskId
    up: bool


class BlockTask(Struct, frozen=True):
    """Say that a task is not to be started for now and why, or (not `blocked`) that it may be again."""

    task: TaskId
    reason: str = ""
    blocked: bool = True


PlanIntent = OpenPlan | EditPlan | MoveTask | BlockTask
