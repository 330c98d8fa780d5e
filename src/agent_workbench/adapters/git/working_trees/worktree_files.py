"""Files of a task's worktree: listed, read, changed in transactions, compared with trees, and restored."""

import posixpath
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from agent_workbench.adapters.git.folder_content import FolderContent
from agent_workbench.adapters.git.folder_scan import Rights
from agent_workbench.adapters.git.folders import check_inside, parents_of, read_file
from agent_workbench.adapters.git.objects import (
    EXECUTABLE,
    GITLINK,
    LINK,
    MAX_FILE_BYTES,
    REGULAR,
    GitObjects,
    TreeDifference,
    TreeEntry,
    changes_between,
    file_change,
)
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.working_trees.paths import WorktreePaths
from agent_workbench.adapters.git.write_transaction import WriteTransaction
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.workspace import Reset


class WorktreeFiles:
    """Files of one worktree; `core.ports.workspace.Workspace` describes the methods. Blocking."""

    def __init__(self, objects: GitObjects, content: FolderContent, writer: TreeWriter, paths: WorktreePaths) -> None:
        self._objects, self._content, self._writer, self._paths = objects, content, writer, paths
        self._root = content.root

    def names(self) -> tuple[str, ...]:
        """Return all files and links, sorted, without submodules."""
        return tuple(self._content.names())

    def read(self, path: str) -> FileContent | None:
        """Return a regular file's content."""
        return read_file(self._root, path)

    def links(self, tree: str) -> dict[str, str]:
        """Return the links of `tree` that lead to a path in it, each with that path."""
        links = {path: entry for path, entry in self._objects.entries(tree).items() if entry.mode == LINK}
        targets = self._objects.contents(entry.oid for entry in links.values())
        found = {}
        for path, entry in links.items():
            target = targets[entry.oid].decode("utf-8", "surrogateescape")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not to.startswith(("/", "..")):
                found[path] = to
        return found

    def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        """Make all the changes or none, and return the tree of `parent_tree` with the changes."""
        for change in changes:
            self._check_no_submodule(change.path)
        writing = WriteTransaction(self._root, self._paths.pending)
        writing.roll_back()
        staged = writing.stage(changes)
        try:
            oids = iter(self._objects.write_blobs([each for each in staged if each is not None]))
            updates = {
                change.path: None
                if change.after is None
                else TreeEntry(EXECUTABLE if change.after.executable else REGULAR, next(oids))
                for change in changes
            }
            tree = self._objects.build(parent_tree, updates, self._paths.scratch)
        except BaseException:
            writing.finish()
            raise
        writing.apply()
        writing.finish()
        self._content.track({path: entry for path, entry in updates.items() if entry is not None})
        self._content.approve(tree)
        return tree

    def _check_no_submodule(self, path: str) -> None:
        for each in (*parents_of(path), path):
            entry = self._content.tracked.get(each)
            if entry is not None and entry.mode == GITLINK:
                raise WorkspaceError(f"{shown(path)} is in the submodule {shown(each)}; submodules are not changed")

    def unapproved_changes(self, tree: str) -> tuple[FileChange, ...]:
        """Return the changes of the files since `tree`. Links, submodules and too large files have no content."""
        self._content.approve(tree)
        approved = self._objects.entries(tree)
        there = self._content.entries_of(self._content.scan(approved), approved, untracked=False)
        found = [
            TreeDifference(path, approved.get(path), there.get(path))
            for path in sorted(approved.keys() | there.keys())
            if approved.get(path) != there.get(path) and not self._content.is_linked(path)
        ]
        before = self._objects.files(each.before for each in found)
        after = self._read_all(found)
        return tuple(file_change(each, before, after.get(each.path)) for each in found)

    def _read_all(self, differences: Iterable[TreeDifference]) -> dict[str, FileContent]:
        found, left = {}, MAX_FILE_BYTES
        for each in differences:
            if each.after is None or not self._content.is_file_up_to(each.path, left):
                continue
            # A file that cannot be read cannot be approved either.
            with suppress(WorkspaceError):
                content = read_file(self._root, each.path)
                if content is not None:
                    found[each.path] = content
                    left -= len(content.data)
        return found

    def reset(self, tree: str) -> Reset:
        """Reset the files to `tree`; files that its rules ignore stay, bytecode goes."""
        self._content.approve(tree)
        approved = self._objects.entries(tree)
        found = self._content.scan(approved, Rights.CHANGE)
        there = self._content.entries_of(found, approved, untracked=False)
        target = {path: entry for path, entry in approved.items() if not self._content.is_linked(path)}
        return self._writer.replace(found, there, target)

    def changes(self, base: str, tree: str) -> tuple[FileChange, ...]:
        """Return the changes from the tree `base` to `tree`."""
        return changes_between(self._objects, base, tree)

    def put_back(self, tree: str, paths: Collection[str]) -> None:
        """Restore these paths to their content in `tree`."""
        self._content.approve(tree)
        for path in paths:
            check_inside(path)
            if self._content.is_linked(path):
                raise WorkspaceError(f"{shown(path)} is a link from workspace.link and cannot be restored")
        approved = self._objects.entries(tree)
        self._writer.remove(path for path in paths if path not in approved)
        self._writer.write({path: approved[path] for path in paths if path in approved})
