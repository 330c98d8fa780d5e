"""Scan of a worktree: every file that its rules do not ignore, and whatever else a command may have left in it."""

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from enum import IntFlag

from msgspec import Struct, field

from agent_workbench.adapters.git.file_access.folders import parents_of
from agent_workbench.adapters.git.file_access.ignore_rules import IgnoreRules
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
    """Rights that a survey gives back to the owner of folders, with `CHANGE` also of tracked files.

    With `AS_FOUND` a folder that cannot be read counts as empty.
    """

    AS_FOUND = 0
    LOOK = stat.S_IRUSR | stat.S_IXUSR
    CHANGE = stat.S_IRWXU


class FolderScan(Struct):
    """Content of a worktree. Paths are relative; of a link the status is its own.

    `files` are files and links that are tracked or not ignored. `folders` hold nothing that is tracked and are not
    ignored. `debris` is what no tree can hold (pipes, sockets, `.git` of a repository inside, folders too deep) and
    `bytecode` what Python would run in place of a source.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    debris: list[str] = field(default_factory=list)
    bytecode: list[str] = field(default_factory=list)


class FolderScanner:
    """Looks through a worktree without opening a file and without following a link.

    `tracked` paths count whatever the rules say; `modules` (submodules) and `links` are left alone.
    """

    def __init__(
        self, root: str, rules: IgnoreRules, tracked: Collection[str], modules: Collection[str], links: Collection[str]
    ) -> None:
        self._root, self._rules, self._tracked, self._modules, self._links = root, rules, tracked, modules, links
        self._tracked_folders = _folders_of(tracked)
        self._found = FolderScan()

    def look(self, rights: Rights = Rights.LOOK) -> FolderScan:
        """Return what is there, with the rights given back that a command may have taken; raise `StorageError`."""
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
        place = f"{self._root}/{folder}" if folder else self._root
        try:
            mode = os.lstat(place).st_mode
            if not stat.S_ISDIR(mode):  # the workspace itself was replaced
                return ()
            if ~mode & rights:
                os.chmod(place, _FOLDER_MODE)  # noqa: PTH101 - as the rest of the walk
            with os.scandir(place) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            if rights is Rights.AS_FOUND:
                return ()
            raise storage_error(f"{shown(folder) or self._root} cannot be looked at", error) from error
        before = f"{folder}/" if folder else ""
        return [(before + entry.name, entry) for entry in entries if before or entry.name != ".git"]

    def _made_usable(self, path: str, status: os.stat_result) -> os.stat_result:
        place = f"{self._root}/{path}"
        if path in self._tracked:
            with suppress(PermissionError):
                os.chmod(place, _FILE_MODE | (status.st_mode & _EXECUTABLE))  # noqa: PTH101 - as the rest of the walk
        return os.lstat(place)

    def _take(self, path: str, status: os.stat_result, depth: int, *, ignored: bool) -> tuple[str, int, bool] | None:
        """Note one thing; return the folder that it is, if that is to be looked into."""
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
