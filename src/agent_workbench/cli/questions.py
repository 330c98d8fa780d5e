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
    return on_terminal() and (typed_line(f"{question} [y/N] ") or "").lower() in {"y", "yes"}


def typed_line(question: str) -> str | None:
    """Ask on the terminal and return the line that is typed, without blanks around it; None at the end of the input."""
    _discard_typed()
    try:
        return input(question).strip()
    except EOFError:
        return None


def chosen_letter(question: str, letters: Mapping[str, str]) -> str:
    """Ask on the terminal until one of the letters is typed, and return it; the end of the input is the last one.

    Anything else prints what each letter means.
    """
    while True:
        said = typed_line(f"{question} [{','.join(letters)},?] ")
        if said is None:
            return [*letters][-1]
        if said.lower() in letters:
            return said.lower()
        print("\n".join(f"{letter} - {meaning}" for letter, meaning in letters.items()))


def chosen_number(question: str, most: int) -> int:
    """Ask for a number up to `most` and return it, 0 for none; without a terminal nobody is asked.

    Enter alone is the first.
    """
    if not on_terminal():
        return 0
    while True:
        said = typed_line(f"{question} [1{f' to {most}' if most > 1 else ''}, n for none] ")
        if said == "":
            return 1
        if said is None or said.lower() in {"n", "no", "none"}:
            return 0
        if said.isascii() and said.isdecimal() and 0 < int(said) <= most:
            return int(said)


def _discard_typed() -> None:
    """Discard what was typed and not read yet."""
    import termios

    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
