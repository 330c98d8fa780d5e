"""Events of past sessions and the figures of their done tasks, read without proving the journals.

They are shown to the user only: nothing is proved here, so nothing may be decided by them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from agent_workbench.adapters.journal.line_format import decode_line, peek_kind
from agent_workbench.adapters.journal.reader import read_lines
from agent_workbench.adapters.journal.session_list import session_folders
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.events import Event, ModelAnswered, Recorded
from agent_workbench.core.events.codec import MAX_DEPTH, decode_event
from agent_workbench.core.history.mode_approvals import PastAction, PastActions, session_actions
from agent_workbench.core.history.summaries import KINDS, done_tasks
from agent_workbench.core.ids import SessionId
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.prompt_reads import reading_speed
from agent_workbench.core.task_estimates import TaskFigures
from agent_workbench.core.tools.strict_json import JsonValue

MOST_SESSIONS = 300
MOST_BYTES = 64_000_000
MOST_ACTIONS = 5_000
MOST_SPEED_SESSIONS = 20
_WANTED = frozenset({"action_proposed", "proposal_replaced", "action_decided"})
_ANSWERED = frozenset({"model_answered", "model_interrupted"})


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
