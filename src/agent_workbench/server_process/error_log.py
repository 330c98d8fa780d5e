"""Log on standard error: what a client sent is shown there as inert text, however deep in the SDK it comes up."""

import contextlib
import logging
import sys

from agent_workbench.core.text.sanitizer import sanitize

MAX_ENTRY_CHARS = 20_000


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
