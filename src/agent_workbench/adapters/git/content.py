"""Tells what stands in a folder of files, byte for byte, at the cost of what changed since it was last asked."""

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from agent_workbench.adapters.git.folders import link_target, look, reach
from agent_workbench.adapters.git.trees import EXECUTABLE, GITLINK, LINK, REGULAR, Entry, Trees, paths_in
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.host.atomic import storage_error

# A file that changed this recently may change again without its times telling (they are coarse on some disks).
_SETTLED_NANOSECONDS = 2_000_000_000
_CHUNK = 1 << 20

_Stamp = tuple[int, int, int, int, int]


class Content:
    """The files in one folder: those that are tracked, and those that git neither tracks nor ignores.

    `links` are names that are not looked at. What was read once is read again only when its status changed.
    """

    def __init__(self, trees: Trees, root: str, links: Iterable[str] = ()) -> None:
        self.root = root
        self.tracked: dict[str, Entry] = {}
        self._trees = trees
        self._links = frozenset(links)
        self._seen: dict[str, tuple[_Stamp, Entry]] = {}

    def track(self, entries: Mapping[str, Entry]) -> None:
        """Count these paths as tracked from now on, whatever git would ignore."""
        self.tracked.update(entries)

    def entries(self, besides: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
        """Return what stands at every path that is tracked (or in `besides`), or not ignored; raise `StorageError`.

        A tracked submodule stays as it is, filled or not, unless something else stands in its place.
        """
        tracked = {**self.tracked, **(besides or {})}
        modules = {path: entry for path, entry in tracked.items() if entry.mode == GITLINK}
        found = {path: entry for path, entry in modules.items() if self._is_folder_or_nothing(path)}
        for path in self._names(tracked, found, self._untracked("")):
            entry = self._entry(path)
            if entry is not None:
                found[path] = entry
        return found

    def names(self) -> list[str]:
        """Return the paths of `entries` but for submodules, sorted, without reading a file."""
        modules = {path: entry for path, entry in self.tracked.items() if entry.mode == GITLINK}
        filled = {path: entry for path, entry in modules.items() if self._is_folder_or_nothing(path)}
        listed = set(self._untracked(""))
        return [path for path in self._names(self.tracked, filled, listed) if path in listed or self._is_file(path)]

    def _names(self, tracked: Mapping[str, Entry], modules: Mapping[str, Entry], listed: Collection[str]) -> list[str]:
        names = set(listed)
        folders: dict[str, bool] = {"": True}
        for path in tracked.keys() - names:
            if self._leads_through_folders(path.rpartition("/")[0], folders):
                names.add(path)
        inside = tuple(f"{path}/" for path in modules)
        return sorted(
            path
            for path in names
            if path not in self._links and path not in modules and not (inside and path.startswith(inside))
        )

    def _untracked(self, below: str) -> list[str]:
        """Return what git would list if it tracked nothing: all but what is ignored, repositories inside included."""
        folder = f"{self.root}/{below}" if below else self.root
        # An index that is not there: nothing is tracked, so git compares nothing.
        nowhere = f"{self._trees.plumbing.git_dir}/agent-no-index"
        out = self._trees.plumbing.run(
            *("ls-files", "-z", "--others", "--exclude-standard"), work_tree=folder, index=nowhere
        )
        found = []
        for path in paths_in(out):
            if path.endswith("/"):
                found += self._untracked(below + path)
            else:
                found.append(below + path)
        return found

    def _leads_through_folders(self, folder: str, known: dict[str, bool]) -> bool:
        if folder not in known:
            above = self._leads_through_folders(folder.rpartition("/")[0], known)
            known[folder] = above and self._is_folder(folder)
        return known[folder]

    def _is_folder(self, path: str) -> bool:
        status = look(self.root, path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def _is_file(self, path: str) -> bool:
        status = look(self.root, path)
        return status is not None and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))

    def _is_folder_or_nothing(self, path: str) -> bool:
        status = look(self.root, path)
        return status is None or stat.S_ISDIR(status.st_mode)

    def _entry(self, path: str) -> Entry | None:
        status = look(self.root, path)
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            return Entry(LINK, self._trees.hash(link_target(self.root, path)))
        if not stat.S_ISREG(status.st_mode):
            return None
        stamp = _stamp(status)
        before = self._seen.get(path)
        if before is not None and before[0] == stamp:
            return before[1]
        entry = self._hashed(path)
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NANOSECONDS:
            self._seen[path] = (stamp, entry)
        return entry

    def _hashed(self, path: str) -> Entry:
        try:
            with reach(self.root, path) as at:
                file = os.open(at.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at.folder)
            with os.fdopen(file, "rb") as stream:
                status = os.fstat(file)
                digest = hashlib.new(self._trees.algorithm, b"blob %d\0" % status.st_size, usedforsecurity=False)
                left = status.st_size
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
                    left -= len(chunk)
        except PermissionError:
            # A command took the right to read it away: not what it was, whatever it is.
            return Entry(REGULAR, self._trees.no_object)
        except OSError as error:
            raise storage_error(f"{shown(path)} cannot be read", error) from error
        if left:
            raise WorkspaceError(
                f"{shown(path)} changes while it is read", advice="see that no command still runs in the workspace"
            )
        return Entry(EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR, digest.hexdigest())

    def is_linked(self, path: str) -> bool:
        """Return whether `path` is one of the links, or behind one."""
        return any(path == link or path.startswith(f"{link}/") for link in self._links)

    def size(self, path: str) -> int:
        """Return how many bytes a file has, 0 where there is none."""
        status = look(self.root, path)
        return status.st_size if status else 0

    def copy(self, path: str, entry: Entry, target: Path) -> None:
        """Write what git would store for `path` to `target`: a file's bytes, or where a link leads."""
        try:
            if entry.mode == LINK:
                target.write_bytes(link_target(self.root, path))
                return
            with reach(self.root, path) as at:
                file = os.open(at.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at.folder)
            with os.fdopen(file, "rb") as source, target.open("wb") as copy:
                while chunk := source.read(_CHUNK):
                    copy.write(chunk)
        except PermissionError as error:
            raise WorkspaceError(f"{shown(path)} cannot be read", advice="give yourself the right to") from error
        except OSError as error:
            raise storage_error(f"{shown(path)} cannot be copied to {target}", error) from error


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
