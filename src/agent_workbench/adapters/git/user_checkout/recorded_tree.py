"""Files of a tree that a session recorded, read from the object database without a worktree."""

import asyncio

from agent_workbench.adapters.git.commands.objects import GITLINK, GitObjects
from agent_workbench.adapters.git.file_access.folders import check_inside
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileContent


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
