"""Intents that concern the plan; they are accepted while a task runs too."""

from msgspec import Struct

from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.plan import PlanPiece, Task


class OpenPlan(Struct, frozen=True):
    """Show the text of a task (None: of the whole plan) for editing, or a new task after it.

    `draft` is the new task as proposed (None: a template).
    With a `proposal` the text is that of the proposed plan, which `EditProposal` replaces.
    """

    task: TaskId | None = None
    new: bool = False
    draft: Task | None = None
    proposal: ProposalId | None = None


class EditPlan(Struct, frozen=True):
    """Replace a piece of the plan that was shown by `text`."""

    piece: PlanPiece
    text: str


class DraftTask(Struct, frozen=True):
    """Propose a task from the user's words: goal, scope and checks from the repository. Nothing is written.

    `seen`: the user sees it before it starts, so its words may name its checks.
    """

    words: str
    seen: bool = False


class AddTask(Struct, frozen=True):
    """Append a task to the plan; if another task has its id by now, it gets the next free one."""

    task: Task


class MoveTask(Struct, frozen=True):
    """Move a task one place up or down in the plan."""

    task: TaskId
    up: bool


class BlockTask(Struct, frozen=True):
    """Block a task, with a reason, or unblock it (not `blocked`)."""

    task: TaskId
    reason: str = ""
    blocked: bool = True


class ProposePlan(Struct, frozen=True):
    """Ask the model for a plan that reaches `goal`; it `replaces` the plan, or is appended to it.

    `rest`: it replaces the tasks of the plan that are not over; those that are queued are withdrawn then.
    """

    goal: str
    replaces: bool = False
    rest: bool = False


class ArrangePlan(Struct, frozen=True):
    """Arrange the proposed plan: the order of all its tasks, those that are `left` out, and append or replace."""

    proposal: ProposalId
    order: tuple[TaskId, ...]
    left: tuple[TaskId, ...] = ()
    replaces: bool = False


PlanChange = OpenPlan | EditPlan | AddTask | MoveTask | BlockTask | ProposePlan | ArrangePlan
PlanIntent = PlanChange | DraftTask
