"""What a diff can mean when its numbers are not believed: every text that its hunks, placed in order, can make."""

from collections.abc import Sequence

from bench.faults.draft import Hunk

_ENOUGH = 40


def results(text: str, hunks: Sequence[Hunk]) -> set[str]:
    """Return every text that comes of placing the hunks in order where their old lines stand, up to a few dozen.

    White space at the ends of lines and the last line feed are not looked at. Empty if the old lines stand nowhere.
    """
    lines = _bare(text.split("\n"))
    if lines and not lines[-1]:
        lines.pop()
    found: set[str] = set()
    _place(lines, hunks, 0, [], found)
    return found


def bare(text: str | None) -> str:
    """Return the text as `results` compares it."""
    lines = _bare((text or "").split("\n"))
    return "\n".join(lines[:-1] if lines and not lines[-1] else lines)


def _place(lines: Sequence[str], hunks: Sequence[Hunk], start: int, done: list[str], found: set[str]) -> None:
    if len(found) >= _ENOUGH:
        return
    if not hunks:
        found.add("\n".join([*done, *lines[start:]]))
        return
    old, new = _bare(hunks[0].old), _bare(hunks[0].new)
    if not old:
        return
    for at in range(start, len(lines) - len(old) + 1):
        if lines[at] == old[0] and lines[at : at + len(old)] == old:
            _place(lines, hunks[1:], at + len(old), [*done, *lines[start:at], *new], found)


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]
