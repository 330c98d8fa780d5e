"""The files of a recorded tree, read from the repository's objects: no worktree is needed, none is touched."""

import asyncio

from agent_workbench.adapters.git.commands.objects import GITLINK, GitObjects
from agent_workbench.adapters.git.file_access.folders import check_inside
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileContent


class RecordedTree:
    """The files of `tree`. Satisfies `engine.scope.Files`. Made blocking."""

    def __init__(self, trees: GitObjects, tree: str) -> None:
        self._trees = trees
        self._entries = trees.entries(trees.tree_of(tree))

    async def list_files(self) -> tuple[str, ...]:
        """Return all files and links, sorted, as a worktree of this tree would list them."""
        return tuple(sorted(path for path, entry in self._entries.items() if entry.mode != GITLINK))

    async def read(self, path: str) -> FileContent | None:
        """Return a regular file's content, None where there is none; raise `WorkspaceError` for links and the like."""
        check_inside(path)
        entry = self._entries.get(path)
        if entry is None:
            return None
        content = (await asyncio.to_thread(self._trees.files, [entry])).get(entry)
        if content is None:
            raise WorkspaceError(f"{shown(path)} is no regular file that can be read")
        return content
