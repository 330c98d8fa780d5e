"""Puts the content of trees on the disk and takes it away again, without filters and never through a link."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from agent_workbench.adapters.git.commands.objects import EXECUTABLE, GITLINK, LINK, Entry, GitObjects
from agent_workbench.adapters.git.file_access.folder_scan import FolderScan
from agent_workbench.adapters.git.file_access.folders import (
    Reach,
    look,
    parents_of,
    prune_folders,
    reach,
    remove_empty,
    remove_tree,
    status_of,
)
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.workspace import Reset
from agent_workbench.system.atomic_files import storage_error


class TreeWriter:
    """A folder of files, and a private one on the same disk in which a file is made before it is moved into place."""

    def __init__(self, trees: GitObjects, root: str, scratch: Path) -> None:
        self._trees = trees
        self._root = root
        self._scratch = scratch

    def replace(self, found: FolderScan, there: Mapping[str, Entry], target: Mapping[str, Entry]) -> Reset:
        """Make what a survey found exactly `target` and what is ignored; `there` are the entries of what was found.

        Raises `StorageError`; it can be called again then, with another survey.
        """
        wrong = {path: entry for path, entry in target.items() if there.get(path) != entry}
        surplus = sorted(found.files.keys() - target.keys())
        for path in (*found.debris, *found.bytecode):
            remove_tree(f"{self._root}/{path}")
        self.remove(surplus)
        remove_empty(self._root, found.folders)
        self.put(wrong, by_force=True)
        removed = (*surplus, *found.debris, *(f"{folder}/" for folder in found.folders))
        gone = [path for path in removed if look(self._root, path) is None]
        return Reset(tuple(sorted(wrong)), self._outermost(gone))

    def _outermost(self, removed: Sequence[str]) -> tuple[str, ...]:
        """Return the folders that are gone whole, each with a slash, and of the rest each path."""
        named: dict[str, str] = {}
        for folder in {path.rpartition("/")[0] for path in removed}:
            way = (*parents_of(folder), folder) if folder else ()
            named[folder] = next((f"{each}/" for each in way if look(self._root, each) is None), "")
        return tuple(sorted({named[path.rpartition("/")[0]] or path for path in removed}))

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files and links, and the folders that are empty then. What is not there is no error."""
        gone = sorted(paths)
        for folder, inside in groupby(gone, key=lambda path: path.rpartition("/")[0]):
            path = folder
            try:
                with reach(self._root, f"{folder}/x" if folder else "x") as at:
                    for path in inside:
                        with suppress(FileNotFoundError):
                            os.unlink(path.rpartition("/")[2], dir_fd=at.folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(f"{shown(path)} cannot be removed", error) from error
        prune_folders(self._root, gone)

    def put(self, entries: Mapping[str, Entry], *, by_force: bool = False) -> None:
        """Make these paths what the entries say. A submodule becomes an empty folder.

        `by_force` removes what is in the way: a file or link where a folder is needed, a folder where a file is.
        Without it that raises `WorkspaceError`. Raises `StorageError` when the disk will not have it; it can be
        called again then.
        """
        ordered = dict(sorted(entries.items()))
        for path in (path for path, entry in ordered.items() if entry.mode == GITLINK):
            self._put_folder(path, by_force)
        for batch in self._trees.batches(ordered):
            for _, group in groupby(batch, key=lambda each: each[0].rpartition("/")[0]):
                self._put_group(list(group), by_force)

    def _put_folder(self, path: str, by_force: bool) -> None:
        inside = f"{path}/x"
        if by_force:
            self._clear_way(inside)
        with reach(self._root, inside, made=[]):
            return

    def _put_group(self, group: list[tuple[str, Entry, bytes]], by_force: bool) -> None:
        first = group[0][0]
        if by_force:
            self._clear_way(first)
        try:
            with reach(self._root, first, made=[]) as at:
                for path, entry, data in group:
                    here = Reach(at.folder, path.rpartition("/")[2])
                    self._clear_place(here, path, by_force)
                    self._put_one(here, entry, data)
        except OSError as error:
            raise storage_error(f"{shown(first)} or a file beside it cannot be written", error) from error

    def _put_one(self, at: Reach, entry: Entry, data: bytes) -> None:
        made = self._scratch / "file"
        made.unlink(missing_ok=True)
        if entry.mode == LINK:
            os.symlink(data, os.fsencode(made))  # noqa: PTH211 - pathlib would tidy the target
        else:
            # The umask decides about the group and others, as it does for git.
            mode = 0o777 if entry.mode == EXECUTABLE else 0o666
            file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
        os.rename(made, at.name, dst_dir_fd=at.folder)

    def _clear_way(self, path: str) -> None:
        for folder in parents_of(path):
            status = look(self._root, folder)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                Path(self._root, folder).unlink()
                return

    def _clear_place(self, at: Reach, path: str, by_force: bool) -> None:
        status = status_of(at)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return
        if by_force:
            remove_tree(f"{self._root}/{path}")
            return
        try:
            os.rmdir(at.name, dir_fd=at.folder)
        except OSError:
            raise WorkspaceError(f"{shown(path)} is a folder with files in it; a file cannot be put there") from None
