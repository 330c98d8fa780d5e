"""Changed files of a folder, in batches."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of
from agent_workbench.adapters.retrieval.indexable_files import FileStamp

# A batch is a fraction of a second of work: finished files are soon searchable, and a cancelled update soon ends.
_BATCH_FILES = 256
_BATCH_BYTES = 512 * 1024


class ChangedFiles(Struct, frozen=True):
    """Paths to read, the stamps of all files, and the number of files and submodules that are left out."""

    paths: tuple[str, ...]
    stamps: Mapping[str, FileStamp]
    left_out: int
    submodules: int

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(self.stamps[path].size for path in self.paths)


class FileQueue:
    """Changed files that wait to be read, source code first; `wait` tells when one batch more was indexed."""

    def __init__(self, changes: ChangedFiles) -> None:
        ordered = sorted(changes.paths, key=lambda path: find_language(language_of(path)) is None)
        self._waiting = dict.fromkeys(ordered)
        self._taken: set[str] = set()
        self._stamps = changes.stamps
        self._step = asyncio.Event()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Files that no batch had yet, in their order."""
        return tuple(self._waiting)

    def put_first(self, paths: Iterable[str]) -> None:
        """Move these files to the front, in their order, as far as they wait."""
        first = dict.fromkeys(path for path in paths if path in self._waiting)
        self._waiting = first | self._waiting

    def holds(self, paths: Iterable[str]) -> bool:
        """Return True if one of these files is not indexed yet."""
        return any(path in self._waiting or path in self._taken for path in paths)

    async def wait(self) -> None:
        """Wait until another batch is indexed."""
        await self._step.wait()

    def finish(self, batch: Iterable[str]) -> None:
        """Take note that a batch is indexed."""
        self._taken.difference_update(batch)
        step, self._step = self._step, asyncio.Event()
        step.set()

    def __iter__(self) -> Iterator[Sequence[str]]:
        """Yield batches of bounded number and size; several callers share the files."""
        while self._waiting:
            batch: list[str] = []
            size = 0
            for path in self._waiting:
                batch.append(path)
                size += self._stamps[path].size
                if len(batch) == _BATCH_FILES or size >= _BATCH_BYTES:
                    break
            for path in batch:
                del self._waiting[path]
            self._taken.update(batch)
            yield batch
