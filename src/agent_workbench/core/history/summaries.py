"""Summaries of a repo's sessions, figures of their done tasks, and the choice of the session to resume."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import (
    ActionFinished,
    ConsultantAnswered,
    ModelAnswered,
    PromptBuilt,
    Recorded,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.plan import QUEUE_FOLDER, TaskStatus, WorkState, work_state
from agent_workbench.core.task_estimates import TaskFigures

if TYPE_CHECKING:
    from agent_workbench.core.history.audit_records import AnyPage, AnyQuery
    from agent_workbench.core.history.comparison import Comparison
    from agent_workbench.core.history.journal_proof import JournalProof


SECONDS_A_MINUTE = 60.0
KINDS = frozenset(
    {"task_started", "prompt_built", "model_answered", "action_finished", "consultant_answered", "task_finished"}
)
"""Kinds of the events that count."""

MOST_LABELLED_EVENTS = 400
"""Events after which a label continues in a new session."""


class SessionSummary(Struct, frozen=True):
    """A session as a list shows it.

    `started` and `last` are UTC times in ISO 8601. `tasks` are in the order of their start, `status` is that of the
    last one. `waits`: a proposal is at the gate. `left`: the session ended normally. `holder` is who has it open, empty
    for nobody. `steps` and `tokens` count all tasks, including what a fork copied from its `parent` (events up to
    `parent_seq`). `ours`: the session was started here, so it can be resumed. `problem` is the first invalid line among
    those read; only a verification reads all lines. `title` is a short title of the last task, or of a chat. `label` is
    the free name that the session was begun under, `consultations` the number of answers by consultants. A `chat` has
    no tasks. `worker` names the machine that wrote the session last, empty if it is this one.
    """

    id: SessionId
    started: str = ""
    last: str = ""
    parent: SessionId | None = None
    parent_seq: int | None = None
    tasks: tuple[TaskId, ...] = ()
    status: TaskStatus | None = None
    waits: bool = False
    left: bool = False
    events: int = 0
    steps: int = 0
    tokens: int = 0
    holder: str = ""
    torn_bytes: int = 0
    ours: bool = False
    problem: str = ""
    title: str = ""
    label: str = ""
    consultations: int = 0
    chat: bool = False
    worker: str = ""

    @property
    def subject(self) -> str:
        """Ids of the tasks (or `chat`, or the label) and the title; empty if nothing was begun."""
        named = ", ".join(self.tasks) or ("chat" if self.chat else self.label)
        return " ".join(filter(None, (named, self.title)))

    @property
    def queued(self) -> bool:
        """True if the session works on a task of the queue; its label is the path of the task's file."""
        return self.label.startswith(f"{QUEUE_FOLDER}/")

    @property
    def state(self) -> WorkState:
        """State of the session. Of one that is open only its process knows whether it is at work."""
        if self.problem:
            return WorkState.DAMAGED
        if self.holder:
            return WorkState.WAITS if self.waits else WorkState.OPEN
        if self.status is not None:
            return work_state(self.status, held=False, waits=self.waits)
        if self.waits:
            return WorkState.PARKED
        if self.chat:
            return WorkState.STOPPED
        if self.consultations:
            return WorkState.ANSWERED
        return WorkState.NO_TASK if self.events else WorkState.EMPTY


def parked_tasks(summaries: Iterable[SessionSummary]) -> frozenset[TaskId]:
    """Return the tasks whose newest own session has a proposal that waits; `summaries` are newest first."""
    newest: dict[TaskId, SessionSummary] = {}
    for summary in summaries:
        if summary.ours and summary.tasks and not summary.queued:
            newest.setdefault(summary.tasks[-1], summary)
    return frozenset(task for task, summary in newest.items() if summary.waits)


class PastSessions(Protocol):
    """Port: what a screen asks of the repo's sessions. Each method may raise `WorkbenchError`."""

    async def summaries(self) -> Sequence[SessionSummary]:
        """Return all sessions, newest first."""

    async def verify(self, session: SessionId) -> "JournalProof":
        """Return the proof of the session's journal."""

    async def foresee_fork(self, session: SessionId, at: int | None) -> tuple[str, ...]:
        """Return a preview of a fork after event `at` (None: the last), line by line."""

    async def fork(self, session: SessionId, at: int | None) -> SessionId:
        """Create a session that continues after event `at`; return its id."""

    async def export(self, session: SessionId) -> str:
        """Write the session as Markdown into a new file; return its path."""

    async def compare(self, first: SessionId, second: SessionId) -> "Comparison":
        """Return the comparison of two sessions."""

    async def audit(self, query: "AnyQuery") -> "AnyPage":
        """Return the ends of tasks, the decisions or the costs that fit a query."""

    async def keep_picture(self, session: SessionId, seq: int, picture: str) -> str:
        """Write a picture of the screen at event `seq` into a new file; return its path."""


