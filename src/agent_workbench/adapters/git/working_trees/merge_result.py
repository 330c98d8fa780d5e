"""Trees and commits that each method of a merge makes. Objects are written; no ref, index or file changes."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.discovery import RepoPaths
from agent_workbench.adapters.git.objects import WORKBENCH, GitObjects, commit_author, paths_in
from agent_workbench.adapters.git.plumbing import Plumbing, failure
from agent_workbench.adapters.git.stored_commits import read_commit
from agent_workbench.core.history.commit_proof import CommitFacts
from agent_workbench.core.history.journal_proof import anchor_lines, without_anchors
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.workspace import MergeMethod

_MERGES_SINCE = (2, 38)
_MOST_NAMED = 20
_MOST_REBASED = 100


class MergeSides(Struct, frozen=True):
    """The two commits of a merge, and their merge base."""

    head: CommitId
    theirs: CommitId
    base: CommitId | None

    @property
    def diverged(self) -> bool:
        """True if the checked-out branch has commits that the other one lacks."""
        return self.base != self.head


class MergeResult(Struct, frozen=True):
    """Tree of a merge, or the `conflicts` that prevent it. `picked` are rebased commits with their new trees."""

    method: MergeMethod
    tree: str = ""
    picked: tuple[tuple[CommitFacts, str], ...] = ()
    conflicts: tuple[str, ...] = ()


def offered_methods(sides: MergeSides) -> tuple[MergeMethod, ...]:
    """Return the methods that make a difference for these commits, the default first."""
    if sides.diverged:
        return MergeMethod.MERGE, MergeMethod.SQUASH, MergeMethod.REBASE
    return MergeMethod.FAST_FORWARD, MergeMethod.MERGE, MergeMethod.SQUASH


class MergeResults:
    """Computation of merges in one repository. Blocking."""

    def __init__(self, paths: RepoPaths, plumbing: Plumbing, objects: GitObjects) -> None:
        self._repo_paths, self._plumbing, self._objects = paths, plumbing, objects

    def plan(self, sides: MergeSides, method: MergeMethod | None) -> MergeResult:
        """Return the result of a merge; None is a fast-forward where one is possible, else a merge commit."""
        if method is None or (method is MergeMethod.REBASE and not sides.diverged):
            method = offered_methods(sides)[0]
        match method:
            case MergeMethod.FAST_FORWARD if sides.diverged:
                why = "Your branch has commits that the task's branch lacks, so it cannot be fast-forwarded."
                return MergeResult(method, conflicts=(why,))
            case MergeMethod.REBASE:
                return self._rebase(sides)
            case _ if sides.diverged:
                tree, conflicts = self._merged_tree(sides.head, sides.theirs)
                return MergeResult(method, tree, conflicts=conflicts)
            case _:
                return MergeResult(method, self._objects.tree_of(sides.theirs))

    def make(self, result: MergeResult, sides: MergeSides, message: str) -> CommitId:
        """Store the commits of a result without conflicts, and return the new tip of the branch."""
        if result.method is MergeMethod.FAST_FORWARD:
            return sides.theirs
        author = commit_author(self._plumbing)
        match result.method:
            case MergeMethod.MERGE:
                parents = [sides.head, sides.theirs]
                return CommitId(self._objects.commit(result.tree, parents, message, author))
            case MergeMethod.SQUASH:
                named = [message.encode("utf-8", "replace"), *(each.message for each in self._commits(sides))]
                anchors = dict.fromkeys(line for each in named for line in anchor_lines(each))
                whole = "\n\n".join(filter(None, (without_anchors(message).strip(), "\n".join(anchors)))) + "\n"
                return CommitId(self._objects.commit(result.tree, [sides.head], whole, author))
            case MergeMethod.REBASE:
                tip = sides.head
                for commit, tree in result.picked:
                    tip = CommitId(self._objects.recommit(commit.commit, tree, tip, author))
                return tip

    def squash_message(self, sides: MergeSides) -> str:
        """Return the message of the newest commit with the subjects of the others, without anchors."""
        newest, *others = reversed(self._commits(sides))
        message = without_anchors(newest.message.decode("utf-8", "replace")).strip()
        subjects = [f"- {each.message.decode('utf-8', 'replace').strip().split(chr(10))[0]}" for each in others]
        return "\n\n".join(filter(None, (message, "\n".join(reversed(subjects)))))

    def _commits(self, sides: MergeSides) -> list[CommitFacts]:
        """Return the commits that a merge brings, the oldest first, at most `_MOST_REBASED` and one."""
        listed = self._plumbing.run(
            *("rev-list", "--topo-order", f"--max-count={_MOST_REBASED + 1}", f"{sides.head}..{sides.theirs}")
        )
        found = (read_commit(self._plumbing, self._objects.algorithm, name) for name in listed.decode().split())
        return [each for each in found if each is not None][::-1]

    def _rebase(self, sides: MergeSides) -> MergeResult:
        """Return the commits picked one after the other onto the head; those that change nothing there are left out."""
        commits = self._commits(sides)
        if len(commits) > _MOST_REBASED:
            return _not_rebased(f"There are more than {_MOST_REBASED} commits to rebase.")
        if any(len(each.parents) != 1 or not each.intact for each in commits):
            return _not_rebased("A commit to rebase is a merge or has no parent.")
        tree = self._objects.tree_of(sides.head)
        picked = []
        for each in commits:
            before = self._objects.tree_of(each.parents[0])
            base = self._synthetic(before)
            made, conflicts = self._merged_tree(self._synthetic(tree, base), self._synthetic(each.tree, base))
            if conflicts:
                named = tuple(f"Commit {each.commit[:10]}: {conflict}" for conflict in conflicts)
                return MergeResult(MergeMethod.REBASE, conflicts=named)
            if made != tree:
                picked.append((each, made))
            tree = made
        return MergeResult(MergeMethod.REBASE, tree, tuple(picked))

    def _synthetic(self, tree: str, parent: str = "") -> str:
        """Store a commit that only serves as a side of a three-way merge: git 2.38 takes no merge base of its own."""
        return self._objects.commit(tree, [parent] if parent else [], "side of a rebase", WORKBENCH)

    def _merged_tree(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Return the merged tree, or the conflicts."""
        if self._plumbing.program.version < _MERGES_SINCE:
            return "", ("Both branches have new commits; merging them needs git 2.38 or newer.",)
        with self._bare_git_dir() as folder:
            result = self._plumbing.attempt(
                *("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs),
                git_dir=folder,
                environment={"GIT_OBJECT_DIRECTORY": f"{self._repo_paths.common_dir}/objects"},
            )
        if result.status not in {0, 1}:
            if "unrelated histories" in result.err:
                return "", ("The two histories have no commit in common.",)
            raise failure("merge-tree", result)
        tree, *conflicts = paths_in(result.out)
        names = dict.fromkeys(filter(None, conflicts))
        return tree, tuple(f"{shown(path)} was changed on both sides." for path in names)[:_MOST_NAMED]

    @contextmanager
    def _bare_git_dir(self) -> Iterator[str]:
        """Yield a git directory that shares only the objects, so that no merge driver is configured."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("refs", "objects"):
                (Path(folder) / name).mkdir()
            (Path(folder) / "HEAD").write_text("ref: refs/heads/none\n")
            version = 0 if self._objects.algorithm == "sha1" else 1
            config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n"
            if version:
                config += f"[extensions]\n\tobjectformat = {self._objects.algorithm}\n"
            (Path(folder) / "config").write_text(config)
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self._repo_paths.common_dir}/shallow", f"{folder}/shallow")
            yield folder


def _not_rebased(why: str) -> MergeResult:
    return MergeResult(MergeMethod.REBASE, conflicts=(why,))
