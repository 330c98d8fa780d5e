"""Life of a task's worktree: its paths and record, its creation, reuse, rebuilding and removal."""

import os
import shlex
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from agent_workbench.adapters.git.discovery import RepoPaths
from agent_workbench.adapters.git.folders import linkable_names, make_links, remove_tree
from agent_workbench.adapters.git.objects import GitObjects
from agent_workbench.adapters.git.plumbing import Plumbing, failure
from agent_workbench.adapters.git.refs import BRANCH_PREFIX, Refs
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.write_transaction import WriteTransaction
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.repo.workspace import WorkspaceFacts, WorkspaceRequest
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import read_regular

_MAX_RECORD_BYTES = 10_000_000


class WorktreeRecord(Struct, frozen=True):
    """Owner of a worktree.

    `ready` is set when its files are complete. `commits` are those that the workbench put, or was about to put, on its
    branch.
    """

    session: str
    task: str
    branch: str
    base: str
    ready: bool = False
    commits: tuple[str, ...] = ()


class WorktreePaths(Struct, frozen=True):
    """Paths of one branch below the repository's folder in the user's state folder."""

    tree: Path
    private: Path

    @property
    def scratch(self) -> Path:
        """Folder for temporary files, on the same disk as the worktree."""
        return self.private / "scratch"

    @property
    def pending(self) -> Path:
        """Folder of an unfinished write transaction."""
        return self.private / "pending"

    def record(self) -> WorktreeRecord | None:
        """Return the record, None if there is no valid one; raise `StorageError`."""
        try:
            return json.decode(read_regular(self.private / "note.json", _MAX_RECORD_BYTES), type=WorktreeRecord)
        except (FileNotFoundError, MsgspecError, ValueError, RecursionError):
            return None
        except OSError as error:
            raise storage_error(f"{self.private} cannot be read", error) from error

    def write_record(self, record: WorktreeRecord) -> None:
        """Replace the record, durably; raise `StorageError`."""
        try:
            make_directories(self.scratch)
        except OSError as error:
            raise storage_error(f"{self.private} cannot be created", error) from error
        write_atomically(self.private / "note.json", json.encode(record))


def worktree_paths(folder: Path, branch: str) -> WorktreePaths:
    """Return the paths of a branch of the workbench below the repository's `folder`."""
    if not branch.startswith(BRANCH_PREFIX):
        raise WorkspaceError(f"{branch} is not a branch of the workbench", advice="name one that begins with agent/")
    name = branch.replace("/", "-")
    return WorktreePaths(folder / name, folder / "private" / name)


def lock_path(folder: Path, task: TaskId) -> Path:
    """Return the path of a task's lock."""
    return folder / "locks" / f"{task}.lock"


