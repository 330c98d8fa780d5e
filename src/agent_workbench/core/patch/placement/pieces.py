"""The parts of hunks that have to be placed, and the places they get."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.patch.file_lines import Ground, key_of
from agent_workbench.core.patch.reader.hunk_bodies import UNSIGNED, LooseHunk, LooseLine

_DOTS = re.compile(r"(?:#|//|/\*|<!--|--|;|%|\[|\()?\s*(?:\.{3}|…)(?:[^.…]*(?:\.{3}|…))?\s*(?:\*/|-->|\]|\))?")
_WORDED = re.compile(r"(?:#|//|/\*|<!--)\s*(?:\.{3}|…)[\w\s,'-]*(?:\.{3}|…)?\s*(?:\*/|-->)?")
EDGE_LINES = 3


class Piece(Struct, frozen=True):
    """A part of a hunk that stands in one row; `number` counts the hunks of the file.

    `start` is the index that the header gives its first old line, None where it gives none; `consistent`: the
    numbers of the file's headers fit together. `after_dots` and `before_dots`: text was left out on that side.
    """

    hunk: LooseHunk
    number: int
    lines: tuple[LooseLine, ...]
    start: int | None
    consistent: bool = False
    after_dots: bool = False
    before_dots: bool = False

    @property
    def old(self) -> tuple[LooseLine, ...]:
        """The lines that must stand in the file."""
        return tuple(line for line in self.lines if line.sign != "+")

    @property
    def keys(self) -> list[str]:
        """The old lines as they are compared."""
        return [key_of(line.text) for line in self.old]

    def marks_fit(self, ground: Ground, start: int) -> bool:
        """Return whether old lines that are marked as having no line feed have none, if the first stands at `start`."""
        return all(line.newline or ground.is_open(at) for at, line in enumerate(self.old, start))

    @property
    def missing(self) -> int:
        """How many old lines the header counts that are not there."""
        numbers = self.hunk.numbers
        return 0 if numbers is None or self.hunk.counted else max(numbers.old_count - len(self.old), 0)

    @property
    def is_whole(self) -> bool:
        """Whether no line before its first change seems to be lost."""
        heads = next((at for at, line in enumerate(self.lines) if not line.is_context), 0)
        return heads >= EDGE_LINES and not self.missing

    @property
    def changes(self) -> bool:
        """Whether it has anything but context."""
        return any(not line.is_context for line in self.lines)


class Placing(Struct, frozen=True):
    """A piece with the file's line for each of its old lines; `cost` counts the damage."""

    piece: Piece
    at: tuple[int, ...]
    cost: float = 0.0
    repairs: tuple[str, ...] = ()
    lines: tuple[LooseLine, ...] | None = None

    @property
    def start(self) -> int:
        """The first line that it covers."""
        return self.at[0] if self.at else 0

    @property
    def end(self) -> int:
        """The index behind the last line that it covers."""
        return self.at[-1] + 1 if self.at else 0

    @property
    def is_confirmed(self) -> bool:
        """Whether the header says that the hunk stands where it does, with the lines it has or those it had."""
        numbers = self.piece.hunk.numbers
        if numbers is None or not self.piece.consistent or self.start != self.piece.start:
            return False
        # A lost line that stays was counted on both sides.
        grows = numbers.new_count - numbers.old_count == self.piece.hunk.added
        return grows and numbers.old_count in {self.end - self.start, len(self.at)}

    @property
    def counts_lost(self) -> bool:
        """Whether the header says that the hunk stands where it does, over as many lines of the file as it does."""
        numbers = self.piece.hunk.numbers
        return self.is_confirmed and numbers is not None and numbers.old_count == self.end - self.start

    @property
    def new_lines(self) -> tuple[LooseLine, ...]:
        """The piece's lines as they are to be taken: as they came, or mended."""
        return self.piece.lines if self.lines is None else self.lines


class Doubt(Exception):
    """Why a placing cannot be certain."""


def piece_of(hunk: LooseHunk, number: int, *, consistent: bool) -> Piece:
    """Return the hunk as one piece, its header's number as a start."""
    start = None if hunk.numbers is None else max(hunk.numbers.old_start - 1, 0)
    return Piece(hunk, number, hunk.lines, start, consistent)


def without_tail(piece: Piece) -> Piece | None:
    """Return the piece without its last lines that have no sign; None where there are none or nothing else."""
    size = len(piece.lines) - piece.hunk.tail
    if not piece.hunk.tail or piece.lines != piece.hunk.lines or not size:
        return None
    return replace(piece, lines=piece.lines[:size])


def without_mark(piece: Piece) -> Piece | None:
    """Return the piece with no old line marked as having no line feed; None where none is."""
    lines = tuple(line if line.sign == "+" else replace(line, newline=True) for line in piece.lines)
    return None if lines == piece.lines else replace(piece, lines=lines)


def split_at_dots(piece: Piece) -> tuple[Piece, ...]:
    """Return the piece's rows between lines that say that text was left out; those without a change are dropped."""
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


def is_dots(line: LooseLine) -> bool:
    """Return whether a line looks like one that stands for others."""
    bare = line.text.strip()
    return bool(_DOTS.fullmatch(bare) or _WORDED.fullmatch(bare))


def is_unsigned(lines: Sequence[LooseLine]) -> bool:
    """Return whether any line lost its sign."""
    return any(line.sign == UNSIGNED for line in lines)
