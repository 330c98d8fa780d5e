"""Switch of the user's index and files from one commit to another: made whole, or undone where it wrote."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_workbench.adapters.git.discovery import RepoPaths
from agent_workbench.adapters.git.folders import (
    open_parent,
    parents_of,
    read_files,
    remove_empty,
    status_below,
)
from agent_workbench.adapters.git.objects import MAX_FILE_BYTES, GitObjects, TreeDifference, TreeEntry
from agent_workbench.adapters.git.plumbing import GitResult, Plumbing, failure
from agent_workbench.adapters.git.working_trees.file_entries import FileEntries
from agent_workbench.core.errors import StorageError, WorkbenchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.command_bounds import check_record

# Without a refresh, git refuses a file whose times alone differ, also one that it is told to overlook.
_REFRESH = ("update-index", "-q", "--really-refresh")
_SWITCH = ("read-tree", "-m", "-u", "--no-recurse-submodules")
_MOST_NAMED = 20


class FileSwitch:
    """Switches of one checkout. Blocking. A file that the switch did not write is never changed or removed."""

    def __init__(self, paths: RepoPaths, plumbing: Plumbing, objects: GitObjects) -> None:
        self._paths, self._plumbing, self._objects = paths, plumbing, objects
        self._root = paths.root
        self._entries = FileEntries(paths.root, plumbing, objects)

    def refusal(self, before: str, after: str) -> str:
        """Return git's reason to refuse the switch, empty if there is none. Nothing is changed."""
        with _scratch_index() as index:
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self._paths.git_dir}/index", index)
            self._plumbing.attempt(*_REFRESH, work_tree=self._root, index=index)
            result = self._plumbing.attempt(*_SWITCH, "--dry-run", before, after, work_tree=self._root, index=index)
        return _reason(result) if result.status else ""

    def refresh(self) -> None:
        """Update the times of unchanged files in the user's index."""
        self._plumbing.attempt(*_REFRESH, work_tree=self._root)

    def run(self, before: str, after: str, changed: Sequence[TreeDifference]) -> None:
        """Switch index and files from `before` to `after`, or leave both as they were; `changed` are all differences.

        Raises `WorkspaceError` or `StorageError`, and names files that could not be restored; `TrustError` in a command
        of the agent.
        """
        for own in (self._root, self._paths.common_dir):
            check_record(own)  # before anything that would have to be restored
        # Outside of a sparse checkout a tracked path has no file, and must not get one.
        restorable = [each for each in changed if each.before is None or self._is_there(each.path)]
        folders = {folder for each in changed for folder in parents_of(each.path)}
        new_folders = [folder for folder in folders if not Path(self._root, folder).is_dir()]
        try:
            result = self._plumbing.attempt(*_SWITCH, before, after, work_tree=self._root)
            if result.status:
                raise failure("read-tree", result)
        except WorkbenchError as error:
            self._restore(before, restorable, new_folders, error)
            raise

    def _restore(
        self, before: str, changed: Sequence[TreeDifference], new_folders: Iterable[str], cause: WorkbenchError
    ) -> None:
        """Restore the files that the failed switch wrote or removed; other content is the user's and stays."""
        written = self._written(changed)
        for path in written:
            with suppress(OSError, WorkbenchError), open_parent(self._root, path) as at:
                os.unlink(at.name, dir_fd=at.folder)
        remove_empty(self._root, new_folders)
        gone = {each.path: each.before for each in changed if each.before and not self._is_there(each.path)}
        with _scratch_index() as index:
            # The user's index may tell git to overlook some of the files.
            result = self._plumbing.attempt("read-tree", before, index=index)
            if not result.status:
                names = b"".join(os.fsencode(path) + b"\0" for path in gone)
                words = ("checkout-index", "-q", "-z", "--stdin")
                result = self._plumbing.attempt(*words, stdin=names, work_tree=self._root, index=index)
        missing = self._differing(gone) if result.status else []
        left = self._written([each for each in changed if each.before is None])
        if missing or left:
            raise _not_restored(missing, left, _reason(result) or str(cause)) from cause

    def _written(self, changed: Sequence[TreeDifference]) -> list[str]:
        """Return the paths whose file is what the switch writes, in whole or up to where git stopped."""
        there = self._entries.read(each.path for each in changed if each.after is not None)
        found = []
        for each in changed:
            entry, before, after = there.get(each.path), each.before, each.after
            if entry is None or after is None:
                continue
            if entry.oid == after.oid:
                is_written = before is None or before.oid != after.oid or entry.mode == after.mode
            else:
                is_written = (before is None or entry.oid != before.oid) and self._is_part(each.path, after)
            if is_written:
                found.append(each.path)
        return found

    def _differing(self, entries: Mapping[str, TreeEntry]) -> list[str]:
        """Return the paths whose file is missing or differs from its entry."""
        there = self._entries.read(entries)
        return [path for path, entry in entries.items() if path not in there or there[path].oid != entry.oid]

    def _is_part(self, path: str, entry: TreeEntry) -> bool:
        """Return True if a file holds the beginning of the entry's content, with either kind of line ending."""
        data = read_files(self._root, [path]).get(path)
        if data is None or not entry.is_regular or self._objects.sizes([entry.oid])[entry.oid] > MAX_FILE_BYTES:
            return False
        whole = self._objects.contents([entry.oid])[entry.oid]
        return whole.startswith((data, data.replace(b"\r\n", b"\n").removesuffix(b"\r")))

    def _is_there(self, path: str) -> bool:
        return status_below(self._root, path) is not None


@contextmanager
def _scratch_index() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"{folder}/index"


def _reason(result: GitResult) -> str:
    return shown(result.err.strip().removeprefix("fatal: ").removeprefix("error: "), 500)


def _not_restored(missing: Sequence[str], left: Sequence[str], reason: str) -> StorageError:
    """Return the error that names the files, with commands for these alone."""
    advice = ["free disk space"]
    if missing:
        advice.append(f"`git --literal-pathspecs restore -- {_quoted(missing)}`{_others(missing)}")
    if left:
        advice.append(f"`rm -- {_quoted(left)}`{_others(left)}")
    count = f"{len(missing)} of your files could not be restored" if missing else "files of it could not be removed"
    return StorageError(f"the merge failed, and {count}: {reason}", advice=", then ".join(advice))


def _quoted(paths: Sequence[str]) -> str:
    return " ".join(shlex.quote(path) for path in paths[:_MOST_NAMED])


def _others(paths: Sequence[str]) -> str:
    rest = len(paths) - _MOST_NAMED
    return f" and the same for {rest} others that `git status` names" if rest > 0 else ""
