"""List of a repository's sessions, read from a few lines of each journal without proving it."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.adapters.journal.blobs import JOURNAL, LOCK
from agent_workbench.adapters.journal.line_format import JournalLine, decode_line, peek_kind
from agent_workbench.adapters.journal.reader import FIRST_KIND, LAST_KIND, read_lines
from agent_workbench.core.errors import JournalError, StorageError, UsageError
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SESSION_ID, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.text.amounts import short_title
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.system.folder_trees import open_regular
from agent_workbench.system.locks import lock_holder

MOST_HEADER_BYTES = 100_000
MOST_KEPT = 10_000
# Figures are read without decoding their line: a list proves nothing.
_STEP = re.compile(rb'"body":\{"step":(\d{1,18})(?!\d)')
_TOKENS = re.compile(rb'"(?:prompt|answer)_tokens":(\d{1,18})(?!\d)')
_ANSWERS = {"model_answered", "model_interrupted", "plan_answered", "consultant_answered"}
_BEGINS = {"task_started", "session_forked"}
_OPENS_GATE = {"action_proposed", "proposal_replaced"}
_CLOSES_GATE = {"action_decided", "action_finished", "task_rolled_back", "task_finished", "task_started"}


def find_session(sessions_dir: Path, wanted: str = "") -> Path:
    """Return the folder of the session whose id, or its last six characters, begin with `wanted`.

    An empty `wanted` means the newest. Raises `UsageError` if there is none, or more than one.
    """
    found = [each for each in session_folders(sessions_dir) if _has_name(each.name, wanted)]
    if not found and not wanted:
        raise UsageError(f"there is no session yet in {sessions_dir}", advice="`agent tui` starts one")
    if not found:
        advice = f"sessions are kept in {sessions_dir}; `agent sessions list` shows them"
        raise UsageError(f"no session begins with {wanted!r}", advice=advice)
    if wanted and len(found) > 1:
        raise UsageError(
            f"{len(found)} sessions begin with {wanted!r}", advice="one of " + ", ".join(each.name for each in found)
        )
    return found[0]


def session_folders(sessions_dir: Path) -> list[Path]:
    """Return the folders of the sessions, newest first; raise `StorageError`. Blocks."""
    try:
        found = [each for each in sessions_dir.iterdir() if SESSION_ID.fullmatch(each.name) and each.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{sessions_dir} could not be read: {error.strerror}") from error
    return sorted(found, key=lambda each: each.name, reverse=True)


def parent_of(directory: Path) -> tuple[SessionId, int] | None:
    """Return the parent of a fork and the last event copied from it; None for any other session. Blocks."""
    try:
        with os.fdopen(open_regular(directory / JOURNAL), "rb") as file:
            body = decode_line(file.readline(MOST_HEADER_BYTES).rstrip(b"\n")).body
    except (OSError, JournalError):
        return None
    parent, seq = body.get("parent"), body.get("parent_seq")
    if not isinstance(parent, str) or not isinstance(seq, int) or not SESSION_ID.fullmatch(parent):
        return None
    return SessionId(parent), seq


def names_branch(directory: Path, branch: str) -> bool:
    """Return True if the journal in a folder says that a task was begun on a branch; False without a folder.

    A journal with a damaged line may say so: True as well. Blocks.
    """
    if not os.path.lexists(directory):
        return False
    try:
        lines, _ = read_lines(directory)
        bodies = [decode_line(raw).body for raw in lines if peek_kind(raw) in _BEGINS]
    except (JournalError, StorageError):
        return True
    places = [body.get("workspace") for body in bodies]
    return any(isinstance(place, dict) and place.get("branch") == branch for place in places)


def _has_name(name: str, wanted: str) -> bool:
    return name.startswith(wanted) or name.rpartition("-")[2].startswith(wanted)


def summarize_session(directory: Path) -> SessionSummary:
    """Return what the session in a folder says of itself. Blocks; never raises: its `problem` tells."""
    session = SessionId(directory.name)
    try:
        holder = lock_holder(directory / LOCK)
        if holder and not os.path.lexists(directory / JOURNAL):
            return SessionSummary(session, holder=holder)  # it is being opened
        return replace(_summary_of(directory, _stamp(directory / JOURNAL)), holder=holder)
    except (JournalError, StorageError) as error:
        return SessionSummary(session, problem=str(error))


def _stamp(journal: Path) -> tuple[int, ...]:
    """Return what changes with a journal; nothing for one that cannot be read, as its reader says."""
    try:
        status = journal.lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_ctime_ns


@lru_cache(maxsize=MOST_KEPT)
def _summary_of(directory: Path, stamp: tuple[int, ...]) -> SessionSummary:
    """Return what a journal says; raise `JournalError`, `StorageError`. A running workbench asks again and again."""
    del stamp
    session = SessionId(directory.name)
    lines, torn = read_lines(directory)
    if not lines:
        return SessionSummary(session, torn_bytes=len(torn))
    problems: list[str] = []
    first, last = (_line(lines, place, problems) for place in (0, len(lines) - 1))
    facts = _facts(lines, problems)
    header = first.body if first and first.kind == FIRST_KIND else {}
    parent, parent_seq = header.get("parent"), header.get("parent_seq")
    return SessionSummary(
        session,
        started=first.time if first else "",
        last=last.time if last else "",
        parent=SessionId(parent) if isinstance(parent, str) else None,
        parent_seq=parent_seq if isinstance(parent_seq, int) else None,
        tasks=tuple(facts.tasks),
        title=facts.title,
        status=facts.status,
        waits=facts.waits,
        left=last is not None and last.kind == LAST_KIND,
        events=len(lines),
        steps=facts.steps + facts.step,
        tokens=facts.tokens,
        torn_bytes=len(torn),
        problem=problems[0] if problems else "",
        consultations=facts.consultations,
        label=label if isinstance(label := header.get("label"), str) else "",
        chat=facts.chat,
    )


def _line(lines: Sequence[bytes], place: int, problems: list[str]) -> JournalLine | None:
    try:
        line = decode_line(lines[place])
    except JournalError as error:
        problems.append(f"line {place + 1}: {error}")
        return None
    if line.seq != place:
        problems.append(f"line {place + 1}: seq is {line.seq}, {place} belongs here")
    return line


class _Facts(Struct):
    """Facts from the lines read so far: `steps` of earlier tasks, `step` of the current one."""

    tasks: dict[TaskId, None] = field(default_factory=dict)
    title: str = ""
    status: TaskStatus | None = None
    waits: bool = False
    steps: int = 0
    step: int = 0
    tokens: int = 0
    consultations: int = 0
    chat: bool = False


def _facts(lines: Sequence[bytes], problems: list[str]) -> _Facts:
    facts = _Facts()
    for place, raw in enumerate(lines):
        kind = peek_kind(raw)
        if kind in {"task_started", "task_finished"}:
            _add_task(facts, lines, place, problems)
        elif kind == "user_said" and facts.chat and not facts.title and (line := _line(lines, place, problems)):
            facts.title = short_title(str(line.body.get("text", "")))
        elif kind == "prompt_built" and (step := _STEP.search(raw)):
            facts.step = int(step[1])
        elif kind in _ANSWERS:
            facts.tokens += sum(int(count) for count in _TOKENS.findall(raw))
        facts.consultations += kind == "consultant_answered"
        facts.chat = facts.chat or kind == "chat_started"
        if kind in _OPENS_GATE:
            facts.waits = True
        elif kind in _CLOSES_GATE:
            facts.waits = False
    return facts


def _add_task(facts: _Facts, lines: Sequence[bytes], place: int, problems: list[str]) -> None:
    line = _line(lines, place, problems)
    if line is None:
        return
    facts.tasks[TaskId(str(line.body.get("task")))] = None
    if line.kind == "task_started":
        facts.status = TaskStatus.IN_PROGRESS
        definition = line.body.get("definition")
        facts.title = short_title(str(definition.get("description", ""))) if isinstance(definition, dict) else ""
        facts.steps, facts.step = facts.steps + facts.step, 0
    else:
        facts.status = _status(line.body.get("status"))


def _status(value: JsonValue) -> TaskStatus | None:
    return TaskStatus(value) if isinstance(value, str) and value in set(TaskStatus) else None
