"""The files of a task's worktree: listed, read, changed whole or not at all, compared with trees and put back."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from agent_workbench.adapters.git.commands.objects import EXECUTABLE, GITLINK, REGULAR, Difference, Entry, GitObjects
from agent_workbench.adapters.git.file_access.content import Content
from agent_workbench.adapters.git.file_access.folder_scan import Rights
from agent_workbench.adapters.git.file_access.folders import MAX_FILE_BYTES, check_inside, parents_of, read_file
from agent_workbench.adapters.git.file_access.tree_writer import TreeWriter
from agent_workbench.adapters.git.file_access.write_transaction import WriteTransaction
from agent_workbench.adapters.git.worktree.paths import Site
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.workspace import Reset


class WorktreeFiles:
    """Blocking; one caller at a time. Methods are described at `core.workspace_ports.Workspace`."""

    def __init__(self, trees: GitObjects, content: Content, deposit: TreeWriter, site: Site) -> None:
        self._trees, self._content, self._deposit, self._site = trees, content, deposit, site
        self._root = content.root

    def names(self) -> tuple[str, ...]:
        """Return all files and links, sorted; submodules are left out."""
        return tuple(self._content.names())

    def read(self, path: str) -> FileContent | None:
        """Return a regular file's content."""
        return read_file(self._root, path)

    def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        """Make all the changes or none, and return `parent_tree` with them."""
        for change in changes:
            self._check_no_submodule(change.path)
        writing = WriteTransaction(self._root, self._site.pending)
        writing.roll_back()
        staged = writing.stage(changes)
        try:
            oids = iter(self._trees.write_blobs([each for each in staged if each is not None]))
            updates = {
                change.path: None
                if change.after is None
                else Entry(EXECUTABLE if change.after.executable else REGULAR, next(oids))
                for change in changes
            }
            tree = self._trees.build(parent_tree, updates, self._site.scratch)
        except BaseException:
            writing.finish()
            raise
        writing.apply()
        writing.finish()
        self._content.track({path: entry for path, entry in updates.items() if entry is not None})
        self._content.approve(tree)
        return tree

    def _check_no_submodule(self, path: str) -> None:
        for place in (*parents_of(path), path):
            entry = self._content.tracked.get(place)
            if entry is not None and entry.mode == GITLINK:
                raise WorkspaceError(f"{shown(path)} is in the submodule {shown(place)}, which is left alone")

    def strays(self, tree: str) -> tuple[FileChange, ...]:
        """Return how the files differ from `tree`. A link, submodule or file too large shows as nothing."""
        self._content.approve(tree)
        approved = self._trees.entries(tree)
        there = self._content.entries_of(self._content.survey(approved), approved, untracked=False)
        found = [
            Difference(path, approved.get(path), there.get(path))
            for path in sorted(approved.keys() | there.keys())
            if approved.get(path) != there.get(path) and not self._content.is_linked(path)
        ]
        before = self._trees.files(each.before for each in found)
        after = self._read_all(found)
        return tuple(_change(each, before, after.get(each.path)) for each in found)

    def _read_all(self, differences: Iterable[Difference]) -> dict[str, FileContent]:
        found, left = {}, MAX_FILE_BYTES
        for each in differences:
            if each.after is None or not self._content.is_file_up_to(each.path, left):
                continue
            # What cannot be read cannot be approved either.
            with suppress(WorkspaceError):
                content = read_file(self._root, each.path)
                if content is not None:
                    found[each.path] = content
                    left -= len(content.data)
        return found

    def reset(self, tree: str) -> Reset:
        """Make the files exactly those of `tree` and what its rules ignore, without bytecode."""
        self._content.approve(tree)
        approved = self._trees.entries(tree)
        found = self._content.survey(approved, Rights.CHANGE)
        there = self._content.entries_of(found, approved, untracked=False)
        target = {path: entry for path, entry in approved.items() if not self._content.is_linked(path)}
        return self._deposit.replace(found, there, target)

    def changes(self, base: str, tree: str) -> tuple[FileChange, ...]:
        """Return how `tree` differs from the tree `base`."""
        return changes_between(self._trees, base, tree)

    def put_back(self, tree: str, paths: Collection[str]) -> None:
        """Make these paths what they are in `tree`."""
        self._content.approve(tree)
        for path in paths:
            check_inside(path)
            if self._content.is_linked(path):
                raise WorkspaceError(f"{shown(path)} is a link of the workspace and stays as it is")
        approved = self._trees.entries(tree)
        self._deposit.remove(path for path in paths if path not in approved)
        self._deposit.put({path: approved[path] for path in paths if path in approved})


def changes_between(trees: GitObjects, before: str, after: str) -> tuple[FileChange, ...]:
    """Return how one tree differs from the one before it."""
    found = trees.differences(before, after)
    contents = trees.files(entry for each in found for entry in (each.before, each.after))
    return tuple(_change(each, contents, contents.get(each.after) if each.after else None) for each in found)


def _change(each: Difference, before: Mapping[Entry, FileContent], after: FileContent | None) -> FileChange:
    return FileChange(each.path, before.get(each.before) if each.before else None, after)
