"""List of a repository's sessions, and the events and figures of past ones, read without proving the journals.

They are shown to the user only: nothing is proved here, so nothing may be decided by them.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.adapters.journal.blobs import JOURNAL, LOCK
from agent_workbench.adapters.journal.line_format import JournalLine, decode_line, peek_kind
from agent_workbench.adapters.journal.reader import FIRST_KIND, LAST_KIND, read_lines
from agent_workbench.core.errors import JournalError, StorageError, UsageError
from agent_workbench.core.events import Event, ModelAnswered, Recorded
from agent_workbench.core.events.codec import MAX_DEPTH, decode_event
from agent_workbench.core.history.past_actions import PastAction, PastActions, session_actions
from agent_workbench.core.history.summaries import KINDS, SessionSummary, done_tasks
from agent_workbench.core.ids import SESSION_ID, SessionId, TaskId
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.prompt_reads import reading_speed
from agent_workbench.core.task_estimates import TaskFigures
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

MOST_SESSIONS = 300
MOST_BYTES = 64_000_000
MOST_ACTIONS = 5_000
MOST_SPEED_SESSIONS = 20
_WANTED = frozenset({"action_proposed", "proposal_replaced", "action_decided"})
_ANSWERED = frozenset({"model_answered", "model_interrupted"})


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


def past_actions(sessions_dir: Path, kind: Permission) -> PastActions:
    """Return the actions of a kind in the newest sessions, within bounds; damaged lines are left out. Blocks."""
    found: list[PastAction] = []
    folders = session_folders(sessions_dir)
    names = {directory.name for directory in folders}
    read = sessions = 0
    for directory in folders[:MOST_SESSIONS]:
        if read > MOST_BYTES or len(found) > MOST_ACTIONS:
            break
        try:
            lines, _ = read_lines(directory)
        except (JournalError, StorageError):
            continue
        read += sum(map(len, lines))
        sessions += 1
        events, copied = tuple(decoded_events(lines, _WANTED)), copied_events(lines, names)
        found += session_actions(SessionId(directory.name), events, kind, copied)
    return PastActions(tuple(found[:MOST_ACTIONS]), sessions, sessions == len(folders) and len(found) <= MOST_ACTIONS)


def past_reading_speed(sessions_dir: Path, facts: ModelFacts) -> float:
    """Return the prompt tokens that a model read in a second in the newest answer that tells, else 0.0. Blocks."""
    speeds = (reading_speed(events, facts) for events in _newest_first(sessions_dir, _ANSWERED))
    return next((speed for speed in speeds if speed), 0.0)


def past_answers(sessions_dir: Path) -> Iterator[ModelAnswered]:
    """Yield the answers of models in the newest sessions, the newest first, within bounds. Blocks."""
    for events in _newest_first(sessions_dir, _ANSWERED):
        yield from (each for each in events if isinstance(each, ModelAnswered))


def _newest_first(sessions_dir: Path, kinds: Collection[str]) -> Iterator[Iterator[Event]]:
    """Yield the events of these kinds of each of the newest sessions, both the newest first."""
    try:
        folders = session_folders(sessions_dir)
    except StorageError:
        return
    read = 0
    for directory in folders[:MOST_SPEED_SESSIONS]:
        try:
            lines, _ = read_lines(directory)
        except (JournalError, StorageError):
            continue
        yield (each.event for each in decoded_events(reversed(lines), kinds))
        read += sum(map(len, lines))
        if read > MOST_BYTES:
            break


def copied_events(lines: Sequence[bytes], sessions: Collection[str]) -> int:
    """Return the last event that a fork copied from one of these sessions, -1 for any other session."""
    try:
        body = decode_line(lines[0]).body if lines else {}
    except JournalError:
        return -1
    seq = body.get("parent_seq")
    return seq if body.get("parent") in sessions and isinstance(seq, int) else -1


def decoded_events(lines: Iterable[bytes], kinds: Collection[str]) -> Iterator[Recorded]:
    """Yield the events of these kinds; damaged lines are left out."""
    for raw in lines:
        if peek_kind(raw) in kinds:
            try:
                line = decode_line(raw)
                yield Recorded(line.seq, line.time, decode_event(line.kind, _without_blobs(line.body)))
            except JournalError:
                continue


def _without_blobs(value: JsonValue, depth: int = 1) -> JsonValue:
    """Return the value with an empty text in place of each blob: no rule matches long texts."""
    if depth > MAX_DEPTH:
        raise JournalError(f"nested more than {MAX_DEPTH} levels deep")
    match value:
        case {"blob": str(), "bytes": int()}:
            return ""
        case dict():
            return {key: _without_blobs(each, depth + 1) for key, each in value.items()}
        case list():
            return [_without_blobs(each, depth + 1) for each in value]
        case _:
            return value


def past_figures(sessions_dir: Path) -> tuple[TaskFigures, ...]:
    """Return the figures of the done tasks, the newest session first; damaged lines are left out. Blocks.

    Tasks that asked no model count too: their time is of interest. What a fork copied counts once, in its parent.
    """
    try:
        folders = session_folders(sessions_dir)
    except StorageError:
        return ()
    names = {directory.name for directory in folders}
    found: list[TaskFigures] = []
    read = 0
    for directory in folders[:MOST_SESSIONS]:
        try:
            lines, _ = read_lines(directory)
        except (JournalError, StorageError):
            continue
        found += done_tasks(decoded_events(lines, KINDS), copied_events(lines, names))
        read += sum(map(len, lines))
        if read > MOST_BYTES:
            break
    return tuple(found)
