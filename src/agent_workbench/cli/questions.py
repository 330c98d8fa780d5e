"""Questions on the terminal. What was typed before a question was shown does not answer it.

Ask outside of any event loop, so that Ctrl-C ends the question at once.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress


def on_terminal() -> bool:
    """Return True if somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Ask and return True for a yes; without a terminal nobody is asked, and nobody agrees."""
    if not on_terminal():
        return False
    _discard_typed()
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def chosen_letter(question: str, letters: Mapping[str, str]) -> str:
    """Ask on the terminal until one of the letters is typed, and return it; the end of the input is the last one.

    Anything else prints what each letter means.
    """
    while True:
        _discard_typed()
        try:
            said = input(f"{question} [{','.join(letters)},?] ").strip().lower()
        except EOFError:
            return [*letters][-1]
        if said in letters:
            return said
        print("\n".join(f"{letter} - {meaning}" for letter, meaning in letters.items()))


def chosen_number(question: str, most: int) -> int:
    """Ask for a number up to `most` and return it, 0 for none; without a terminal nobody is asked.

    Enter alone is the first.
    """
    if not on_terminal():
        return 0
    _discard_typed()
    while True:
        said = input(f"{question} [1{f' to {most}' if most > 1 else ''}, n for none] ").strip().lower()
        if not said:
            return 1
        if said in {"n", "no", "none"}:
            return 0
        if said.isascii() and said.isdecimal() and 0 < int(said) <= most:
            return int(said)


def _discard_typed() -> None:
    """Discard what was typed and not read yet."""
    import termios

    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
