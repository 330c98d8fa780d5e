"""Scan of a worktree: every file that the ignore rules do not cover, and anything else that a command may have left."""

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from enum import IntFlag

from msgspec import Struct, field

from agent_workbench.adapters.git.folders import parents_of
from agent_workbench.adapters.git.ignore_rules import IgnoreRules
from agent_workbench.core.patch.paths import is_git_folder, shown
from agent_workbench.system.atomic_files import storage_error

# Deeper folders and longer paths are no source; git itself and most programs fail on them.
_MOST_FOLDERS = 200
_MOST_PATH_BYTES = 2_000
_BYTECODE = (".pyc", ".pyo")
_BYTECODE_FOLDER = "__pycache__"
_FOLDER_MODE, _FILE_MODE, _EXECUTABLE = 0o755, 0o644, 0o111
_USABLE = stat.S_IRUSR | stat.S_IWUSR


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
