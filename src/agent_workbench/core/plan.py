"""The plan and its tasks, the rules for which may start, the state of each, and a piece of the plan's text."""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.task_estimates import Intent, Needs
from agent_workbench.core.text.amounts import short_title

QUEUE_FOLDER = "tasks/queue"
"""Folder of the repo for the tasks of workers, one folder in it for each project."""


def is_queued(plan_path: str) -> bool:
    """Return True if the plan at this path is that of a queued task."""
    return plan_path.startswith(f"{QUEUE_FOLDER}/")


class TaskStatus(StrEnum):
    """Status of a task."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"
    QUEUED = "queued"
    """A worker does it: it was dispatched to the queue."""


class Owner(StrEnum):
    """Worker of a task: the agent or a person."""

    AGENT = "agent"
    HUMAN = "human"


OrNumber = Annotated[str, Meta(extra={"or_number": True})]
"""Text that a document may also spell as an integer; the spelling is kept."""


class TaskOrigin(StrEnum):
    """Source of a task. Only the commands of a `local` one are the user's own."""

    LOCAL = "local"
    FORGE = "forge"
    MCP = "mcp"
    DATABASE = "database"
    REPOSITORY = "repository"
    """A queue file that git tracks, so that it came with the repository."""


Unwritten = Annotated[TaskOrigin, Meta(extra={"unwritten": True})]
"""Value that no document may spell: the caller of its reader knows it."""


class Budget(RecordedValue, frozen=True):
    """Limits on the cost of a task; None is unlimited. Waiting at a gate costs no minutes."""

    tokens: int | None = None
    dollars: float | None = None
    minutes: float | None = None


class PathScope(RecordedValue, frozen=True):
    """Paths that a task may write and read, as globs over repo-relative POSIX paths."""

    allowed_write_globs: tuple[str, ...] = ("**",)
    allowed_read_globs: tuple[str, ...] = ("**",)


class Constraints(RecordedValue, frozen=True):
    """Limits on what a task may change and run; None is no limit of its own.

    `review`: a consultant reviews the change before its commit (None: as `limits.review` says).
    """

    max_files_changed: int | None = None
    max_diff_bytes: int | None = None
    timeout_seconds: float | None = None
    denylisted_commands: tuple[str, ...] = ()
    review: bool | None = None


class TaskEdit(RecordedValue, frozen=True):
    """A change that the task names itself: `find` becomes `replace`, `content` the whole file, or a unified `diff`.

    `path` is relative to the repo. `find` is a text that the file has exactly once. A diff names its own files.
    """

    path: str = ""
    find: str | None = None
    replace: str | None = None
    content: str | None = None
    diff: str | None = None


class Task(RecordedValue, frozen=True):
    """One task of a plan or of a queue; `blocked_because` is the reason if it is blocked.

    A task with `edits` needs no model: they are its whole change. `service` names what it is for in the audit.
    `queued_as` is the id of a plan's task in the queue. `plan` is the approved plan that a queued task comes from,
    `SESSION/PROPOSAL`.
    """

    id: TaskId
    description: str
    goal: str = ""
    suggested_approach: str = ""
    accept_tests: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    owner: Owner = Owner.AGENT
    status: TaskStatus = TaskStatus.PENDING
    depends_on: tuple[TaskId, ...] = ()
    applicable_skills: tuple[str, ...] = ()
    scope: PathScope = field(default_factory=PathScope)
    constraints: Constraints = field(default_factory=Constraints)
    source: str = ""
    parent_issue: OrNumber = ""
    subtask: str = ""
    blocked_because: str = ""
    edits: tuple[TaskEdit, ...] = ()
    intent: Intent | None = None
    service: str = ""
    needs: Needs = field(default_factory=Needs)
    queued_as: str = ""
    plan: str = ""
    origin: Unwritten = TaskOrigin.LOCAL

    @property
    def changes_nothing(self) -> bool:
        """True for research: no file may be written, and only tools that read and check are offered."""
        return self.intent is Intent.RESEARCH

    @property
    def title(self) -> str:
        """The description in a few words."""
        return short_title(self.description)

    @property
    def open(self) -> bool:
        """True if the task is still to be done."""
        return self.status in (TaskStatus.PENDING, TaskStatus.IN_PROGRESS)

    def with_status(self, status: TaskStatus, reason: str = "") -> "Task":
        """Return the task with another status; `reason` is why it is blocked, or the id of a queued one there."""
        begins = status in (TaskStatus.PENDING, TaskStatus.IN_PROGRESS)
        name = reason if status is TaskStatus.QUEUED else "" if begins else self.queued_as
        because = reason if status is TaskStatus.BLOCKED else ""
        return replace(self, status=status, blocked_because=because, queued_as=name)

    def defined_as(self, other: "Task") -> bool:
        """Return True if both definitions are equal, whatever their status and their place in the queue."""
        return self.definition == other.definition

    @property
    def definition(self) -> "Task":
        """The task without what changes while it is worked on."""
        return self.with_status(TaskStatus.PENDING)

    @property
    def commit_id(self) -> TaskId:
        """The id under which the task's commit is found: that in the queue, if a worker did it."""
        return TaskId(self.queued_as or self.id)


