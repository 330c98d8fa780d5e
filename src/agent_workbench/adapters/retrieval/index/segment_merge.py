"""Merge of several segments into one without their deleted files."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.index.packed_arrays import PackedStrings
from agent_workbench.adapters.retrieval.index.segments import (
    FIELDS,
    FIELDS_OF_CHUNKS,
    FIELDS_OF_FILES,
    ChunkExtents,
    Segment,
    SegmentFiles,
)
from agent_workbench.ranking.postings import MergeInput
from agent_workbench.ranking.postings import merge as merge_postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Mask = NDArray[np.bool_]


def merge(segments: Sequence[Segment], alive: "Sequence[Mask]") -> Segment:
    """Return one segment with the live files of several, in order; `alive` has a mask over the files of each."""
    import numpy as np

    living_chunks = [mask[segment.file_of] for segment, mask in zip(segments, alive, strict=True)]
    files = list(_renumbered(alive))
    chunks = list(_renumbered(living_chunks))
    shares = [
        MergeInput(
            segment.vocabulary,
            [segment.fields[field] for field in FIELDS],
            [chunk_rows] * len(FIELDS_OF_CHUNKS) + [file_rows] * len(FIELDS_OF_FILES),
        )
        for segment, file_rows, chunk_rows in zip(segments, files, chunks, strict=True)
    ]
    sizes = [sum(int(mask.sum()) for mask in living_chunks)] * len(FIELDS_OF_CHUNKS)
    sizes += [sum(int(mask.sum()) for mask in alive)] * len(FIELDS_OF_FILES)
    vocabulary, merged = merge_postings(shares, sizes)
    per_file = [np.diff(segment.files.first_chunks)[mask] for segment, mask in zip(segments, alive, strict=True)]
    first_chunks = np.zeros(sum(map(len, per_file)) + 1, np.int32)
    np.cumsum(np.concatenate(per_file), out=first_chunks[1:])

    def lines(of: "Sequence[Ints]") -> "Ints":
        return np.concatenate([array[mask] for array, mask in zip(of, living_chunks, strict=True)])

    return Segment(
        vocabulary,
        dict(zip(FIELDS, merged, strict=True)),
        SegmentFiles(
            PackedStrings.joined([segment.files.paths for segment in segments], alive),
            PackedStrings.joined([segment.files.blobs for segment in segments], alive),
            np.concatenate([segment.files.kinds[mask] for segment, mask in zip(segments, alive, strict=True)]),
            first_chunks,
        ),
        ChunkExtents(
            lines([segment.extents.first_lines for segment in segments]),
            lines([segment.extents.last_lines for segment in segments]),
            PackedStrings.joined([segment.extents.symbols for segment in segments], living_chunks),
        ),
    )


def _renumbered(alive: "Sequence[Mask]") -> "Iterator[Ints]":
    """Yield for each mask the new numbers of its live entries (-1: deleted), numbered through all masks."""
    import numpy as np

    first = 0
    for mask in alive:
        numbers = np.where(mask, first + np.cumsum(mask, dtype=np.int32) - 1, -1).astype(np.int32)
        first += int(mask.sum())
        yield numbers
