"""Wiring of the sessions that machines share. Loaded where a database is set."""

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.database.copy_tools import CopyStates, CopyTools, Mirror
from agent_workbench.adapters.database.journal_rows import JournalRows, Leases
from agent_workbench.adapters.database.shared_store import SharedSessionStore
from agent_workbench.adapters.journal.journal_copies import JournalFolder
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_store import LocalSessionStore
from agent_workbench.adapters.local_machine import SystemClock, SystemIds
from agent_workbench.bootstrap.database import (
    machine_name,
    repository_key,
    session_refs,
    shared_database,
    shared_signatures,
)
from agent_workbench.bootstrap.stores import tombstones
from agent_workbench.system.atomic_files import FileChanged, make_directories, storage_error, write_atomically
from agent_workbench.system.locks import describe_holder
from agent_workbench.system.user_dirs import state_dir

if TYPE_CHECKING:
    from agent_workbench.bootstrap.shared_resources import SharingRepo
    from agent_workbench.core.database_report import Backlog
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.settings import Settings


def shared_sessions(
    repo: "SharingRepo", settings: "Settings", folder: Path, local: LocalSessionStore
) -> SharedSessionStore:
    """Return the sessions of all machines around the `local` ones, whose journals are in `folder`.

    Blocks; for a thread without an event loop.

    Nothing is connected yet. Raises `ConfigError` without the database's address, `RepoError` for a shallow clone.
    """
    key = asyncio.run(repository_key(repo))
    state, database = state_dir(), shared_database(repo, settings.database)
    worker = machine_name(settings)
    leases = Leases(database, key, _machine(state / "machine"), f"{worker}, {describe_holder()}")
    tools = CopyTools(
        JournalRows(database, key, leases),
        leases,
        _copies(folder),
        CopyStates(_copied(key)),
        shared_signatures(repo, settings.database),
        session_refs(repo, settings) if settings.database.remote else None,
        SystemClock(),
        worker,
    )
    folder = state / "shared" / key / "sessions"
    none = state / "shared" / key / "none"
    mirror = Mirror(
        tools, JournalFolder(folder, None), LocalSessionStore(folder, none, SystemIds(), lambda: Redactor(()))
    )
    stones = tombstones()

    def removed(session: "SessionId") -> bool:
        stone = stones.of(session)
        return stone is not None and stone.journal

    return SharedSessionStore(local, tools, mirror, removed)


async def copy_rest(sessions: "SessionStore") -> None:
    """Try once to copy what ended processes of this machine left of the `sessions`."""
    if isinstance(sessions, SharedSessionStore):
        await sessions.rest.copy_once()


def copy_backlog(repo: "SharingRepo", folder: Path) -> "Backlog":
    """Return what this machine's journals in `folder` have that was not copied, without the database.

    Blocks; for a thread without an event loop.
    """
    return CopyStates(_copied(asyncio.run(repository_key(repo)))).backlog(_copies(folder))


def _copies(folder: Path) -> JournalFolder:
    return JournalFolder(folder, state_dir() / "sessions")


def _copied(key: str) -> Path:
    return state_dir() / "shared" / key / "copied"


def _machine(path: Path) -> str:
    """Return the name that this state folder has among machines; it is made up once. Raises `StorageError`."""
    try:
        return path.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    except OSError as error:
        raise storage_error(f"{path} could not be read", error) from error
    try:
        make_directories(path.parent)
    except OSError as error:
        raise storage_error(f"{path.parent} could not be made", error) from error
    with suppress(FileChanged):  # another process made it meanwhile
        write_atomically(path, f"{secrets.token_hex(16)}\n".encode(), None, mode=0o600)
    return path.read_text("ascii").strip()