def done_tasks(events: Iterable[Recorded], copied: int = -1) -> Iterator[TaskFigures]:
    """Yield the figures of each task that is done after event `copied`."""
    run: TaskFigures | None = None
    for recorded in events:
        event = recorded.event
        if isinstance(event, TaskStarted):
            run = TaskFigures(0, 0, 0.0, 0.0, event.definition.intent)
        elif run is None:
            continue
        elif isinstance(event, TaskFinished):
            if event.status is TaskStatus.DONE and recorded.seq > copied:
                yield replace(run, minutes=run.minutes / SECONDS_A_MINUTE)
            run = None
        else:
            run = _with(run, event)


def _with(run: TaskFigures, event: object) -> TaskFigures:
    """Return the figures after an event; `minutes` holds seconds meanwhile."""
    match event:
        case PromptBuilt():
            return replace(run, steps=max(run.steps, event.step))
        case ModelAnswered(figures=figures):
            return replace(
                run,
                tokens=run.tokens + figures.prompt_tokens + figures.answer_tokens,
                dollars=run.dollars + figures.dollars,
                minutes=run.minutes + figures.prompt_seconds + figures.answer_seconds,
            )
        case ConsultantAnswered():
            seconds = event.duration_ms / 1000
            return replace(
                run,
                tokens=run.tokens + event.tokens,
                dollars=run.dollars + event.dollars,
                minutes=run.minutes + seconds,
            )
        case ActionFinished():
            return replace(run, minutes=run.minutes + event.seconds)
        case _:
            return run


class SessionQuery(Struct, frozen=True):
    """Request for a session: one by `name`, a `fresh` one, or the unfinished one (on one of `tasks`, None: on any).

    A session that stopped in one of the tasks `passing` is not resumed, one of a queued task only by its name. One
    without a task is resumed if a plan of the model waits in it, and `plans` is set. With a `label` it is the newest
    session that was begun under it and has room. A `fresh` one gets the id `new_id`, if one is given.
    """

    name: str = ""
    fresh: bool = False
    tasks: tuple[TaskId, ...] | None = None
    passing: frozenset[TaskId] = frozenset()
    plans: bool = False
    chat: bool = False
    label: str = ""
    new_id: SessionId = NO_SESSION


def unfinished_session(summaries: Iterable[SessionSummary], query: SessionQuery) -> SessionSummary | None:
    """Return the newest own session that stopped in a task, or at a plan, and that no process has open.

    Raises `JournalError` if it is damaged, unless a newer session was begun since. `summaries` are newest first.
    """
    if query.label:
        return _labelled(summaries, query.label)
    newer = False
    for summary in summaries:
        task = summary.tasks[-1] if summary.tasks else None
        fits = query.tasks is None or task is None or task in query.tasks
        if not fits or summary.holder or not summary.ours or summary.queued:
            continue
        if task in query.passing:
            newer = True
            continue
        plan_waits = query.plans and not summary.tasks and not summary.chat and summary.waits
        if (summary.status is TaskStatus.IN_PROGRESS or plan_waits) and not summary.problem:
            return summary
        if not newer and _is_damaged(summary):
            raise JournalError(
                f"session {summary.id} may be unfinished, and its journal is damaged: {summary.problem}",
                advice=f"`agent sessions verify {summary.id}` tells what; `--new` begins another session",
            )
        newer = True
    return None


def _labelled(summaries: Iterable[SessionSummary], label: str) -> SessionSummary | None:
    """Return the newest own session with a label that nobody has open, that is whole, and not long."""
    fitting = (
        each
        for each in summaries
        if each.label == label and each.ours and not each.holder and not each.problem
        if not each.tasks and not each.waits
    )
    return next((each for each in fitting if each.events < MOST_LABELLED_EVENTS), None)


def unfinished_tasks(summaries: Iterable[SessionSummary]) -> Mapping[TaskId, str]:
    """Return the tasks that own sessions stopped in, each with who has that session open (empty: nobody)."""
    found: dict[TaskId, str] = {}
    for summary in summaries:
        if summary.ours and summary.status is TaskStatus.IN_PROGRESS and not summary.problem and not summary.queued:
            found[summary.tasks[-1]] = summary.holder or found.get(summary.tasks[-1], "")
    return found


def was_killed_when_done(summaries: Iterable[SessionSummary], tasks: Sequence[TaskId]) -> bool:
    """Return True if the newest own session on one of these tasks was killed after it had the task done.

    `summaries` are newest first. The plan, which may have been changed since, is not looked at.
    """
    for summary in summaries:
        if summary.ours and summary.tasks and summary.tasks[-1] in tasks and not summary.queued:
            ended = summary.status is TaskStatus.DONE and not summary.left
            return ended and not summary.holder and not summary.problem
    return False


def _is_damaged(summary: SessionSummary) -> bool:
    """Return True if a damaged session may be unfinished; without a status its start cannot be read."""
    return bool(summary.problem and summary.events) and summary.status in {TaskStatus.IN_PROGRESS, None}
