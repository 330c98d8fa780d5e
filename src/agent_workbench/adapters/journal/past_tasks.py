"""Figures of the tasks that were done in a repository's newest sessions, read without proving the journals."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.journal.past_events import MOST_BYTES, MOST_SESSIONS, copied_events, decoded_events
from agent_workbench.adapters.journal.reader import read_lines
from agent_workbench.adapters.journal.session_list import session_folders
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.events import (
    ActionFinished,
    ConsultantAnswered,
    ModelAnswered,
    PromptBuilt,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.plan.estimates import TaskFigures

SECONDS_A_MINUTE = 60.0
_WANTED = frozenset(
    {"task_started", "prompt_built", "model_answered", "action_finished", "consultant_answered", "task_finished"}
)


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
        found += _done(lines, copied_events(lines, names))
        read += sum(map(len, lines))
        if read > MOST_BYTES:
            break
    return tuple(found)


def _done(lines: Sequence[bytes], copied: int) -> Iterator[TaskFigures]:
    """Yield the figures of each task that is done after event `copied`."""
    run: TaskFigures | None = None
    for recorded in decoded_events(lines, _WANTED):
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
