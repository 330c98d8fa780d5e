"""Batches of lines: which of them go to the database together, and which after a push."""

from collections.abc import Sequence

from agent_workbench.adapters.database.sessions.journal_rows import MOST_LINE_BYTES
from agent_workbench.core.events.codec import kind_of
from agent_workbench.core.history.git_objects import NAMING_EVENTS
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.journal_copies import JournalCopies, StoredLine

NAMES_GIT = frozenset(map(kind_of, NAMING_EVENTS))
"""Kinds of events whose lines follow the git objects that they name."""
_CHANGES_FILES = frozenset({"patch_applied", "step_undone"})
"""Kinds whose content is only in the checkpoint that follows."""
_SETTLES = frozenset({"checkpoint_taken", "action_finished", "trouble_met", "task_finished", "session_left"})
BATCH_BYTES = 1_000_000


def waiting_lines(copies: JournalCopies, session: SessionId, offset: int) -> tuple[StoredLine, ...]:
    """Return the next lines behind `offset`, so many that some of them can be copied. Blocks."""
    limit = BATCH_BYTES
    while True:
        batch = copies.lines(session, offset, limit)
        if not batch or ready_lines(batch) or batch[-1].end - offset < limit // 2 or limit > MOST_LINE_BYTES:
            return batch
        limit *= 10


def follows_push(line: StoredLine) -> bool:
    """Return True for a line whose git objects are pushed before it is copied."""
    return line.kind in NAMES_GIT or line.kind in _CHANGES_FILES


def ready_lines(lines: Sequence[StoredLine]) -> tuple[StoredLine, ...]:
    """Return the first lines that go to the database together.

    A line that names git objects begins a batch of its own, because they are pushed before it, and with the head that
    the database has then. A change of files waits for the checkpoint with its content.
    """
    end = len(lines)
    for place, line in enumerate(lines):
        if place and follows_push(line):
            end = place
            break
        if line.kind in _CHANGES_FILES:
            settled = next((at for at, each in enumerate(lines[1:], 1) if each.kind in _SETTLES), None)
            return tuple(lines[: settled + 1]) if settled is not None else ()
    return tuple(lines[:end])
