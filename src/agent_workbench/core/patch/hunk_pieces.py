"""Pieces of hunks to be placed: their placements, the edits where these are certain, errors where they are not."""

import re
from collections.abc import Callable, Sequence
from operator import eq

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import FileLines, is_trivial, key_of
from agent_workbench.core.patch.hunk_bodies import UNSIGNED, WrittenHunk, WrittenLine
from agent_workbench.core.patch.paths import shown

_DOTS = re.compile(r"(?:#|//|/\*|<!--|--|;|%|\[|\()?\s*(?:\.{3}|…)(?:[^.…]*(?:\.{3}|…))?\s*(?:\*/|-->|\]|\))?")
_WORDED = re.compile(r"(?:#|//|/\*|<!--)\s*(?:\.{3}|…)[\w\s,'-]*(?:\.{3}|…)?\s*(?:\*/|-->)?")
EDGE_LINES = 3

_OFTEN = 500
_MOST_LINES = 200
_WORD = re.compile(r"\w+")
ADVICE = "Give the old lines exactly as they stand in the file, with enough context to be found in one place only."


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


class PieceEdit(Struct, frozen=True):
    """Replacement of lines `start` to `end` (exclusive) of the file by the lines `added`."""

    start: int
    end: int
    added: tuple[WrittenLine, ...]


def edits_of(placement: Placement, file: FileLines, *, settle: bool = False) -> tuple[PieceEdit, ...]:
    """Return the edits of a placement; raise `Doubt` if the position of an added line is not certain.

    `settle`: the number of context lines may decide on which side of a change a lost line was.
    """
    edits = []
    lines = placement.new_lines
    at = 0
    seen = 0
    while at < len(lines):
        if lines[at].is_context:
            seen += 1
            at += 1
            continue
        end = at
        while end < len(lines) and not lines[end].is_context:
            end += 1
        block = lines[at:end]
        removed = sum(line.sign == "-" for line in block)
        edits.append(_edit(_ChangedLines(placement, file, block, at, end, seen, seen + removed), settle=settle))
        seen += removed
        at = end
    return tuple(edits)


class _ChangedLines(Struct, frozen=True):
    """Consecutive changed lines: `first` to `last` of the lines of the piece, `old` to `old_end` of its old lines."""

    placement: Placement
    file: FileLines
    lines: tuple[WrittenLine, ...]
    first: int
    last: int
    old: int
    old_end: int

    @property
    def before(self) -> int | None:
        """The index in the file of the old line before the block."""
        return self.placement.at[self.old - 1] if self.old else None

    @property
    def behind(self) -> int | None:
        """The index in the file of the old line after the block."""
        return self.placement.at[self.old_end] if self.old_end < len(self.placement.at) else None


def _edit(block: _ChangedLines, *, settle: bool) -> PieceEdit:
    at = block.placement.at
    added = tuple(line for line in block.lines if line.sign == "+")
    places = at[block.old : block.old_end]
    if places and places[-1] - places[0] != len(places) - 1:
        raise Doubt("other lines stand between the removed ones")
    if not added:
        return PieceEdit(places[0], places[-1] + 1, ())
    leads, trails = block.lines[0].sign == "+", block.lines[-1].sign == "+"
    if places:
        start, end = places[0], places[-1] + 1
        if leads:
            _check_before(block, start, settle=settle)
        if trails:
            _check_behind(block, end, settle=settle)
        return PieceEdit(start, end, added)
    return _insertion(block, added, settle=settle)


