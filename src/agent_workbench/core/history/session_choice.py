"""Choice of the session to resume, made from the summaries of all sessions."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from agent_workbench.core.errors import JournalError
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus

MOST_LABELLED_EVENTS = 400
"""Events after which a label continues in a new session."""


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
