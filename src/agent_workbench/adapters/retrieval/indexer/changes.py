"""Changed files of a folder, in batches."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.indexer.indexable_files import FileStamp

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


def batches(changes: ChangedFiles) -> Iterator[Sequence[str]]:
    """Yield the changed paths in batches of bounded number and size."""
    batch: list[str] = []
    size = 0
    for path in changes.paths:
        batch.append(path)
        size += changes.stamps[path].size
        if len(batch) == _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
