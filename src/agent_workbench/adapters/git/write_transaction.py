"""Transaction of file changes: all of them are made or none, even if the process is killed in between."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.folders import (
    OpenParent,
    check_inside,
    open_parent,
    parents_of,
    prune_folders,
    read_file,
    remove_empty,
    remove_tree,
    status_below,
)
from agent_workbench.adapters.git.objects import MAX_FILE_BYTES
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.system.atomic_files import storage_error, sync_file, write_all, write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import read_regular

_PLAN = "plan.json"


class _Move(Struct, frozen=True):
    """Change of one path; its new content is in `new-<number>`, its old content is kept in `old-<number>`."""

    number: int
    path: str
    existed: bool
    stays: bool


class WriteTransaction:
    """Transaction on the files below `root`. `folder` is private, on the same disk, and empty between transactions.

    Call `stage`, then `apply`, then `finish`. `roll_back` works at any time, also on a later object.
    """

    def __init__(self, root: str, folder: Path) -> None:
        self._root = root
        self._folder = folder

    def stage(self, changes: Sequence[FileChange]) -> list[Path | None]:
        """Check every preimage, write new contents beside the workspace and return their paths (None: removed).

        Raises `WorkspaceError` if a file changed, or is behind a link; `StorageError` if the disk refuses.
        """
        check_record(self._root)
        paths = [change.path for change in changes]
        if len(set(paths)) != len(paths):
            raise WorkspaceError(f"a path occurs twice in the changes: {shown(', '.join(paths), 300)}")
        for change in changes:
            self._check(change)
        staged: list[Path | None] = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for number, change in enumerate(changes):
                staged.append(None if change.after is None else self._keep(number, change.after))
            self._note(changes)
        except OSError as error:
            self.finish()
            raise storage_error("nothing was written", error) from error
        return staged

    def _keep(self, number: int, content: FileContent) -> Path:
        target = self._folder / f"new-{number}"
        # The umask decides the permissions of group and others, as it does for git.
        file = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o777 if content.executable else 0o666
        )
        try:
            write_all(file, content.data)
            sync_file(file)
        finally:
            os.close(file)
        return target

    def _check(self, change: FileChange) -> None:
        check_inside(change.path)
        now = read_file(self._root, change.path)
        if now != change.before:
            raise preimage_error(change.path)
        if now is None and status_below(self._root, change.path) is not None:
            raise WorkspaceError(f"{shown(change.path)} is a folder; a file cannot be put there")

    def _note(self, changes: Sequence[FileChange]) -> None:
        moves = [
            [number, change.path, change.before is not None, change.after is not None]
            for number, change in enumerate(changes)
        ]
        folders = {folder for change in changes for folder in parents_of(change.path)}
        missing = [folder for folder in folders if status_below(self._root, folder) is None]
        text = json.dumps({"moves": moves, "missing": missing}).encode()
        write_atomically(self._folder / _PLAN, text)

    def apply(self) -> None:
        """Move all files into place; on `StorageError` or `WorkspaceError` every file is as it was before."""
        moves, _ = self._planned()
        path = ""
        try:
            for move in moves:
                path = move.path
                self._apply(move)
        except (OSError, WorkspaceError) as error:
            self.roll_back()
            if isinstance(error, FileExistsError):
                raise preimage_error(path) from error
            if isinstance(error, WorkspaceError):
                raise
            raise storage_error(f"nothing was changed, {shown(path)} could not be written", error) from error
        except BaseException:
            self.roll_back()
            raise
        prune_folders(self._root, [move.path for move in moves if not move.stays])

    def _apply(self, move: _Move) -> None:
        if not move.existed and not move.stays:
            return
        new, old = str(self._folder / f"new-{move.number}"), str(self._folder / f"old-{move.number}")
        with open_parent(self._root, move.path, made=[] if move.stays else None) as at:
            if not move.stays:
                os.rename(at.name, old, src_dir_fd=at.folder)
            elif move.existed:
                os.link(at.name, old, src_dir_fd=at.folder, follow_symlinks=False)
                os.rename(new, at.name, dst_dir_fd=at.folder)
            else:
                # Unlike a rename, a hard link does not replace a file that another process created meanwhile.
                os.link(new, at.name, dst_dir_fd=at.folder)
            os.fsync(at.folder)

    def roll_back(self) -> None:
        """Undo an unfinished transaction, if there is one.

        Raises `StorageError` if that fails too. The old files are then kept, and a later call tries again.
        """
        moves, missing = self._planned()
        failed: list[OSError] = []
        for move in reversed(moves):
            try:
                self._undo(move)
            except OSError as error:
                failed.append(error)
        remove_empty(self._root, missing)
        if failed:
            raise storage_error(f"files could not be put back; they are kept in {self._folder}", failed[0])
        self.finish()

    def _undo(self, move: _Move) -> None:
        new, old = self._folder / f"new-{move.number}", self._folder / f"old-{move.number}"
        if move.existed and old.exists():
            with open_parent(self._root, move.path, made=[]) as at:
                os.rename(old, at.name, dst_dir_fd=at.folder)
        elif not move.existed and move.stays and new.exists():
            # A file that cannot be found was not created by this transaction.
            with suppress(OSError, WorkspaceError), open_parent(self._root, move.path) as at:
                self._remove_if_ours(at, new)

    def _remove_if_ours(self, at: OpenParent, new: Path) -> None:
        there = os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)
        if os.path.samestat(there, new.stat()):
            os.unlink(at.name, dir_fd=at.folder)

    def finish(self) -> None:
        """End the transaction and keep its changes."""
        with suppress(FileNotFoundError):
            (self._folder / _PLAN).unlink()
        remove_tree(str(self._folder))

    def _planned(self) -> tuple[list[_Move], list[str]]:
        try:
            plan = json.loads(read_regular(self._folder / _PLAN, MAX_FILE_BYTES))
        except FileNotFoundError:
            return [], []
        return [_Move(*each) for each in plan["moves"]], list(plan["missing"])


def preimage_error(path: str) -> WorkspaceError:
    """Return the error for a file that differs from the preimage of its change."""
    return WorkspaceError(
        f"{shown(path)} changed since the diff was made",
        advice="review the diff again, against the current file",
    )
