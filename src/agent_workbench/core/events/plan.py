"""Events of the plan: its content, the status of tasks, scratchpads, and a plan asked of the model."""

from enum import StrEnum

from msgspec import field

from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import AnswerFigures, Sampling
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.retrieval import Chunk


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


class DispatchedTask(RecordedValue, frozen=True):
    """A task of the plan in the queue: its `name` there, and the approved `plan` (empty: the dispatch approved it).

    `definition` is exactly what was queued.
    """

    task: TaskId
    name: str
    plan: str
    definition: Task


class PlanDispatched(RecordedValue, frozen=True):
    """A person had tasks of the plan put into the queue; each is there once, however often this is repeated."""

    tasks: tuple[DispatchedTask, ...]
    by: str


class TasksWithdrawn(RecordedValue, frozen=True):
    """A person took tasks back from the queue, by their names there; what ran is stopped."""

    names: tuple[str, ...]
    reason: str
    by: str


class ScratchpadChanged(RecordedValue, frozen=True):
    """A task's scratchpad was changed to `text`; prompts show `told_chars` characters of it (0: all)."""

    task: TaskId
    text: str
    by: Author
    told_chars: int = 0


class PlanAsked(RecordedValue, frozen=True):
    """The user asked the model for a plan that reaches `goal`; it `replaces` the plan, or is appended to it.

    `wording` is the version of the texts for the model. With `check_for` only an acceptance command is asked for, for
    this task of the plan, which is about to start and has none. With `rest` the plan is to replace the tasks that are
    not over.
    """

    goal: str
    wording: int
    replaces: bool = False
    check_for: str = ""
    rest: bool = False


class PlanSurveyed(RecordedValue, frozen=True):
    """The repository was searched for the goal: what the planner's prompt shows of it.

    `code` and `tests` are the best pieces of each. `commands` are those of tests and lint. `files` are the first paths,
    those with pieces before the others; `more_files` is the number of the rest.
    """

    code: tuple[Chunk, ...] = ()
    tests: tuple[Chunk, ...] = ()
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    more_files: int = 0


class PlanPrompted(RecordedValue, frozen=True):
    """The planner's prompt was sent: its number, its estimated tokens, SHA-256 of its messages, and its sampling."""

    step: int
    tokens: int
    sha: str
    endpoint: str
    seed: int = 0
    grammar_sha: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    answer_tokens: int = 0


class PlanAnswered(RecordedValue, frozen=True):
    """The planner answered. `stopped` says why the answer is unfinished (empty: it is whole); then it is never read."""

    step: int
    text: str
    figures: AnswerFigures
    endpoint: str = ""
    model: str = ""
    reasoning: str = ""
    stopped: str = ""


class PlanRejected(RecordedValue, frozen=True):
    """An answer held no valid plan; `reason` says exactly what was wrong."""

    step: int
    reason: str
