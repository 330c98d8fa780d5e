"""What of a folder is to be read anew, and in which portions."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.indexer.indexable_files import Stamp

# One batch is a moment's work, so that what is ready is soon searched and what is cancelled soon stops.
_BATCH_FILES = 256
_BATCH_BYTES = 512 * 1024


class Changes(Struct, frozen=True):
    """What is to be read, what the disk said of all files before, and what is not: too large, too many, submodules."""

    paths: tuple[str, ...]
    stamps: Mapping[str, Stamp]
    left_out: int
    submodules: int

    @property
    def bytes(self) -> int:
        """How much there is to be read."""
        return sum(self.stamps[path].size for path in self.paths)


def batches(changes: Changes) -> Iterator[Sequence[str]]:
    """Yield the changed paths in groups that are neither many nor large."""
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
