"""Messages of the plan pane, and the actions that it asks for."""

from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message

from agent_workbench.core.ids import TaskId
from agent_workbench.views.plan import TaskRow


class PlanAction(StrEnum):
    """Action on the plan or on its selected task."""

    START = "start"
    MERGE = "merge"
    MOVE_UP = "move_up"
    MOVE_DOWN = "move_down"
    NEW = "new"
    EDIT = "edit"
    EDIT_ALL = "edit_all"
    SHOW = "show"
    BLOCK = "block"
    ASK = "ask"
    TAKE = "take"
    REPLACE = "replace"


@dataclass
class Requested(Message, namespace="plan_pane"):
    """The user asks for an action at the selected task (None: there is none)."""

    action: PlanAction
    row: TaskRow | None


@dataclass
class TaskSelected(Message, namespace="plan_pane"):
    """A task was selected."""

    task: TaskId


class RowsSeen(Message, namespace="plan_pane"):
    """More of a proposed plan was on screen."""
