"""What a user wants of the plan, also while it is worked on; `core.intents` holds the rest."""

from dataclasses import dataclass

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan_piece import PlanPiece


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """Show the text of a task (None: of the whole plan), or a new one behind it, so that it can be edited."""

    task: TaskId | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class EditPlan:
    """Put `text` in the place of a piece that was shown."""

    piece: PlanPiece
    text: str


@dataclass(frozen=True, slots=True)
class MoveTask:
    """Bring a task before its neighbour in the plan, or behind it."""

    task: TaskId
    up: bool


@dataclass(frozen=True, slots=True)
class BlockTask:
    """Say that a task is not to be started for now and why, or (not `blocked`) that it may be again."""

    task: TaskId
    reason: str = ""
    blocked: bool = True


PlanIntent = OpenPlan | EditPlan | MoveTask | BlockTask
