"""An earlier tree of the repository, written into a folder of its own, and the commits since then."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_workbench.adapters.git.folders import check_inside, read_files
from agent_workbench.adapters.git.objects import GitObjects
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.stored_commits import past_commits
from agent_workbench.core.errors import RepoError, WorkspaceError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.system.atomic_files import storage_error


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
