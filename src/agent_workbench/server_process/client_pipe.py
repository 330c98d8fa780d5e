"""The client's pipe, taken away from all else in this process, and the inert log on standard error."""

import contextlib
import io
import logging
import os
import sys
from typing import IO

from agent_workbench.core.text.sanitizer import sanitize

MAX_MESSAGE_CHARS = 4 * 1024 * 1024
MAX_HEAD_CHARS = 200
"""Characters kept of a message that is too long."""

MAX_ENTRY_CHARS = 20_000


def take_pipe() -> tuple[IO[str], IO[str]]:
    """Return the pipe to read and to write, and leave nothing of it at standard input and output.

    What this process or a child prints by accident cannot get into the protocol, and no child reads from it.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reading, writing = os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")
    return (
        io.TextIOWrapper(reading, encoding="utf-8", errors="replace"),
        io.TextIOWrapper(writing, encoding="utf-8", write_through=True),
    )


def bounded_line(stream: IO[str]) -> tuple[str, bool]:
    """Return the next line, empty at the end of the stream, and True; of one that is too long its beginning, and False.

    The rest of a line that is too long is read and dropped.
    """
    line = stream.readline(MAX_MESSAGE_CHARS)
    if len(line) < MAX_MESSAGE_CHARS or line.endswith("\n"):
        return line, True
    while (rest := stream.readline(MAX_MESSAGE_CHARS)) and not rest.endswith("\n"):
        continue
    return line[:MAX_HEAD_CHARS], False


class InertHandler(logging.Handler):
    """Handler that writes to standard error, with control characters made visible and long entries cut."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry; a reader that has gone is no error."""
        text = sanitize(self.format(record), limit_chars=MAX_ENTRY_CHARS)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def log_to_stderr() -> None:
    """Send warnings and errors of this process, and of the SDK, to standard error."""
    logging.basicConfig(level=logging.WARNING, handlers=[InertHandler()], force=True)