class Plan(RecordedValue, frozen=True):
    """An ordered list of tasks and their common goal."""

    tasks: tuple[Task, ...] = ()
    goal: str = ""

    def task(self, wanted: TaskId) -> Task:
        """Return the task with this id; raise `PlanError` naming the known ones."""
        for task in self.tasks:
            if task.id == wanted:
                return task
        known = ", ".join(task.id for task in self.tasks) or "none"
        raise PlanError(f"the plan has no task {wanted!r}", advice=f"tasks of the plan: {known}")

    def with_status(self, wanted: TaskId, status: TaskStatus, reason: str = "") -> "Plan":
        """Return the plan with one task's status changed; an unknown id changes nothing."""
        return replace(
            self,
            tasks=tuple(task.with_status(status, reason) if task.id == wanted else task for task in self.tasks),
        )

    def with_checks(self, wanted: TaskId, commands: tuple[str, ...]) -> "Plan":
        """Return the plan with the acceptance commands of one task; an unknown id changes nothing."""
        tasks = (replace(task, accept_tests=commands) if task.id == wanted else task for task in self.tasks)
        return replace(self, tasks=tuple(tasks))

    def moved(self, wanted: TaskId, *, up: bool) -> "Plan":
        """Return the plan with one task moved up or down by one place; unchanged at the end of the list."""
        tasks = list(self.tasks)
        at = tasks.index(self.task(wanted))
        to = at - 1 if up else at + 1
        if 0 <= to < len(tasks):
            tasks[at], tasks[to] = tasks[to], tasks[at]
        return replace(self, tasks=tuple(tasks))

    @property
    def over(self) -> bool:
        """True if there are tasks and each is done or failed."""
        return bool(self.tasks) and all(each.status in (TaskStatus.DONE, TaskStatus.FAILED) for each in self.tasks)

    def waits_for(self, task: Task) -> tuple[TaskId, ...]:
        """Return the dependencies of `task` that are not done."""
        done = {each.id for each in self.tasks if each.status is TaskStatus.DONE}
        return tuple(each for each in task.depends_on if each not in done)

    def next_task(self, passing: Collection[TaskId] = ()) -> Task | None:
        """Return the first open task of the agent whose dependencies are done, except those of `passing`."""
        for task in self.tasks:
            if task.open and task.id not in passing and task.owner is Owner.AGENT and not self.waits_for(task):
                return task
        return None


def check_plan(plan: Plan) -> tuple[str, ...]:
    """Return the problems of the plan, a sentence each: repeated ids, unknown and circular dependencies."""
    problems = []
    ids = [task.id for task in plan.tasks]
    problems += [
        f"task id {each} is used {ids.count(each)} times" for each in dict.fromkeys(ids) if ids.count(each) > 1
    ]
    for task in plan.tasks:
        problems += [
            f"task {task.id} depends on {each}, which is not in the plan" for each in task.depends_on if each not in ids
        ]
    settled: set[TaskId] = set()
    rest = list(plan.tasks)
    while ready := [task for task in rest if all(each in settled or each not in ids for each in task.depends_on)]:
        settled.update(task.id for task in ready)
        rest = [task for task in rest if task not in ready]
    if rest:
        problems.append("these tasks depend on each other in a cycle: " + ", ".join(task.id for task in rest))
    return tuple(problems)


def next_id(tasks: tuple[Task, ...]) -> TaskId:
    """Return the next free id of the form `T-<n>`."""
    numbers = [int(task.id[2:]) for task in tasks if task.id.startswith("T-") and task.id[2:].isdigit()]
    return TaskId(f"T-{max(numbers, default=0) + 1}")


class TaskDraft(Struct, frozen=True):
    """A task proposed from the user's words; it is in no plan yet.

    `mentions` are the places that its first prompt will have, `remarks` tell what the user may want to know of it.
    """

    task: Task
    mentions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class PlanPiece(Struct, frozen=True):
    """A part of the plan's file for editing: `text` replaces `whole[start:end]`, `whole` is the file as read.

    `first_line` is the file's line number of its first line, `at_line` the line to start at. `task` is the task it
    spells (None: the whole plan). `new`: the plan does not have this task yet. `placeholder` is the text of a new task
    that the user replaces, empty if there is none.
    """

    path: str
    whole: str
    start: int
    end: int
    text: str
    first_line: int = 1
    at_line: int = 1
    task: TaskId | None = None
    new: bool = False
    placeholder: str = ""

    def whole_with(self, text: str) -> str:
        """Return the whole file with `text` in place of the piece; what follows stays on a line of its own."""
        head, rest = self.whole[: self.end], self.whole[self.end :]
        newline = "\r\n" if "\r\n" in self.whole else "\n"
        parted = head.endswith("\n") and rest and text and not text.endswith("\n")
        return self.whole[: self.start] + text + (newline if parted else "") + rest


class WorkState(StrEnum):
    """State of a task or of a session.

    `WAITS`: a proposal waits in an open session. `PARKED`: one waits in a session that nobody has open. `STOPPED`: the
    session ended before its task did; a further run continues it. What follows `FAILED` is only said of sessions.
    """

    PENDING = "pending"
    QUEUED = "queued"
    BLOCKED = "blocked"
    RUNNING = "running"
    WAITS = "waits"
    PARKED = "parked"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
    OPEN = "open"
    ANSWERED = "answered"
    NO_TASK = "no task"
    EMPTY = "empty"
    DAMAGED = "damaged"


def work_state(status: TaskStatus, *, held: bool, waits: bool) -> WorkState:
    """Return the state of a task of which the plan, or the journal, says `status`.

    `held`: a process has its session open. `waits`: a proposal of it waits.
    """
    if status is not TaskStatus.IN_PROGRESS:
        return WorkState(status)
    if waits:
        return WorkState.WAITS if held else WorkState.PARKED
    return WorkState.RUNNING if held else WorkState.STOPPED
