"""The inbox in the user's state folder: outside of every repository, and read-only in every sandbox."""

import asyncio
import os
import secrets
from collections.abc import Collection
from pathlib import Path

import msgspec

from agent_workbench.core.errors import DecisionRefused, StorageError, UsageError
from agent_workbench.core.ids import SessionId, session_id
from agent_workbench.core.inbox import InboxDecision, Reference, parse_reference
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory, sync_file, write_all
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular

POLL_SECONDS = 0.5
MOST_BYTES = 2_000_000
"""Limit of a file; it holds the ids of all hunks of the longest diff that can be approved."""
MOST_DECISIONS = 100
_SUFFIX = ".json"
_WRITABLE_BY_OTHERS = 0o022
_TRIES = 50


class LocalInbox:
    """`core.ports.stores.Inbox` as files `<folder>/<session>/<proposal>@<digest>.json`, private to the user."""

    def __init__(self, folder: Path, poll_seconds: float = POLL_SECONDS) -> None:
        """Keep decisions in `folder`, which `wait` looks at every `poll_seconds`; it is made by the first `put`."""
        self._folder = folder
        self._poll_seconds = poll_seconds

    async def put(self, decision: InboxDecision) -> InboxDecision:
        """Keep a decision durably; raise `DecisionRefused` if there is one with its reference."""
        await asyncio.to_thread(self._put, decision)
        return decision

    async def pending(self, session: SessionId) -> tuple[InboxDecision, ...]:
        """Return the decisions kept for a session, oldest first."""
        return await asyncio.to_thread(self._pending, session)

    def refused(self, session: SessionId) -> tuple[str, ...]:
        """Return nothing: nobody else can write to the folder."""
        del session
        return ()

    async def wait(self, session: SessionId, known: Collection[Reference] = ()) -> tuple[InboxDecision, ...]:
        """Return the decisions that are not `known` as soon as there is one."""
        while True:
            found = tuple(each for each in await self.pending(session) if each.reference not in known)
            if found:
                return found
            await asyncio.sleep(self._poll_seconds)

    async def remove(self, decision: InboxDecision) -> None:
        """Remove a decision; one that is gone already is no error."""
        await asyncio.to_thread(self._remove, decision.reference)

    def _put(self, decision: InboxDecision) -> None:
        folder, data = self._folder_of(decision.reference.session), msgspec.json.encode(decision)
        path = folder / _name(decision.reference)
        if len(data) > MOST_BYTES:
            raise UsageError(f"a decision of {len(data):,} bytes is too long", advice=f"up to {MOST_BYTES:,} are read")
        for _ in range(_TRIES):
            try:
                make_directories(folder)
                folder.chmod(0o700)
                _create(path, data)
            except FileNotFoundError:
                continue  # whoever removed the last decision removed the folder too
            except FileExistsError:
                if not path.exists():
                    continue  # it is the folder that was there, and is gone since
                raise _taken(decision.reference, _read(path)) from None
            except OSError as error:
                raise storage_error(f"{path} could not be written", error) from error
            return
        raise StorageError(f"{path} could not be written: its folder is removed again and again")

    def _pending(self, session: SessionId) -> tuple[InboxDecision, ...]:
        folder = self._folder_of(session)
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(_SUFFIX))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise storage_error(f"{folder} could not be read", error) from error
        found = (_read(folder / name) for name in names[:MOST_DECISIONS])
        return tuple(sorted((each for each in found if each is not None), key=lambda each: each.made_at))

    def _remove(self, reference: Reference) -> None:
        folder = self._folder_of(reference.session)
        check_record(folder)
        try:
            (folder / _name(reference)).unlink(missing_ok=True)
            sync_directory(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise storage_error(f"{folder / _name(reference)} could not be removed", error) from error
        try:
            folder.rmdir()
        except OSError:
            return  # there is another decision in it

    def _folder_of(self, session: SessionId) -> Path:
        """Return the session's folder; raise `UsageError`, `StorageError` for one that leads elsewhere."""
        folder = self._folder / session_id(session)
        if folder.is_symlink():
            raise StorageError(f"{folder} is a symbolic link", advice="remove it: no decision is kept behind one")
        return folder


def _name(reference: Reference) -> str:
    return f"{reference.proposal}@{reference.digest}{_SUFFIX}"


def _create(path: Path, data: bytes) -> None:
    """Make a file that is there whole or not at all; raise `FileExistsError` if there is one of that name."""
    fresh = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(descriptor, data)
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        os.link(fresh, path, follow_symlinks=False)  # unlike a rename, it never replaces a file
    finally:
        fresh.unlink(missing_ok=True)
    sync_directory(path.parent)


def _read(path: Path) -> InboxDecision | None:
    """Return the decision in a file, None for whatever is not one that this user wrote under its name."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & _WRITABLE_BY_OTHERS or facts.st_size > MOST_BYTES:
                return None
            decision = msgspec.json.decode(file.read(MOST_BYTES), type=InboxDecision)
            reference = parse_reference(str(decision.reference))
    except (OSError, msgspec.MsgspecError, UnicodeError, UsageError, RecursionError):
        return None
    return decision if path.name == _name(reference) and path.parent.name == reference.session else None


def _taken(reference: Reference, first: InboxDecision | None) -> DecisionRefused:
    by = f": {first.verdict.past} by {first.made_by} at {first.made_at}" if first is not None else ""
    return DecisionRefused(
        f"{reference.proposal} was decided already{by}",
        advice="it is recorded as soon as the session is open: `agent run` or `agent tui` opens it",
    )
