"""Tells what stands in a folder of files, byte for byte, at the cost of what changed since it was last asked."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent_workbench.adapters.git.commands.objects import EXECUTABLE, GITLINK, LINK, REGULAR, Entry, GitObjects
from agent_workbench.adapters.git.file_access.folder_scan import FolderScan, FolderScanner, Rights
from agent_workbench.adapters.git.file_access.folders import MAX_FILE_BYTES, link_target, look, open_at, reach
from agent_workbench.adapters.git.file_access.ignore_rules import IgnoreRules
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.atomic_files import storage_error

# A file that changed this recently may change again without its times telling (they are coarse on some disks).
_SETTLED_NANOSECONDS = 2_000_000_000
_CHUNK = 1 << 20
_RULES = ".gitignore"
_MOST_RULE_BYTES = 1_000_000
# Past it the size is compared before the content.
_LARGE_BYTES = 1_000_000
# What is kept of files that nobody approved, all together: a command may leave any number of any size.
_MOST_NEW_BYTES = 1_000_000_000

_Stamp = tuple[int, int, int, int, int]


class Content:
    """The files in one folder: those that are tracked, and those that the approved rules do not ignore.

    `tree` is the approved tree: its `.gitignore` files are the rules, whatever stands in the folder and whatever the
    user's git ignores elsewhere. `links` are names that are not looked at. What was read once is read again only when
    its status changed.
    """

    def __init__(self, trees: GitObjects, root: str, tree: str, links: Iterable[str] = ()) -> None:
        self.root = root
        self.tracked: dict[str, Entry] = {}
        self._trees = trees
        self._links = frozenset(links)
        self._seen: dict[str, tuple[_Stamp, Entry]] = {}
        self._approved = ""
        self._rule_files: dict[str, Entry] = {}
        self._rules = IgnoreRules({})
        self.approve(tree)

    def track(self, entries: Mapping[str, Entry]) -> None:
        """Count these paths as tracked from now on, whatever the rules ignore."""
        self.tracked.update(entries)

    def approve(self, tree: str) -> None:
        """Take the ignore rules of this tree from now on."""
        if tree == self._approved:
            return
        entries = self._trees.entries(tree).items()
        files = {path: each for path, each in entries if path.endswith(_RULES) and _is_rule_file(path, each)}
        if files != self._rule_files:
            contents = self._trees.files(files.values(), _MOST_RULE_BYTES)
            self._rules = IgnoreRules({path: contents[each].data for path, each in files.items() if each in contents})
        self._approved, self._rule_files = tree, files

    def survey(self, besides: Mapping[str, Entry] | None = None, rights: Rights = Rights.LOOK) -> FolderScan:
        """Return what stands in the folder; `besides` are paths that count as tracked too. Raises `StorageError`."""
        tracked = {**self.tracked, **(besides or {})}
        modules = {path for path, entry in tracked.items() if entry.mode == GITLINK}
        return FolderScanner(self.root, self._rules, tracked, modules, self._links).look(rights)

    def entries(self, besides: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
        """Return what stands at every path that is tracked (or in `besides`), or not ignored; raise `StorageError`.

        A tracked submodule stays as it is, filled or not, unless something else stands in its place. The content of a
        file that is too large to be worked with, or cannot be read, is no object.
        """
        return self.entries_of(self.survey(besides), besides)

    def entries_of(
        self, found: FolderScan, besides: Mapping[str, Entry] | None = None, *, untracked: bool = True
    ) -> dict[str, Entry]:
        """Return `entries` of what was found; without `untracked` what is not tracked is no object and not read."""
        tracked = {**self.tracked, **(besides or {})}
        entries = {
            path: entry
            for path, entry in tracked.items()
            if entry.mode == GITLINK and path not in found.files and self._is_folder_or_nothing(path)
        }
        sizes = self._sizes(found, tracked)
        left = _MOST_NEW_BYTES
        for path in sorted(found.files):
            status = found.files[path]
            if path not in tracked:
                left -= status.st_size
            known = path in tracked and sizes.get(path, status.st_size) == status.st_size
            new = untracked and left >= 0 and status.st_size <= MAX_FILE_BYTES
            entries[path] = self._entry(path, status) if known or new else Entry(REGULAR, self._trees.no_object)
        return entries

    def _sizes(self, found: FolderScan, tracked: Mapping[str, Entry]) -> dict[str, int]:
        """Return what large files had when they were tracked: one that grew to terabytes need not be read."""
        large = {
            path: tracked[path].oid
            for path, status in found.files.items()
            if status.st_size > _LARGE_BYTES and path in tracked and not self._is_seen(path, status)
        }
        sizes = self._trees.sizes(set(large.values()))
        return {path: sizes[oid] for path, oid in large.items()}

    def names(self) -> list[str]:
        """Return the paths of `entries` but for submodules, sorted, without reading a file."""
        return sorted(self.survey(rights=Rights.AS_FOUND).files)

    def _is_folder_or_nothing(self, path: str) -> bool:
        status = look(self.root, path)
        return status is None or stat.S_ISDIR(status.st_mode)

    def _is_seen(self, path: str, status: os.stat_result) -> bool:
        before = self._seen.get(path)
        return before is not None and before[0] == _stamp(status)

    def _entry(self, path: str, status: os.stat_result) -> Entry:
        if stat.S_ISLNK(status.st_mode):
            return Entry(LINK, self._trees.hash(link_target(self.root, path)))
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
            with reach(self.root, path) as at, os.fdopen(open_at(at), "rb") as stream:
                status = os.fstat(stream.fileno())
                digest = hashlib.new(self._trees.algorithm, b"blob %d\0" % status.st_size, usedforsecurity=False)
                left = status.st_size
                while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
                    digest.update(chunk)
                    left -= len(chunk)
                left -= len(stream.read(1))
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

    def is_file_up_to(self, path: str, max_bytes: int) -> bool:
        """Return True for a regular file of at most so many bytes."""
        status = look(self.root, path)
        return status is not None and stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes

    def copy(self, path: str, entry: Entry, target: Path) -> None:
        """Write what git would store for `path` to `target`: a file's bytes, or where a link leads."""
        try:
            if entry.mode == LINK:
                target.write_bytes(link_target(self.root, path))
                return
            with reach(self.root, path) as at, os.fdopen(open_at(at), "rb") as source, target.open("wb") as copy:
                left = os.fstat(source.fileno()).st_size
                while left > 0 and (chunk := source.read(min(_CHUNK, left))):
                    copy.write(chunk)
                    left -= len(chunk)
        except PermissionError as error:
            raise WorkspaceError(f"{shown(path)} cannot be read", advice="give yourself the right to") from error
        except OSError as error:
            raise storage_error(f"{shown(path)} cannot be copied to {target}", error) from error


def _is_rule_file(path: str, entry: Entry) -> bool:
    # Git reads none through a link.
    return entry.is_regular and path.rpartition("/")[2] == _RULES


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
