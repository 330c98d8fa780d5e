"""Errors for hunks without a certain position: the nearest position, and the first line that differs there."""

import re
from collections.abc import Callable, Sequence
from operator import eq

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import FileLines, is_trivial, key_of
from agent_workbench.core.patch.hunk_pieces import HunkPiece
from agent_workbench.core.patch.paths import shown

_OFTEN = 500
_MOST_LINES = 200
_WORD = re.compile(r"\w+")
ADVICE = "Give the old lines exactly as they stand in the file, with enough context to be found in one place only."


def position_error(path: str, piece: HunkPiece, file: FileLines, doubts: Sequence[str] = ()) -> PatchError:
    """Return the error for a piece without a position, or without a certain one; `doubts` are the reasons."""
    old = piece.old
    if not old:
        return PatchError(
            f"{shown(path)}: a hunk that only adds lines does not say where",
            advice="Give at least one line of context with it.",
        )
    what = f"{shown(path)}: the old lines of {piece_name(piece)} stand nowhere"
    why = f" ({doubts[-1]})" if doubts else ""
    header = min(piece.start or 0, max(len(file) - 1, 0))
    at = _nearest_position(piece.keys, file.keys, header)
    difference = first_difference([line.text for line in old], file.texts, at, _same_key, why)
    return PatchError(f"{what}; nearest is line {at + 1}, where {difference}", advice=ADVICE)


def piece_name(piece: HunkPiece) -> str:
    """Return the name of a piece's hunk in messages."""
    numbers = piece.hunk.numbers
    return f"the hunk at line {numbers.old_start}" if numbers is not None else f"hunk {piece.number + 1}"


def applied_line(piece: HunkPiece, file: FileLines) -> int:
    """Return the number of the line at which the file already has the new lines of a piece, else 0."""
    new = [key_of(line.text) for line in piece.lines if line.sign != "-"]
    added = [key_of(line.text) for line in piece.lines if line.sign == "+"]
    if len(new) < 2 or not any(not is_trivial(key) for key in added or new):
        return 0
    found = file.find(new, 1)
    return found[0] + 1 if found else 0


def _same_key(one: str, other: str) -> bool:
    return key_of(one) == key_of(other)


def _nearest_position(old: Sequence[str], lines: Sequence[str], header: int) -> int:
    """Return the index in `lines` whose lines resemble the old lines most; `header` if none resembles them.

    Shared lines and words count more, the rarer they are in the file.
    """
    wanted = [
        (offset, token) for offset, line in enumerate(old[:_MOST_LINES]) for token in dict.fromkeys(_tokens(line))
    ]
    known = {token for _, token in wanted}
    found: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        for token in known.intersection(_tokens(line)):
            found.setdefault(token, []).append(at)
    votes: dict[int, float] = {}
    for offset, token in wanted:
        places = found.get(token, ())
        if len(places) <= _OFTEN:
            for place in places:
                if place >= offset:
                    votes[place - offset] = votes.get(place - offset, 0.0) + 1 / len(places)
    return min(votes, key=lambda at: (-votes[at], abs(at - header)), default=header)


def _tokens(line: str) -> list[str]:
    """Return the words of a line, and the whole line after a space, so that it equals no word."""
    words = _WORD.findall(line)
    return [*words, f" {line}"] if words else []


def first_difference(
    old: Sequence[str], lines: Sequence[str], at: int, same: Callable[[str, str], bool] = eq, why: str = ""
) -> str:
    """Return the first difference between the old lines and the lines of the file at index `at`, as text.

    `same` compares two lines; `why` follows a difference. If all lines are the same, the diff marks the last one as
    having no line feed, and it has one.
    """
    for offset, expected in enumerate(old):
        found = lines[at + offset] if at + offset < len(lines) else None
        if found is None or not same(found, expected):
            there = "the end of the file" if found is None else _quoted(found)
            return f"line {at + offset + 1} differs: expected {_quoted(expected)}, found {there}{why}"
    return f"line {at + len(old)} differs: expected the end of the file without a line feed, found a line feed"


def _quoted(body: str) -> str:
    """Return a line in quotes. Bytes that are not text appear as unknown characters."""
    text = "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char for char in body)
    return repr(shown(text, 120))
