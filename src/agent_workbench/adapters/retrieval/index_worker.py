"""Worker process that indexes batches of files; started by `worker_pool`, with requests on standard input."""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.file_parser import FileParser, ParsedBatch
from agent_workbench.adapters.retrieval.index.packed_arrays import pack
from agent_workbench.adapters.retrieval.index.segments import Segment, merge
from agent_workbench.adapters.retrieval.worker_frames import Part, serve

# A batch that takes longer hangs; the session continues with another process, file by file.
BATCH_SECONDS = 120


def main() -> None:
    """Answer each request with a segment, until standard input ends."""
    cache, max_tokens = sys.argv[1:]
    serve(partial(answer, FileParser(ChunkCache(Path(cache)), int(max_tokens))), BATCH_SECONDS)


def answer(parser: FileParser, head: object, body: memoryview) -> tuple[int, Sequence[Part]]:
    """Return the number of parsed files and the requested segment.

    A request indexes files (paths and sizes) or merges segments (sizes of segments and masks).
    """
    batch = _batch(parser, head, body)
    return batch.parsed, pack(batch.segment.arrays())


def _batch(parser: FileParser, head: object, body: memoryview) -> ParsedBatch:
    match head:
        case ["index", list(entries)]:
            contents = _split(body, [size for _, size in entries])
            return parser.index({path: bytes(data) for (path, _), data in zip(entries, contents, strict=True)})
        case ["merge", list(sizes)]:
            return ParsedBatch(_merged(_split(body, sizes)), 0)
        case _:
            raise ValueError("not what a worker is asked for")


def _merged(parts: list[memoryview]) -> Segment:
    """Return the merged segment of parts that alternate: a segment, the mask of its live files."""
    import numpy as np

    return merge([Segment.from_bytes(part) for part in parts[::2]], [np.frombuffer(part, bool) for part in parts[1::2]])


def _split(body: memoryview, sizes: list[int]) -> list[memoryview]:
    ends = list(accumulate(sizes, initial=0))
    return [body[start:end] for start, end in pairwise(ends)]


if __name__ == "__main__":
    main()
