"""Files that a chat may read: those that git tracks, as they are in the user's checkout, without secrets."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.core.repo.retrieval import PastCommit


class TrackedFiles:
    """The port `ReadableFiles` on the user's checkout, limited to the files `paths`."""

    def __init__(self, sources: Sources, paths: Sequence[str]) -> None:
        self._sources = sources
        self._paths = tuple(path for path in paths if not holds_secrets(path))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._paths)

    @property
    def root(self) -> str:
        """Absolute path of the checkout."""
        return self._sources.root

    async def list_files(self) -> tuple[str, ...]:
        """Return the paths of the files, sorted."""
        return self._paths

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of these files, without those that are gone, links, or not among `paths`."""
        return await self._sources.read_files([path for path in paths if path in self._known])

    async def read(self, path: str) -> FileContent | None:
        """Return a file's content, None if there is none; raise `WorkspaceError` for one that may hold secrets."""
        if holds_secrets(path):
            raise WorkspaceError(f"{path!r} is a file that usually holds secrets; a chat does not read it")
        found = (await self.read_files([path])).get(path)
        return FileContent(found) if found is not None else None

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        """Return the newest past commits of the checkout."""
        return await self._sources.past_commits(limit, until)
