"""A process that indexes batches of files: started by `workers`, told what to do through its standard input."""

import os
import signal
import sys
from pathlib import Path
from typing import IO

from agent_workbench.adapters.retrieval.cache import PieceCache
from agent_workbench.adapters.retrieval.frames import read_frame, write_frame
from agent_workbench.adapters.retrieval.parsing import Parser

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
        batch = parser.index(unpack_files(*frame))
        signal.alarm(0)
        try:
            write_frame(answers, batch.parsed, (batch.segment.to_bytes(),))
        except OSError:
            return


def unpack_files(head: object, body: bytes) -> dict[str, bytes]:
    """Return the files of a message: its head names them with their sizes, its body is their contents."""
    files: dict[str, bytes] = {}
    start = 0
    for entry in head if isinstance(head, list) else ():
        path, size = entry
        files[path] = body[start : start + size]
        start += size
    return files


if __name__ == "__main__":
    main()
