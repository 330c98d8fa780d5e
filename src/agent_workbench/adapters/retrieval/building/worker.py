"""A process that indexes batches of files: started by `workers`, told what to do through its standard input."""

import os
import signal
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO

from agent_workbench.adapters.retrieval.building.parsing import Batch, Parser
from agent_workbench.adapters.retrieval.cutting.piece_cache import PieceCache
from agent_workbench.adapters.retrieval.frames import read_frame, write_frame
from agent_workbench.adapters.retrieval.index.merging import merge
from agent_workbench.adapters.retrieval.index.packing import pack
from agent_workbench.adapters.retrieval.index.segments import Segment

# A batch that takes longer will not end; the session goes on with another process, and file by file.
_BATCH_SECONDS = 120


def main() -> None:
    """Answer every batch with its segment; end with whoever started it, however that one ended."""
    # Whatever else is printed here must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    cache, max_tokens = sys.argv[1:]
    serve(sys.stdin.buffer, answers, Parser(PieceCache(Path(cache)), int(max_tokens)))


def serve(asked: IO[bytes], answers: IO[bytes], parser: Parser) -> None:
    """Answer until nobody asks or nobody listens any more."""
    while (frame := read_frame(asked)) is not None:
        signal.alarm(_BATCH_SECONDS)
        batch = answer(parser, *frame)
        signal.alarm(0)
        try:
            write_frame(answers, batch.parsed, pack(batch.segment.arrays()))
        except OSError:
            return


def answer(parser: Parser, head: object, body: bytes) -> Batch:
    """Return what is asked for: files indexed (named with their sizes), or segments merged (their sizes and masks')."""
    match head:
        case ["index", list(entries)]:
            contents = _cut(body, [size for _, size in entries])
            return parser.index({path: bytes(data) for (path, _), data in zip(entries, contents, strict=True)})
        case ["merge", list(sizes)]:
            return Batch(_merged(_cut(body, sizes)), 0)
        case _:
            raise ValueError("not what a worker is asked for")


def _merged(parts: list[memoryview]) -> Segment:
    """Merge segments; behind each stands which of its files are alive."""
    import numpy as np

    return merge([Segment.from_bytes(part) for part in parts[::2]], [np.frombuffer(part, bool) for part in parts[1::2]])


def _cut(body: bytes, sizes: list[int]) -> list[memoryview]:
    ends = list(accumulate(sizes, initial=0))
    return [memoryview(body)[start:end] for start, end in pairwise(ends)]


if __name__ == "__main__":
    main()
