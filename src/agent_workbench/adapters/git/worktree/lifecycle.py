"""Makes the worktree of a task, finds it again, rebuilds it when its folder is gone, and takes it away."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.git.commands.discovery import Place
from agent_workbench.adapters.git.commands.objects import GitObjects
from agent_workbench.adapters.git.commands.plumbing import Plumbing, failure
from agent_workbench.adapters.git.commands.refs import Refs
from agent_workbench.adapters.git.file_access.folders import remove_tree
from agent_workbench.adapters.git.file_access.links import make_links, wanted_links
from agent_workbench.adapters.git.file_access.tree_writer import TreeWriter
from agent_workbench.adapters.git.file_access.write_transaction import WriteTransaction
from agent_workbench.adapters.git.worktree.paths import Note, Site
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.workspace import WorkspaceFacts, WorkspaceRequest
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.regular_files import read_regular


class Worktrees:
    """The worktrees of one repository. Whoever calls holds the lock of the task."""

    def __init__(self, place: Place, plumbing: Plumbing) -> None:
        self._place = place
        self._plumbing = plumbing
        self.trees = GitObjects(plumbing, place.algorithm)
        self.refs = Refs(plumbing, self.trees.no_object)

    def prepare(self, request: WorkspaceRequest, site: Site) -> tuple[WorkspaceFacts, CommitId]:
        """Return the facts of a worktree that is ready, and the commit that the work in it stands at.

        It is found as it was left, made anew, or rebuilt. Raises `StorageError`, and `WorkspaceError` when the branch
        or the folder belongs to somebody else.
        """
        base, tip, last = self.refs.find(request)
        request = replace(request, base=base)
        note = site.note()
        self._check_folder(request, site, note)
        same_session = note is not None and note.session == request.session
        if tip not in {None, base} and not same_session and last is None:
            raise WorkspaceError(
                f"the branch {request.branch} exists already and holds other work",
                advice=f"look at it with `git log {request.branch}`; delete or rename it, or take another session",
            )
        tree, _ = self.trees.trees_of(tip or base, base)
        links = wanted_links(request.links, self._place.root, self.trees.entries(base))
        found = note is not None and note.ready and site.tree.is_dir()
        if found:
            self._take_up(request, site, tip)
        else:
            ours = note.commits if note is not None and same_session else ()
            self._build(request, site, tip, last or tip or base, ours)
        make_links(links, self._place.root, str(site.tree))
        rebuilt = not found and (same_session or tip is not None or last is not None)
        return WorkspaceFacts(str(site.tree), request.branch, base, tree, links, rebuilt), last or base

    def _check_folder(self, request: WorkspaceRequest, site: Site, note: Note | None) -> None:
        """Raise when the folder for the worktree holds something that is not this session's work on this base."""
        if not os.path.lexists(site.tree):
            return
        if note is None or site.tree.is_symlink():
            raise WorkspaceError(f"{site.tree} is in the way", advice="move it away; the worktree has to go there")
        remedy = f"when you no longer need it: git worktree remove --force {site.tree}"
        if note.session != request.session:
            raise WorkspaceError(f"{site.tree} holds the work of session {note.session}", advice=remedy)
        if note.base != request.base:
            raise WorkspaceError(
                f"{site.tree} was begun on {note.base[:12]}, not on {request.base[:12]}", advice=remedy
            )

    def _take_up(self, request: WorkspaceRequest, site: Site, tip: CommitId | None) -> None:
        """Go on in a worktree as it was left, whatever became of git's own notes about it."""
        self._mend_folder(site.tree)
        WriteTransaction(str(site.tree), site.pending).roll_back()
        if tip is None:
            self.refs.move(f"refs/heads/{request.branch}", request.base, "", "branch made anew")
        admin = self.find_admin(site)
        if admin is not None and tip is None:
            self._plumbing.run("symbolic-ref", "HEAD", f"refs/heads/{request.branch}", git_dir=str(admin))
        if admin is None:
            fresh = site.private / "fresh"
            remove_tree(str(fresh))
            self._plumbing.run("worktree", "add", "--no-checkout", "--", str(fresh), request.branch)
            self._write_pointer(site, (fresh / ".git").read_bytes())
            self._plumbing.run("worktree", "repair", str(site.tree))
            remove_tree(str(fresh))
            self.align_index(site, tip or request.base)
        self._write_pointer(site, b"gitdir: %s\n" % os.fsencode(self.find_admin(site) or ""))

    def _build(
        self, request: WorkspaceRequest, site: Site, tip: CommitId | None, content: CommitId, commits: tuple[str, ...]
    ) -> None:
        # Whatever stops it from here on, the note tells what was wanted.
        note = Note(request.session, request.task, request.branch, request.base, commits=commits)
        site.write_note(note)
        self._clear(site)
        site.write_note(note)
        new = () if tip else ("-b", request.branch)
        try:
            start = request.branch if tip else request.base
            self._plumbing.run("worktree", "add", "--no-checkout", *new, "--", str(site.tree), start)
            TreeWriter(self.trees, str(site.tree), site.scratch).put(self.trees.entries(content))
            self.align_index(site, tip or request.base)
        except BaseException:
            self.remove(site, request.branch, "" if tip else request.base)
            raise
        site.write_note(replace(note, ready=True))

    def align_index(self, site: Site, commit: str) -> None:
        """Make the worktree's own index that of a commit, so that `git status` there tells the truth."""
        admin = self.find_admin(site)
        if admin is None:
            return
        outcome = self._plumbing.attempt("read-tree", commit, git_dir=str(admin), work_tree=str(site.tree))
        # Nothing of ours reads that index, so a lock of somebody else's need not stop the work.
        if outcome.status and "index.lock" not in outcome.err:
            raise failure("read-tree", outcome)

    def detach(self, site: Site, branch: str, commit: str) -> None:
        """Make the worktree's HEAD `commit` instead of `branch`, so that the branch can be deleted."""
        admin = self.find_admin(site)
        if admin is None:
            return
        head = self._plumbing.attempt("symbolic-ref", "-q", "HEAD", git_dir=str(admin))
        if head.out.strip() == f"refs/heads/{branch}".encode():
            self._plumbing.run("update-ref", "--no-deref", "HEAD", commit, git_dir=str(admin))

    def find_admin(self, site: Site) -> Path | None:
        """Return git's own folder for the worktree, found by what it points to: the worktree may lie about it."""
        pointer = os.fsencode(site.tree / ".git")
        try:
            for each in sorted(Path(self._place.common_dir, "worktrees").iterdir()):
                gitdir = each / "gitdir"
                if gitdir.is_file() and gitdir.read_bytes().rstrip(b"\n") == pointer:
                    return each
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(f"the worktrees of {self._place.common_dir} cannot be read", error) from error
        return None

    def mend(self, site: Site) -> None:
        """Make the folder of a worktree and its `.git` what they were: a command may have replaced them."""
        self._mend_folder(site.tree)
        if admin := self.find_admin(site):
            self._write_pointer(site, b"gitdir: %s\n" % os.fsencode(admin))

    def _mend_folder(self, root: Path) -> None:
        try:
            if root.is_symlink() or not root.is_dir():
                remove_tree(str(root))
                root.mkdir()
            elif root.stat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
                root.chmod(0o755)
        except OSError as error:
            raise storage_error(f"{root} cannot be put right", error) from error

    def link_again(self, site: Site, links: Sequence[str]) -> None:
        """Make links that a command removed or replaced what they were."""
        make_links(links, self._place.root, str(site.tree), by_force=True)

    def _write_pointer(self, site: Site, right: bytes) -> None:
        """Make the worktree's `.git` what git made it: a command in the workspace may have put another there."""
        pointer = site.tree / ".git"
        try:
            with suppress(OSError):
                if read_regular(pointer, len(right)) == right:
                    return
            remove_tree(str(pointer))
            pointer.write_bytes(right)
        except OSError as error:
            raise storage_error(f"{pointer} cannot be put right", error) from error

    def remove(self, site: Site, branch: str, base: str) -> None:
        """Remove a worktree, its branch if that is at `base` (empty: never), and at last our note about them."""
        self._clear(site)
        if base:
            self.refs.delete_branch(branch, base)
        remove_tree(str(site.private))

    def _clear(self, site: Site) -> None:
        """Remove a worktree and git's folder for it; our note about it stays. Other worktrees are left alone."""
        admin = self.find_admin(site)
        if admin is not None and (admin / "locked").exists():
            raise WorkspaceError(
                f"the worktree {site.tree} is locked", advice=f"git worktree unlock {site.tree}, if nobody needs it"
            )
        remove_tree(str(site.tree))
        if admin is not None:
            remove_tree(str(admin))
        for folder in (site.scratch, site.pending):
            remove_tree(str(folder))
