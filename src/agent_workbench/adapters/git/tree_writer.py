"""Writer of tree entries to the disk, and remover of files, without filters and never through a link."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from agent_workbench.adapters.git.folder_content import FolderScan
from agent_workbench.adapters.git.folders import (
    OpenParent,
    open_parent,
    parents_of,
    prune_folders,
    remove_empty,
    remove_tree,
    status_at,
    status_below,
)
from agent_workbench.adapters.git.objects import EXECUTABLE, GITLINK, LINK, GitObjects, TreeEntry
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.workspace import Reset
from agent_workbench.system.atomic_files import storage_error


class TreeWriter:
    """Writer below `root`. Each file is created in `scratch`, on the same disk, and then moved into place."""

    def __init__(self, objects: GitObjects, root: str, scratch: Path) -> None:
        self._objects = objects
        self._root = root
        self._scratch = scratch

    def replace(self, found: FolderScan, there: Mapping[str, TreeEntry], target: Mapping[str, TreeEntry]) -> Reset:
        """Make the scanned folder contain exactly `target` and ignored files; `there` are the entries of the scan.

        Raises `StorageError`; it can then be called again with another scan.
        """
        wrong = {path: entry for path, entry in target.items() if there.get(path) != entry}
        surplus = sorted(found.files.keys() - target.keys())
        for path in (*found.debris, *found.bytecode):
            remove_tree(f"{self._root}/{path}")
        self.remove(surplus)
        remove_empty(self._root, found.folders)
        self.write(wrong, by_force=True)
        removed = (*surplus, *found.debris, *(f"{folder}/" for folder in found.folders))
        gone = [path for path in removed if status_below(self._root, path) is None]
        return Reset(tuple(sorted(wrong)), self._outermost(gone))

    def _outermost(self, removed: Sequence[str]) -> tuple[str, ...]:
        """Return the removed paths; paths in a folder that is gone are replaced by that folder with a slash."""
        named: dict[str, str] = {}
        for folder in {path.rpartition("/")[0] for path in removed}:
            way = (*parents_of(folder), folder) if folder else ()
            named[folder] = next((f"{each}/" for each in way if status_below(self._root, each) is None), "")
        return tuple(sorted({named[path.rpartition("/")[0]] or path for path in removed}))

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files and links, and then folders that became empty. A missing path is no error."""
        gone = sorted(paths)
        for folder, inside in groupby(gone, key=lambda path: path.rpartition("/")[0]):
            path = folder
            try:
                with open_parent(self._root, f"{folder}/x" if folder else "x") as at:
                    for path in inside:
                        with suppress(FileNotFoundError):
                            os.unlink(path.rpartition("/")[2], dir_fd=at.folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(f"{shown(path)} cannot be removed", error) from error
        prune_folders(self._root, gone)

    def write(self, entries: Mapping[str, TreeEntry], *, by_force: bool = False) -> None:
        """Write entries to their paths. A submodule becomes an empty folder.

        `by_force` removes obstacles: a file or link where a folder is needed, a folder where a file is needed. Without
        it an obstacle raises `WorkspaceError`. Raises `StorageError` if the disk refuses; it can then be called again.
        """
        ordered = dict(sorted(entries.items()))
        for path in (path for path, entry in ordered.items() if entry.mode == GITLINK):
            self._write_folder(path, by_force)
        for batch in self._objects.batches(ordered):
            for _, group in groupby(batch, key=lambda each: each[0].rpartition("/")[0]):
                self._write_group(list(group), by_force)

    def _write_folder(self, path: str, by_force: bool) -> None:
        inside = f"{path}/x"
        if by_force:
            self._clear_parents(inside)
        with open_parent(self._root, inside, made=[]):
            return

    def _write_group(self, group: list[tuple[str, TreeEntry, bytes]], by_force: bool) -> None:
        first = group[0][0]
        if by_force:
            self._clear_parents(first)
        try:
            with open_parent(self._root, first, made=[]) as at:
                for path, entry, data in group:
                    here = OpenParent(at.folder, path.rpartition("/")[2])
                    self._clear_target(here, path, by_force)
                    self._write_file(here, entry, data)
        except OSError as error:
            raise storage_error(f"{shown(first)} or a file beside it cannot be written", error) from error

    def _write_file(self, at: OpenParent, entry: TreeEntry, data: bytes) -> None:
        made = self._scratch / "file"
        made.unlink(missing_ok=True)
        if entry.mode == LINK:
            os.symlink(data, os.fsencode(made))  # noqa: PTH211 - pathlib would tidy the target
        else:
            # The umask decides the permissions of group and others, as it does for git.
            mode = 0o777 if entry.mode == EXECUTABLE else 0o666
            file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
        os.rename(made, at.name, dst_dir_fd=at.folder)

    def _clear_parents(self, path: str) -> None:
        for folder in parents_of(path):
            status = status_below(self._root, folder)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                Path(self._root, folder).unlink()
                return

    def _clear_target(self, at: OpenParent, path: str, by_force: bool) -> None:
        status = status_at(at)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return
        if by_force:
            remove_tree(f"{self._root}/{path}")
            return
        try:
            os.rmdir(at.name, dir_fd=at.folder)
        except OSError:
            raise WorkspaceError(f"{shown(path)} is a folder with files in it; a file cannot be put there") from None
