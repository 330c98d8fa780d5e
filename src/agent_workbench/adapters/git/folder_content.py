"""Scan of a worktree without git, and its content as tree entries. Only files that changed are read again."""

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from enum import IntFlag
from pathlib import Path

from msgspec import Struct, field

from agent_workbench.adapters.git.folders import link_target, open_at, open_parent, parents_of, status_below
from agent_workbench.adapters.git.ignore_rules import IgnoreRules
from agent_workbench.adapters.git.objects import (
    EXECUTABLE,
    GITLINK,
    LINK,
    MAX_FILE_BYTES,
    REGULAR,
    GitObjects,
    TreeEntry,
)
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import is_git_folder, shown
from agent_workbench.system.atomic_files import storage_error

# Deeper folders and longer paths are no source; git itself and most programs fail on them.
_MOST_FOLDERS = 200
_MOST_PATH_BYTES = 2_000
_BYTECODE = (".pyc", ".pyo")
_BYTECODE_FOLDER = "__pycache__"
_FOLDER_MODE, _FILE_MODE, _EXECUTABLE = 0o755, 0o644, 0o111
_USABLE = stat.S_IRUSR | stat.S_IWUSR

# A file changed more recently may change again within the same timestamp, which is coarse on some disks.
_SETTLED_NANOSECONDS = 2_000_000_000
_CHUNK = 1 << 20
_RULES = ".gitignore"
_MOST_RULE_BYTES = 1_000_000
# For larger files the size is compared before the content.
_LARGE_BYTES = 1_000_000
# Limit for all unapproved files together: a command may leave any number of any size.
_MOST_NEW_BYTES = 1_000_000_000

_Stamp = tuple[int, int, int, int, int]


class Rights(IntFlag):
    """Permissions that a scan restores for the owner: of folders, with `CHANGE` also of tracked files.

    With `AS_FOUND` a folder that cannot be read counts as empty.
    """

    AS_FOUND = 0
    LOOK = stat.S_IRUSR | stat.S_IXUSR
    CHANGE = stat.S_IRWXU


