"""Figures of the tasks that were done in a repository's newest sessions, read without proving the journals."""

from pathlib import Path

from agent_workbench.adapters.journal.past_events import MOST_BYTES, MOST_SESSIONS, copied_events, decoded_events
from agent_workbench.adapters.journal.reader import read_lines
from agent_workbench.adapters.journal.session_list import session_folders
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.history.task_figures import KINDS, done_tasks
from agent_workbench.core.plan.estimates import TaskFigures


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