def _insertion(block: _ChangedLines, added: tuple[WrittenLine, ...], *, settle: bool) -> PieceEdit:
    start = block.before + 1 if block.before is not None else block.behind
    if start is None:
        if len(block.file):
            raise Doubt("a hunk that only adds lines does not say where")
        return PieceEdit(0, 0, added)
    if block.before is not None and block.behind is not None and block.before + 1 != block.behind:
        # The header counts the lost line. The side that is one line short tells where it was.
        if not (settle and block.placement.counts_lost):
            raise Doubt("a lost line may have stood before or behind the added ones")
        start = block.before + 1 if _balanced(block, before=False) else block.behind
        if start == block.behind and not _balanced(block, before=True):
            raise Doubt("a lost line may have stood before or behind the added ones")
        return PieceEdit(start, start, added)
    _check_before(block, start, settle=False)
    _check_behind(block, start, settle=False)
    return PieceEdit(start, start, added)


def _check_before(block: _ChangedLines, start: int, *, settle: bool) -> None:
    """Raise `Doubt` if a line may be lost between the added lines and the context before them."""
    if not block.old:
        _check_new(block, max(start - len(block.lines), 0), start)
        # The header of a hunk at the beginning would say so.
        says = block.placement.piece.consistent and block.placement.piece.start == start
        if (
            not says
            and not block.placement.piece.after_dots
            and _may_lack(start, block.placement.new_lines[::-1], block)
        ):
            raise Doubt("a line may be lost between the file's beginning and the added ones")
    elif block.before != start - 1 and not (settle and _balanced(block, before=True)):
        raise Doubt("a lost line may have stood before or behind the added ones")


def _check_behind(block: _ChangedLines, end: int, *, settle: bool) -> None:
    """Raise `Doubt` if a line may be lost between the added lines and the context after them."""
    if block.old_end == len(block.placement.at):
        _check_new(block, end, end + len(block.lines))
        left = len(block.file) - end
        if not block.placement.piece.before_dots and _may_lack(left, block.placement.new_lines, block):
            raise Doubt("a line may be lost between the added ones and the file's end")
    elif block.behind != end and not (settle and _balanced(block, before=False)):
        raise Doubt("a lost line may have stood before or behind the added ones")


def _check_new(block: _ChangedLines, start: int, end: int) -> None:
    """Raise `Doubt` if these lines of the file equal the added ones: the diff may be applied already."""
    if all(line.sign == "+" for line in block.lines):
        added = [key_of(line.text) for line in block.lines]
        if any(added) and block.file.keys[start:end] == added:
            raise Doubt("it seems to be applied already: the lines that it adds stand there")


def _may_lack(distance: int, lines: tuple[WrittenLine, ...], block: _ChangedLines) -> bool:
    """Return True if a hunk without context on one side may have lost a line at that edge of the file.

    `distance` is the number of lines up to the edge. Diffs usually have three lines of context: if the other side and
    the lines up to the edge are three together, the latter may be lost context.
    """
    heads = next((at for at, line in enumerate(lines) if not line.is_context), 0)
    # In a block that replaces lines, a line may be lost whatever the context on the other side.
    is_only = heads + len(block.lines) == len(lines) and all(line.sign == "+" for line in block.lines)
    if is_only and heads >= EDGE_LINES:
        return False  # The other side is complete, so the added lines follow it directly.
    if 0 < distance <= block.placement.piece.missing:
        return True
    # A diff without any context has lost none.
    return distance == 1 and (heads == EDGE_LINES - 1 if is_only else heads > 0)


def _balanced(block: _ChangedLines, *, before: bool) -> bool:
    """Return True if the lost line belongs to the context at this end of the hunk.

    Diffs usually have three lines of context on both sides. With three on one side and two on the other, the shorter
    side lost one.
    """
    placement = block.placement
    if placement.start == 0 if before else placement.end == len(block.file):
        return False
    lines = block.placement.new_lines
    heads = next((at for at, line in enumerate(lines) if not line.is_context), 0)
    tails = next((at for at, line in enumerate(reversed(lines)) if not line.is_context), 0)
    outer = heads == block.first if before else len(lines) - tails == block.last
    short, whole = (heads, tails) if before else (tails, heads)
    return outer and (short, whole) == (EDGE_LINES - 1, EDGE_LINES)


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
