"""Which journal a start of the workbench writes to: one asked for, the unfinished one, or a new one."""

from dataclasses import dataclass
from pathlib import Path

from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.sessions import find_session, list_sessions
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.events import Recorded
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports import Ids


@dataclass(frozen=True, slots=True)
class Opening:
    """A journal that is held now, and what stands in it (nothing when it is new)."""

    session: SessionId
    writer: JournalWriter
    events: tuple[Recorded, ...] = ()
    torn_bytes: int = 0


def open_journal(sessions_dir: Path, ids: Ids, redactor: Redactor, *, wanted: str, fresh: bool) -> Opening:
    """Open the session `wanted` names, else the newest with an unfinished task (unless `fresh`), else a new one.

    Blocks. Raises `UsageError` for a name that fits none or several, `LockedError`, `JournalError`, `StorageError`.
    """
    directory = session_to_take_up(sessions_dir, wanted=wanted, fresh=fresh)
    if directory is not None:
        opened = JournalWriter.open_existing(directory, redactor)
        return Opening(SessionId(directory.name), opened.writer, opened.events, opened.torn_bytes)
    session = ids.session()
    return Opening(session, JournalWriter.open_new(sessions_dir / session, redactor))


def session_to_take_up(sessions_dir: Path, *, wanted: str, fresh: bool) -> Path | None:
    """Return the folder of the session that `open_journal` would go on with, None where it would begin a new one."""
    if wanted:
        return find_session(sessions_dir, wanted)
    return None if fresh else _unfinished(sessions_dir)


def _unfinished(sessions_dir: Path) -> Path | None:
    for summary in list_sessions(sessions_dir):
        if summary.status is TaskStatus.IN_PROGRESS and not summary.holder and not summary.problem:
            return summary.directory
    return None
