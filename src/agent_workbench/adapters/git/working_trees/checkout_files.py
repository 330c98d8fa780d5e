"""Files of the user's checkout for the code search, and of recorded trees, read or written to another folder."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from agent_workbench.adapters.git.folders import check_inside, linkable_names, read_files, status_below
from agent_workbench.adapters.git.objects import GITLINK, GitObjects, paths_in
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.stored_commits import past_commits
from agent_workbench.adapters.git.working_trees.user_checkout import Checkout
from agent_workbench.core.errors import RepoError, WorkspaceError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.repo.absent_sources import ignored_sources
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.core.repo.workspace import OwnGit
from agent_workbench.system.atomic_files import storage_error

_MOST_LOOKED_AT = 500


class CheckoutFiles:
    """The port `core.ports.workspace.CheckoutSources`; `checkout` returns the checkout as it is configured now."""

    def __init__(self, checkout: Callable[[], Checkout]) -> None:
        """Find the repository; raise `RepoError` if there is none. Blocks."""
        self._checkout = checkout
        self._root = checkout().paths.root

    @property
    def root(self) -> str:
        return self._root

    async def list_files(self) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: self._checkout().files())

    async def absent_sources(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self._absent_sources)

    def _absent_sources(self) -> tuple[str, ...]:
        checkout = self._checkout()
        tracked, _ = checkout.listed()
        words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        ignored = paths_in(checkout.plumbing.run(*words, work_tree=self._root))
        modules = (path for mode, path in tracked if mode == GITLINK)
        filled = (path for path in modules if status_below(self._root, f"{path}/.git") is not None)
        return (*ignored_sources((path for _, path in tracked), ignored, self._content), *filled)

    def _content(self, folder: str) -> Iterator[str]:
        """Yield the first paths in a folder."""
        walk = ((where, file) for where, _, files in os.walk(f"{self._root}/{folder}") for file in files)
        for where, file in islice(walk, _MOST_LOOKED_AT):
            yield f"{where}/{file}"

    async def own_git(self) -> OwnGit:
        return await asyncio.to_thread(lambda: self._checkout().own_git())

    async def linkable(self, names: Sequence[str]) -> tuple[str, ...]:
        return await asyncio.to_thread(self._linkable, names)

    def _linkable(self, names: Sequence[str]) -> tuple[str, ...]:
        checkout = self._checkout()
        return linkable_names(names, self._root, checkout.objects.entries(checkout.head()))

    def first_commit(self) -> str:
        """Return the commit that HEAD began with, which all whole clones have; raise `RepoError`. Blocks."""
        return self._checkout().first_commit()

    def tracked_in(self, folder: str) -> frozenset[str] | None:
        """Return the names in a folder that git tracks, None if it is a submodule's. Blocks."""
        return self._checkout().tracked_in(folder)

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(read_files, self._root, paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return await asyncio.to_thread(lambda: self._past(limit, until))

    def _past(self, limit: int, until: str) -> tuple[PastCommit, ...]:
        return past_commits(self._checkout().plumbing, None, limit, until)


class RecordedTree:
    """Files of `tree`, readable as `engine.runtime.scope.TaskFiles`. The constructor blocks."""

    def __init__(self, objects: GitObjects, tree: str) -> None:
        self._objects = objects
        self._entries = objects.entries(objects.tree_of(tree))

    async def list_files(self) -> tuple[str, ...]:
        """Return all files and links, sorted, as a worktree of this tree would list them."""
        return tuple(sorted(path for path, entry in self._entries.items() if entry.mode != GITLINK))

    async def read(self, path: str) -> FileContent | None:
        """Return the content of a regular file, None if there is none; raise `WorkspaceError` for a link."""
        check_inside(path)
        entry = self._entries.get(path)
        if entry is None:
            return None
        content = (await asyncio.to_thread(self._objects.files, [entry])).get(entry)
        if content is None:
            raise WorkspaceError(f"{shown(path)} is not a regular file of at most 200 MB")
        return content


class PastTree:
    """The port `core.ports.workspace.Sources`; `base` is the tree's commit, `later` the commits since, newest first."""

    def __init__(self, plumbing: Plumbing, root: str, paths: tuple[str, ...], base: CommitId) -> None:
        self._plumbing = plumbing
        self._root = root
        self._paths = paths
        self.base = base
        self.later: tuple[PastCommit, ...] = ()

    @property
    def root(self) -> str:
        return self._root

    async def list_files(self) -> tuple[str, ...]:
        return self._paths

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(read_files, self._root, paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return await asyncio.to_thread(past_commits, self._plumbing, self.base, limit, until)


def write_past_tree(objects: GitObjects, commits_ago: int, folder: Path) -> PastTree:
    """Write the regular files of a commit `commits_ago` before HEAD into `folder`.

    In a shorter history the commit in the middle is used. Blocks. Raises `RepoError` for a history of one commit,
    `StorageError` if the disk refuses, `WorkspaceError` if objects are missing.
    """
    plumbing = objects.plumbing
    line = plumbing.attempt("rev-list", "--first-parent", f"--max-count={commits_ago + 1}", "HEAD", "--").out.split()
    if len(line) < 2:
        raise RepoError("the repository has too few commits to measure with", advice="make at least two commits")
    base = CommitId(line[commits_ago if len(line) > commits_ago else len(line) // 2].decode())
    paths: list[str] = []
    for batch in objects.batches({path: each for path, each in objects.entries(base).items() if each.is_regular}):
        for path, _, data in batch:
            if _written(folder, path, data):
                paths.append(path)
    found = PastTree(plumbing, str(folder), tuple(sorted(paths)), base)
    found.later = past_commits(plumbing, None, commits_ago * 4, base)
    return found


def _written(folder: Path, path: str, data: bytes) -> bool:
    """Write a file; return False for a name that no folder accepts, which a tree may contain."""
    try:
        check_inside(path)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(data)
    except (WorkspaceError, FileExistsError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise storage_error(f"{os.fspath(folder)} cannot be written", error) from error
    return True
