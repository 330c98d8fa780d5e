"""Pieces of hunks to be placed, and their placements in a file."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.patch.file_lines import FileLines, key_of
from agent_workbench.core.patch.hunk_bodies import UNSIGNED, WrittenHunk, WrittenLine

_DOTS = re.compile(r"(?:#|//|/\*|<!--|--|;|%|\[|\()?\s*(?:\.{3}|…)(?:[^.…]*(?:\.{3}|…))?\s*(?:\*/|-->|\]|\))?")
_WORDED = re.compile(r"(?:#|//|/\*|<!--)\s*(?:\.{3}|…)[\w\s,'-]*(?:\.{3}|…)?\s*(?:\*/|-->)?")
EDGE_LINES = 3


class HunkPiece(Struct, frozen=True):
    """A part of a hunk whose old lines are consecutive in the file; `number` is the index of the hunk in its file.

    `start` is the index of the first old line according to the header, None if the header has no number. `consistent`:
    the numbers of all headers of the file agree with each other. `after_dots`, `before_dots`: dots stand for lines that
    were left out on that side.
    """

    hunk: WrittenHunk
    number: int
    lines: tuple[WrittenLine, ...]
    start: int | None
    consistent: bool = False
    after_dots: bool = False
    before_dots: bool = False

    @property
    def old(self) -> tuple[WrittenLine, ...]:
        """The lines that the file must contain: context and removed lines."""
        return tuple(line for line in self.lines if line.sign != "+")

    @property
    def keys(self) -> list[str]:
        """The old lines without trailing blanks."""
        return [key_of(line.text) for line in self.old]

    def marks_fit(self, file: FileLines, start: int) -> bool:
        """Return True if a marker of a missing line feed is only on the file's last line, with the piece at `start`."""
        return all(line.newline or file.is_unterminated(at) for at, line in enumerate(self.old, start))

    @property
    def missing(self) -> int:
        """The number of old lines that the header counts and the hunk lacks."""
        numbers = self.hunk.numbers
        return 0 if numbers is None or self.hunk.counted else max(numbers.old_count - len(self.old), 0)

    @property
    def is_whole(self) -> bool:
        """True if no context line before the first change seems to be lost."""
        heads = next((at for at, line in enumerate(self.lines) if not line.is_context), 0)
        return heads >= EDGE_LINES and not self.missing

    @property
    def changes(self) -> bool:
        """True if some line is added or removed."""
        return any(not line.is_context for line in self.lines)


class Placement(Struct, frozen=True):
    """A position of a piece: the index in the file of each of its old lines.

    `cost` measures the damage: lost and altered context lines. `lines` are the lines of the piece after a repair, None
    if they are taken as written.
    """

    piece: HunkPiece
    at: tuple[int, ...]
    cost: float = 0.0
    repairs: tuple[str, ...] = ()
    lines: tuple[WrittenLine, ...] | None = None

    @property
    def start(self) -> int:
        """The index of the first line."""
        return self.at[0] if self.at else 0

    @property
    def end(self) -> int:
        """The index after the last line."""
        return self.at[-1] + 1 if self.at else 0

    @property
    def is_confirmed(self) -> bool:
        """True if the header names this position, with the lines of the hunk or with those that it lost."""
        numbers = self.piece.hunk.numbers
        if numbers is None or not self.piece.consistent or self.start != self.piece.start:
            return False
        # A lost context line was counted on both sides.
        grows = numbers.new_count - numbers.old_count == self.piece.hunk.growth
        return grows and numbers.old_count in {self.end - self.start, len(self.at)}

    @property
    def counts_lost(self) -> bool:
        """True if the header names this position and counts as many lines as the placement covers."""
        numbers = self.piece.hunk.numbers
        return self.is_confirmed and numbers is not None and numbers.old_count == self.end - self.start

    @property
    def new_lines(self) -> tuple[WrittenLine, ...]:
        """The lines of the piece, repaired if necessary."""
        return self.piece.lines if self.lines is None else self.lines


class Doubt(Exception):
    """The reason why a placement is not certain."""


def piece_of(hunk: WrittenHunk, number: int, *, consistent: bool) -> HunkPiece:
    """Return the whole hunk as one piece."""
    start = None if hunk.numbers is None else max(hunk.numbers.old_start - 1, 0)
    return HunkPiece(hunk, number, hunk.lines, start, consistent)


def without_tail(piece: HunkPiece) -> HunkPiece | None:
    """Return the piece without the lines at its end that have no sign, None if there are none or no others."""
    size = len(piece.lines) - piece.hunk.tail
    if not piece.hunk.tail or piece.lines != piece.hunk.lines or not size:
        return None
    return replace(piece, lines=piece.lines[:size])


def without_mark(piece: HunkPiece) -> HunkPiece | None:
    """Return the piece without markers of a missing line feed on old lines, None if there are none."""
    lines = tuple(line if line.sign == "+" else replace(line, newline=True) for line in piece.lines)
    return None if lines == piece.lines else replace(piece, lines=lines)


def split_at_dots(piece: HunkPiece) -> tuple[HunkPiece, ...]:
    """Return the parts of the piece between lines of dots, which stand for lines that were left out."""
    dots = [at for at, line in enumerate(piece.lines) if line.is_context and is_dots(line)]
    if not dots:
        return ()
    rows = []
    for begin, end in zip([-1, *dots], [*dots, len(piece.lines)], strict=True):
        lines = piece.lines[begin + 1 : end]
        if not lines:
            continue
        first, last = begin == -1, end == len(piece.lines)
        rows.append(replace(piece, lines=lines, start=piece.start if first else None,
                            after_dots=not first, before_dots=not last))  # fmt: skip
    return tuple(rows)


def is_dots(line: WrittenLine) -> bool:
    """Return True if a line seems to stand for lines that were left out."""
    bare = line.text.strip()
    return bool(_DOTS.fullmatch(bare) or _WORDED.fullmatch(bare))


def is_unsigned(lines: Sequence[WrittenLine]) -> bool:
    """Return True if any line has no sign."""
    return any(line.sign == UNSIGNED for line in lines)