class FolderScan(Struct):
    """Content of a worktree. Paths are relative; the status of a link is its own.

    `files` are tracked or not ignored files and links. `folders` contain no tracked file and are not ignored. `debris`
    cannot be stored in a tree: pipes, sockets, `.git` of a nested repository, folders too deep. `bytecode` are files
    that Python would run instead of a source file.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    debris: list[str] = field(default_factory=list)
    bytecode: list[str] = field(default_factory=list)


class FolderScanner:
    """Scanner of a worktree that opens no file and follows no link.

    `tracked` paths count even if ignored; `modules` (submodules) and `links` are skipped.
    """

    def __init__(
        self, root: str, rules: IgnoreRules, tracked: Collection[str], modules: Collection[str], links: Collection[str]
    ) -> None:
        self._root, self._rules, self._tracked, self._modules, self._links = root, rules, tracked, modules, links
        self._tracked_folders = _folders_of(tracked)
        self._found = FolderScan()

    def scan(self, rights: Rights = Rights.LOOK) -> FolderScan:
        """Return the content after restoring permissions that a command may have removed; raise `StorageError`."""
        waiting = [("", 0, False)]
        while waiting:
            folder, depth, ignored = waiting.pop()
            for path, entry in self._entries(folder, rights):
                try:
                    status = entry.stat(follow_symlinks=False)
                    if rights is Rights.CHANGE and stat.S_ISREG(status.st_mode) and status.st_mode & _USABLE != _USABLE:
                        status = self._made_usable(path, status)
                except FileNotFoundError:
                    continue
                if inside := self._take(path, status, depth, ignored=ignored):
                    waiting.append(inside)
        return self._found

    def _entries(self, folder: str, rights: Rights) -> Iterable[tuple[str, "os.DirEntry[str]"]]:
        absolute = f"{self._root}/{folder}" if folder else self._root
        try:
            mode = os.lstat(absolute).st_mode
            if not stat.S_ISDIR(mode):  # a command replaced the workspace itself
                return ()
            if ~mode & rights:
                os.chmod(absolute, _FOLDER_MODE)  # noqa: PTH101 - as the rest of the walk
            with os.scandir(absolute) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            if rights is Rights.AS_FOUND:
                return ()
            raise storage_error(f"{shown(folder) or self._root} cannot be read", error) from error
        before = f"{folder}/" if folder else ""
        return [(before + entry.name, entry) for entry in entries if before or entry.name != ".git"]

    def _made_usable(self, path: str, status: os.stat_result) -> os.stat_result:
        absolute = f"{self._root}/{path}"
        if path in self._tracked:
            with suppress(PermissionError):
                os.chmod(absolute, _FILE_MODE | (status.st_mode & _EXECUTABLE))  # noqa: PTH101 - as the rest of the walk
        return os.lstat(absolute)

    def _take(self, path: str, status: os.stat_result, depth: int, *, ignored: bool) -> tuple[str, int, bool] | None:
        """Record one entry; return it as a folder to scan next, if it is one."""
        found = self._found
        is_folder = stat.S_ISDIR(status.st_mode)
        name = path.rpartition("/")[2]
        if path in self._links or (is_folder and path in self._modules):
            return None
        if path in self._tracked_folders if is_folder else path in self._tracked:
            if is_folder:
                return path, depth + 1, ignored or self._rules.ignores(path, is_folder=True)
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                found.files[path] = status
            else:
                found.debris.append(path)
            return None
        if name == _BYTECODE_FOLDER or (name.endswith(_BYTECODE) and not is_folder):
            found.bytecode.append(path)
        elif ignored or self._rules.ignores(path, is_folder=is_folder):
            return None
        elif _fits_no_tree(path, name, depth):
            found.debris.append(path)
        elif is_folder:
            found.folders.append(path)
            return path, depth + 1, False
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            found.files[path] = status
        else:
            found.debris.append(path)
        return None


def _fits_no_tree(path: str, name: str, depth: int) -> bool:
    return depth >= _MOST_FOLDERS or is_git_folder(name) or len(os.fsencode(path)) > _MOST_PATH_BYTES


def _folders_of(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for folder in {path.rpartition("/")[0] for path in paths} - {""}:
        found.update(parents_of(f"{folder}/"))
    return found


class FolderContent:
    """Tracked files of a folder, and untracked ones that the approved ignore rules do not cover.

    The rules are the `.gitignore` files of `tree`, the approved tree. Those in the folder and in the user's git
    settings do not count. `links` are names to skip. A file is read again only if its status changed.
    """

    def __init__(self, objects: GitObjects, root: str, tree: str, links: Iterable[str] = ()) -> None:
        self.root = root
        self.tracked: dict[str, TreeEntry] = {}
        self._objects = objects
        self._links = frozenset(link.removesuffix("/") for link in links)
        self._seen: dict[str, tuple[_Stamp, TreeEntry]] = {}
        self._approved = ""
        self._rule_files: dict[str, TreeEntry] = {}
        self._rules = IgnoreRules({})
        self.approve(tree)

    @property
    def approved(self) -> str:
        """The approved tree."""
        return self._approved

    def track(self, entries: Mapping[str, TreeEntry]) -> None:
        """Count these paths as tracked from now on, even if ignored."""
        self.tracked.update(entries)

    def approve(self, tree: str) -> None:
        """Use the ignore rules of this tree from now on."""
        if tree == self._approved:
            return
        entries = self._objects.entries(tree).items()
        files = {path: each for path, each in entries if path.endswith(_RULES) and _is_rule_file(path, each)}
        if files != self._rule_files:
            contents = self._objects.files(files.values(), _MOST_RULE_BYTES)
            self._rules = IgnoreRules({path: contents[each].data for path, each in files.items() if each in contents})
        self._approved, self._rule_files = tree, files

    def scan(self, besides: Mapping[str, TreeEntry] | None = None, rights: Rights = Rights.LOOK) -> FolderScan:
        """Return a scan of the folder; `besides` are more tracked paths. Raises `StorageError`."""
        tracked = {**self.tracked, **(besides or {})}
        modules = {path for path, entry in tracked.items() if entry.mode == GITLINK}
        return FolderScanner(self.root, self._rules, tracked, modules, self._links).scan(rights)

    def entries(self, besides: Mapping[str, TreeEntry] | None = None) -> dict[str, TreeEntry]:
        """Return the entries of all paths that are tracked (or in `besides`) or not ignored; raise `StorageError`.

        A tracked submodule keeps its entry unless something else replaced it. A file that is too large or unreadable
        has the object id `no_object`.
        """
        return self.entries_of(self.scan(besides), besides)

    def entries_of(
        self, found: FolderScan, besides: Mapping[str, TreeEntry] | None = None, *, untracked: bool = True
    ) -> dict[str, TreeEntry]:
        """Return the entries of a scan; without `untracked`, untracked files are not read and get `no_object`."""
        tracked = {**self.tracked, **(besides or {})}
        entries = {
            path: entry
            for path, entry in tracked.items()
            if entry.mode == GITLINK and path not in found.files and self._stands(path)
        }
        sizes = self._sizes(found, tracked)
        left = _MOST_NEW_BYTES
        for path in sorted(found.files):
            status = found.files[path]
            if path not in tracked:
                left -= status.st_size
            known = path in tracked and sizes.get(path, status.st_size) == status.st_size
            new = untracked and left >= 0 and status.st_size <= MAX_FILE_BYTES
            entries[path] = self._entry(path, status) if known or new else TreeEntry(REGULAR, self._objects.no_object)
        return entries

    def _sizes(self, found: FolderScan, tracked: Mapping[str, TreeEntry]) -> dict[str, int]:
        """Return the tracked sizes of large files: a file that grew to terabytes need not be read."""
        large = {
            path: tracked[path].oid
            for path, status in found.files.items()
            if status.st_size > _LARGE_BYTES and path in tracked and not self._is_seen(path, status)
        }
        sizes = self._objects.sizes(set(large.values()))
        return {path: sizes[oid] for path, oid in large.items()}

    def names(self) -> list[str]:
        """Return the paths of `entries` except submodules, sorted, without reading a file."""
        return sorted(self.scan(rights=Rights.AS_FOUND).files)

    def _stands(self, path: str) -> bool:
        """Return True if nothing replaced a submodule: it is linked, a folder, or not there."""
        if self.is_linked(path):
            return True
        status = status_below(self.root, path)
        return status is None or stat.S_ISDIR(status.st_mode)

    def _is_seen(self, path: str, status: os.stat_result) -> bool:
        before = self._seen.get(path)
        return before is not None and before[0] == _stamp(status)

    def _entry(self, path: str, status: os.stat_result) -> TreeEntry:
        if stat.S_ISLNK(status.st_mode):
            return TreeEntry(LINK, self._objects.hash(link_target(self.root, path)))
        stamp = _stamp(status)
        before = self._seen.get(path)
        if before is not None and before[0] == stamp:
            return before[1]
        entry = self._hashed(path)
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NANOSECONDS:
            self._seen[path] = (stamp, entry)
        return entry

    def _hashed(self, path: str) -> TreeEntry:
        try:
            with open_parent(self.root, path) as at, os.fdopen(open_at(at), "rb") as stream:
                status = os.fstat(stream.fileno())
                digest = hashlib.new(self._objects.algorithm, b"blob %d\0" % status.st_size, usedforsecurity=False)
                left = status.st_size
                while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
                    digest.update(chunk)
                    left -= len(chunk)
                left -= len(stream.read(1))
        except PermissionError:
            # A command removed the read permission, so the file counts as changed.
            return TreeEntry(REGULAR, self._objects.no_object)
        except OSError as error:
            raise storage_error(f"{shown(path)} cannot be read", error) from error
        if left:
            raise WorkspaceError(
                f"{shown(path)} changes while it is read", advice="check that no command still runs in the workspace"
            )
        return TreeEntry(EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR, digest.hexdigest())

    def is_linked(self, path: str) -> bool:
        """Return True if `path` is one of the links, or below one."""
        return any(path == link or path.startswith(f"{link}/") for link in self._links)

    def is_file_up_to(self, path: str, max_bytes: int) -> bool:
        """Return True for a regular file of at most `max_bytes`."""
        status = status_below(self.root, path)
        return status is not None and stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes

    def copy(self, path: str, entry: TreeEntry, target: Path) -> None:
        """Write the blob content of `path` to `target`: the bytes of a file, or the target of a link."""
        try:
            if entry.mode == LINK:
                target.write_bytes(link_target(self.root, path))
                return
            with open_parent(self.root, path) as at, os.fdopen(open_at(at), "rb") as source, target.open("wb") as copy:
                left = os.fstat(source.fileno()).st_size
                while left > 0 and (chunk := source.read(min(_CHUNK, left))):
                    copy.write(chunk)
                    left -= len(chunk)
        except PermissionError as error:
            raise WorkspaceError(f"{shown(path)} cannot be read", advice="give yourself read permission") from error
        except OSError as error:
            raise storage_error(f"{shown(path)} cannot be copied to {target}", error) from error


def _is_rule_file(path: str, entry: TreeEntry) -> bool:
    # Git ignores a `.gitignore` that is a link.
    return entry.is_regular and path.rpartition("/")[2] == _RULES


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
