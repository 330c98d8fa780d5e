"""Questions on the terminal. What was typed before a question was shown does not answer it.

Ask outside of any event loop, so that Ctrl-C ends the question at once.
"""

import sys
from contextlib import suppress


def agrees(question: str) -> bool:
    """Ask and return True for a yes; without a terminal nobody is asked, and nobody agrees."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    _discard_typed()
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def _discard_typed() -> None:
    """Discard what was typed and not read yet."""
    import termios

    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