class Worktrees:
    """Worktrees of one repository. The caller holds the lock of the task."""

    def __init__(self, paths: RepoPaths, plumbing: Plumbing) -> None:
        self._repo_paths = paths
        self._plumbing = plumbing
        self.objects = GitObjects(plumbing, paths.algorithm)
        self.refs = Refs(plumbing, self.objects.no_object)

    def prepare(self, request: WorkspaceRequest, paths: WorktreePaths) -> tuple[WorkspaceFacts, CommitId]:
        """Return the facts of a ready worktree, and the commit of the work in it.

        The worktree is reused, created or rebuilt. Raises `StorageError`, and `WorkspaceError` if the branch or folder
        belongs to another session or to the user.
        """
        base, tip, last = self.refs.find(request)
        request = replace(request, base=base)
        record = paths.record()
        self._check_folder(request, paths, record)
        same_session = record is not None and record.session == request.session
        if tip not in {None, base} and not same_session and last is None:
            raise WorkspaceError(
                f"the branch {request.branch} already exists with other work",
                advice=f"inspect it with `git log {request.branch}`; delete or rename it, or use another session",
            )
        tree, _ = self.objects.trees_of(tip or base, base)
        links = linkable_names(request.links, self._repo_paths.root, self.objects.entries(base))
        found = record is not None and record.ready and paths.tree.is_dir()
        if found:
            self._reuse(request, paths, tip)
        else:
            ours = record.commits if record is not None and same_session else ()
            self._build(request, paths, tip, last or tip or base, ours)
        make_links(links, self._repo_paths.root, str(paths.tree))
        rebuilt = not found and (same_session or tip is not None or last is not None)
        return WorkspaceFacts(str(paths.tree), request.branch, base, tree, links, rebuilt), last or base

    def _check_folder(self, request: WorkspaceRequest, paths: WorktreePaths, record: WorktreeRecord | None) -> None:
        """Raise if the folder for the worktree contains anything but this session's work on this base."""
        if not os.path.lexists(paths.tree):
            return
        if record is None or paths.tree.is_symlink():
            raise WorkspaceError(f"{paths.tree} is needed for the worktree and already exists", advice="move it away")
        remedy = f"if you no longer need it: git worktree remove --force {shlex.quote(str(paths.tree))}"
        if record.session != request.session:
            raise WorkspaceError(f"{paths.tree} contains the work of session {record.session}", advice=remedy)
        if record.base != request.base:
            raise WorkspaceError(
                f"the worktree {paths.tree} is based on {record.base[:12]}, not on {request.base[:12]}", advice=remedy
            )

    def _reuse(self, request: WorkspaceRequest, paths: WorktreePaths, tip: CommitId | None) -> None:
        """Reuse an existing worktree, even if git's own data about it was lost."""
        self._repair_folder(paths.tree)
        WriteTransaction(str(paths.tree), paths.pending).roll_back()
        if tip is None:
            self.refs.move(f"refs/heads/{request.branch}", request.base, "", "branch recreated")
        git_folder = self.find_git_folder(paths)
        if git_folder is not None and tip is None:
            self._plumbing.run("symbolic-ref", "HEAD", f"refs/heads/{request.branch}", git_dir=str(git_folder))
        if git_folder is None:
            fresh = paths.private / "fresh"
            remove_tree(str(fresh))
            self._plumbing.run("worktree", "add", "--no-checkout", "--", str(fresh), request.branch)
            self._write_pointer(paths, (fresh / ".git").read_bytes())
            self._plumbing.run("worktree", "repair", str(paths.tree))
            remove_tree(str(fresh))
            self.align_index(paths, tip or request.base)
        self._write_pointer(paths, b"gitdir: %s\n" % os.fsencode(self.find_git_folder(paths) or ""))

    def _build(
        self,
        request: WorkspaceRequest,
        paths: WorktreePaths,
        tip: CommitId | None,
        content: CommitId,
        commits: tuple[str, ...],
    ) -> None:
        # From here on the record tells the purpose of the worktree, even after a crash.
        record = WorktreeRecord(request.session, request.task, request.branch, request.base, commits=commits)
        paths.write_record(record)
        self._clear(paths)
        paths.write_record(record)
        new = () if tip else ("-b", request.branch)
        try:
            start = request.branch if tip else request.base
            self._plumbing.run("worktree", "add", "--no-checkout", *new, "--", str(paths.tree), start)
            TreeWriter(self.objects, str(paths.tree), paths.scratch).write(self.objects.entries(content))
            self.align_index(paths, tip or request.base)
        except BaseException:
            self.remove(paths, request.branch, "" if tip else request.base)
            raise
        paths.write_record(replace(record, ready=True))

    def align_index(self, paths: WorktreePaths, commit: str) -> None:
        """Set the worktree's index to a commit, so that `git status` there is correct."""
        git_folder = self.find_git_folder(paths)
        if git_folder is None:
            return
        result = self._plumbing.attempt("read-tree", commit, git_dir=str(git_folder), work_tree=str(paths.tree))
        # The workbench never reads this index, so another process's lock on it is no obstacle.
        if result.status and "index.lock" not in result.err:
            raise failure("read-tree", result)

    def detach(self, paths: WorktreePaths, branch: str, commit: str) -> None:
        """Detach the worktree's HEAD from `branch` to `commit`, so that the branch can be deleted."""
        git_folder = self.find_git_folder(paths)
        if git_folder is None:
            return
        head = self._plumbing.attempt("symbolic-ref", "-q", "HEAD", git_dir=str(git_folder))
        if head.out.strip() == f"refs/heads/{branch}".encode():
            self._plumbing.run("update-ref", "--no-deref", "HEAD", commit, git_dir=str(git_folder))

    def find_git_folder(self, paths: WorktreePaths) -> Path | None:
        """Return git's folder for the worktree, found by its content; the worktree's own `.git` is not trusted."""
        pointer = os.fsencode(paths.tree / ".git")
        try:
            for each in sorted(Path(self._repo_paths.common_dir, "worktrees").iterdir()):
                gitdir = each / "gitdir"
                if gitdir.is_file() and gitdir.read_bytes().rstrip(b"\n") == pointer:
                    return each
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(f"the worktrees of {self._repo_paths.common_dir} cannot be read", error) from error
        return None

    def repair(self, paths: WorktreePaths) -> None:
        """Restore the folder of a worktree and its `.git`, which a command may have replaced."""
        self._repair_folder(paths.tree)
        if git_folder := self.find_git_folder(paths):
            self._write_pointer(paths, b"gitdir: %s\n" % os.fsencode(git_folder))

    def _repair_folder(self, root: Path) -> None:
        try:
            if root.is_symlink() or not root.is_dir():
                remove_tree(str(root))
                root.mkdir()
            elif root.stat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
                root.chmod(0o755)
        except OSError as error:
            raise storage_error(f"{root} cannot be repaired", error) from error

    def restore_links(self, paths: WorktreePaths, links: Sequence[str]) -> None:
        """Restore links that a command removed or replaced."""
        make_links(links, self._repo_paths.root, str(paths.tree), by_force=True)

    def _write_pointer(self, paths: WorktreePaths, right: bytes) -> None:
        """Restore the content of the worktree's `.git`, which a command in the workspace may have replaced."""
        pointer = paths.tree / ".git"
        try:
            with suppress(OSError):
                if read_regular(pointer, len(right)) == right:
                    return
            remove_tree(str(pointer))
            pointer.write_bytes(right)
        except OSError as error:
            raise storage_error(f"{pointer} cannot be repaired", error) from error

    def remove(self, paths: WorktreePaths, branch: str, base: str) -> None:
        """Remove a worktree, its branch if the tip is `base` (empty: never), and finally the record of both."""
        self._clear(paths)
        if base:
            self.refs.delete_branch(branch, base)
        remove_tree(str(paths.private))

    def _clear(self, paths: WorktreePaths) -> None:
        """Remove a worktree and git's folder for it, but not its record; other worktrees stay."""
        git_folder = self.find_git_folder(paths)
        if git_folder is not None and (git_folder / "locked").exists():
            raise WorkspaceError(
                f"the worktree {paths.tree} is locked",
                advice=f"if nobody needs it: git worktree unlock {shlex.quote(str(paths.tree))}",
            )
        remove_tree(str(paths.tree))
        if git_folder is not None:
            remove_tree(str(git_folder))
        for folder in (paths.scratch, paths.pending):
            remove_tree(str(folder))
