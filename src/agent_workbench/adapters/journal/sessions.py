"""The sessions of a repository at a glance, read from the few lines that say most."""

from dataclasses import dataclass
from pathlib import Path

from agent_workbench.adapters.journal.files import LOCK
from agent_workbench.adapters.journal.line import Line, parse
from agent_workbench.adapters.journal.reader import FIRST_KIND, LAST_KIND, read_lines
from agent_workbench.core.codec import JsonValue
from agent_workbench.core.errors import JournalError, StorageError, UsageError
from agent_workbench.core.ids import SESSION_ID, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.host.locks import lock_holder

_TASK_STARTED = b'"kind":"task_started"'
_TASK_FINISHED = b'"kind":"task_finished"'


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session as a list shows it.

    `started` and `last` are UTC times in ISO 8601; `tasks` in the order they were started; `status` of the task
    worked on last; `left` tells that it came to its own end; `holder` says who has it open, empty: nobody. `problem` is
    what of the lines looked at does not fit (all lines are looked at by `verify_journal` alone).
    """

    id: SessionId
    directory: Path
    started: str = ""
    last: str = ""
    parent: SessionId | None = None
    tasks: tuple[TaskId, ...] = ()
    status: TaskStatus | None = None
    left: bool = False
    events: int = 0
    holder: str = ""
    torn_bytes: int = 0
    problem: str = ""


def list_sessions(sessions_dir: Path) -> tuple[SessionSummary, ...]:
    """Return the sessions in a folder, newest first; none where there is no folder. Blocks; raises `StorageError`."""
    return tuple(_summary(directory) for directory in _directories(sessions_dir))


def find_session(sessions_dir: Path, wanted: str = "") -> Path:
    """Return the folder of the session whose id, or whose last six characters, begin with `wanted`; empty: the newest.

    Raises `UsageError` when there is none or more than one.
    """
    found = [each for each in _directories(sessions_dir) if _answers_to(each.name, wanted)]
    if not found:
        raise UsageError(
            f"no session begins with {wanted!r}" if wanted else "there is no session yet",
            advice=f"sessions are kept in {sessions_dir}; `agent sessions list` shows them",
        )
    if wanted and len(found) > 1:
        raise UsageError(
            f"{len(found)} sessions begin with {wanted!r}", advice="one of " + ", ".join(each.name for each in found)
        )
    return found[0]


def _directories(sessions_dir: Path) -> list[Path]:
    try:
        found = [each for each in sessions_dir.iterdir() if SESSION_ID.fullmatch(each.name) and each.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{sessions_dir} could not be read: {error.strerror}") from error
    return sorted(found, key=lambda each: each.name, reverse=True)


def _answers_to(name: str, wanted: str) -> bool:
    return name.startswith(wanted) or name.rpartition("-")[2].startswith(wanted)


def _summary(directory: Path) -> SessionSummary:
    session = SessionId(directory.name)
    try:
        holder = lock_holder(directory / LOCK)
        lines, torn = read_lines(directory)
    except (JournalError, StorageError) as error:
        return SessionSummary(session, directory, problem=str(error))
    if not lines:
        return SessionSummary(session, directory, holder=holder, torn_bytes=len(torn), problem="no event was recorded")
    problems: list[str] = []
    first, last = (_line(lines, place, problems) for place in (0, len(lines) - 1))
    tasks, status = _tasks(lines, problems)
    parent = first.body.get("parent") if first and first.kind == FIRST_KIND else None
    return SessionSummary(
        session,
        directory,
        started=first.time if first else "",
        last=last.time if last else "",
        parent=SessionId(parent) if isinstance(parent, str) else None,
        tasks=tasks,
        status=status,
        left=last is not None and last.kind == LAST_KIND,
        events=len(lines),
        holder=holder,
        torn_bytes=len(torn),
        problem=problems[0] if problems else "",
    )


def _line(lines: list[bytes], place: int, problems: list[str]) -> Line | None:
    try:
        line = parse(lines[place])
    except JournalError as error:
        problems.append(f"line {place + 1}: {error}")
        return None
    if line.seq != place:
        problems.append(f"line {place + 1}: seq is {line.seq}, {place} belongs here")
    return line


def _tasks(lines: list[bytes], problems: list[str]) -> tuple[tuple[TaskId, ...], TaskStatus | None]:
    tasks: dict[TaskId, None] = {}
    status: TaskStatus | None = None
    for place, raw in enumerate(lines):
        started = _TASK_STARTED in raw
        if not started and _TASK_FINISHED not in raw:
            continue
        line = _line(lines, place, problems)
        if line is None:
            continue
        tasks[TaskId(str(line.body.get("task")))] = None
        status = TaskStatus.IN_PROGRESS if started else _status(line.body.get("status"))
    return tuple(tasks), status


def _status(value: JsonValue) -> TaskStatus | None:
    return TaskStatus(value) if isinstance(value, str) and value in set(TaskStatus) else None
