"""The lines of one file, for the comparison with hunks, the placement of edits and the grammar of diffs."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

_BLANK = " \t\r\f\v"
_TRIVIAL = frozenset(
    {"", "pass", "return", "else:", "else", "try:", "try", "finally:", "break", "continue", "end", "do", "then", "fi"}
    | {"break;", "continue;", "return;", "begin", "done", "default:", "return None", "return false;", "return true;"}
)


class LineEdit(Struct, frozen=True):
    """Replacement of lines `start` to `end` (exclusive) of a file by the lines `added`, given with their line ends.

    `end_before` becomes the line end of the last line of the file if lines are added after it.
    """

    start: int
    end: int
    added: tuple[bytes, ...]
    end_before: bytes = b"\n"


class FileLines:
    """The lines of one file, split at line feeds only.

    `raws` are the lines as bytes, with their line ends. `texts` are the lines as text, without line feeds; the carriage
    return of a CRLF line is part of its text. `terminated` is True if the last line has a line feed, or if there is no
    line. Bytes that are not UTF-8 become lone surrogates: no diff contains them, so such lines match nothing and are
    written back unchanged.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.raws = data.split(b"\n")
        last = self.raws.pop()
        self.raws = [raw + b"\n" for raw in self.raws] + ([last] if last else [])
        self.terminated = not last

    def __len__(self) -> int:
        return len(self.raws)

    @cached_property
    def texts(self) -> list[str]:
        """The lines as text, without line feeds."""
        texts = self._data.decode(errors="surrogateescape").split("\n")
        return texts[:-1] if self.terminated else texts

    @cached_property
    def pairs(self) -> list[tuple[str, bool]]:
        """The lines as text, each with True if it has a line feed."""
        last = len(self.raws) - 1
        return [(text, at < last or self.terminated) for at, text in enumerate(self.texts)]

    @cached_property
    def bare(self) -> tuple[str, ...]:
        """The lines as text, without their line ends: no carriage return before a line feed."""
        ended = len(self.raws) if self.terminated else len(self.raws) - 1
        return tuple([text.removesuffix("\r") for text in self.texts[:ended]] + self.texts[ended:])

    @cached_property
    def keys(self) -> list[str]:
        """The lines without trailing blanks."""
        return [key_of(text) for text in self.texts]

    @cached_property
    def stripped(self) -> list[str]:
        """The lines without leading and trailing blanks."""
        return [key.lstrip(_BLANK) for key in self.keys]

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """The indices of each of `keys`."""
        return positions_of(self.keys)

    @cached_property
    def stripped_positions(self) -> dict[str, list[int]]:
        """The indices of each of `stripped`."""
        return positions_of(self.stripped)

    @cached_property
    def ends(self) -> frozenset[bytes]:
        """The line ends in use: both if they are mixed, none if no line has an end."""
        return frozenset(map(line_end, self.raws)) - {b""}

    def is_unterminated(self, at: int) -> bool:
        """Return True if the line at this index is the last one and has no line feed."""
        return at == len(self.raws) - 1 and not self.terminated

    def edited(self, edits: Iterable[LineEdit]) -> list[bytes]:
        """Return the lines after all edits, which are in the order of the file and do not overlap."""
        lines: list[bytes] = []
        done = 0
        for edit in edits:
            lines += self.raws[done : edit.start]
            if edit.start == len(self.raws) and edit.added and lines and not lines[-1].endswith(b"\n"):
                lines[-1] += edit.end_before
            lines += edit.added
            done = edit.end
        return lines + self.raws[done:]

    def find(self, keys: Sequence[str], most: int = 50) -> list[int]:
        """Return the indices at which these keys are consecutive lines, `most` of them."""
        return _find(keys, self.keys, self.positions, most)

    def find_stripped(self, keys: Sequence[str], most: int = 50) -> list[int]:
        """Return the indices at which these stripped lines are consecutive lines, `most` of them."""
        return _find(keys, self.stripped, self.stripped_positions, most)


def line_end(raw: bytes) -> bytes:
    """Return the line end of a line in bytes: CRLF, LF or nothing."""
    if not raw.endswith(b"\n"):
        return b""
    return b"\r\n" if raw.endswith(b"\r\n") else b"\n"


def key_of(text: str) -> str:
    """Return a line without trailing blanks, the form in which lines are compared."""
    return text.rstrip(_BLANK)


def is_trivial(key: str) -> bool:
    """Return True for a line so common in source files that it identifies no position."""
    bare = key.strip()
    return bare in _TRIVIAL or not any(char.isalnum() for char in bare)


def positions_of(keys: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of each line."""
    found: dict[str, list[int]] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    return found


def _find(wanted: Sequence[str], keys: list[str], positions: dict[str, list[int]], most: int) -> list[int]:
    if not wanted or any(key not in positions for key in wanted):
        return []
    seed = min(range(len(wanted)), key=lambda at: len(positions[wanted[at]]))
    rows = list(wanted)
    size = len(rows)
    # In a file of few different lines many positions almost match. Comparing both ends first rules most of them out.
    found = []
    for at in positions[rows[seed]]:
        start = at - seed
        if start < 0 or start + size > len(keys) or keys[start] != rows[0] or keys[start + size - 1] != rows[-1]:
            continue
        if keys[start : start + size] == rows:
            found.append(start)
            if len(found) >= most:
                break
    return found
