"""Candidate positions of a piece: exact matches, then repairs of signs, indents and context."""

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import FileLines, is_trivial, key_of
from agent_workbench.core.patch.fuzzy_placement import MARGIN, placements_at, search
from agent_workbench.core.patch.hunk_bodies import WrittenLine
from agent_workbench.core.patch.hunk_pieces import (
    Doubt,
    HunkPiece,
    PieceEdit,
    Placement,
    applied_line,
    edits_of,
    is_unsigned,
    piece_name,
    position_error,
    split_at_dots,
    without_mark,
    without_tail,
)
from agent_workbench.core.patch.paths import shown

_MOST_DAMAGE = 2.0
_ENOUGH_LINES = 3
_MOST_KEPT = 50

_LEADING = re.compile(r"[ \t]*")
_WIDTHS = (2, 3, 4, 8)

Rule = Callable[[str], str | None]


class PieceCandidates(Struct, frozen=True):
    """A piece with its candidate placements, at least one. `exact`: its lines match there without a repair."""

    piece: HunkPiece
    placements: tuple[Placement, ...]
    exact: bool


class Locator:
    """Finds candidate positions in one file. `literal`: exact matches only.

    `unsigned`: some line of the diff has no sign.
    """

    def __init__(self, path: str, file: FileLines, *, literal: bool = False, unsigned: bool = False) -> None:
        self.path = path
        self.unsigned = unsigned
        self.file = file
        self.literal = literal

    def candidates(self, piece: HunkPiece) -> tuple[PieceCandidates, ...]:
        """Return the candidates of the piece, or of each of its parts between dots.

        Raises `PatchError` if there is no position, or none that is certain.
        """
        whole = self._exact(piece)
        if whole is not None:
            return (whole,)
        if self.literal:
            raise position_error(self.path, piece, self.file)
        rows = [row for row in split_at_dots(piece) if row.changes]
        if not rows:
            return (self._repaired(piece),)
        try:
            return (self._repaired(piece),)
        except PatchError:
            return self._rows(rows)

    def _exact(self, piece: HunkPiece) -> PieceCandidates | None:
        for each in filter(None, (piece, without_tail(piece))):
            placements = exact_placements(each, self.file)
            if placements:
                return PieceCandidates(each, tuple(placements), exact=True)
        return None

    def _rows(self, rows: list[HunkPiece]) -> tuple[PieceCandidates, ...]:
        candidates = []
        for row in rows:
            candidate = self._exact(row)
            if candidate is None:
                raise position_error(self.path, row, self.file)
            repair = "the lines that dots stood for were kept"
            candidates.append(
                replace(candidate, placements=tuple(replace(each, repairs=(repair,)) for each in candidate.placements))
            )
        return tuple(candidates)

    def _repaired(self, piece: HunkPiece) -> PieceCandidates:
        if line := applied_line(piece, self.file):
            raise PatchError(
                f"{shown(self.path)}: {piece_name(piece)} seems to be applied already: "
                f"its new lines stand at line {line}",
                advice="Look at the file as it is now, and leave out what is done.",
            )
        doubts: list[str] = []
        for find in (self._unsigned, reindented, self._damaged):
            for each in filter(None, (piece, without_tail(piece))):
                try:
                    placements = find(each, self.file)
                except Doubt as doubt:
                    doubts.append(str(doubt))
                    continue
                if placements:
                    return PieceCandidates(each, tuple(placements), exact=False)
        raise position_error(self.path, piece, self.file, doubts)

    def _unsigned(self, piece: HunkPiece, file: FileLines) -> list[Placement]:
        if not self.unsigned and not any(line.sign == "-" and line.text.strip() for line in piece.lines):
            return []  # All lines may lack a space, the added ones too.
        return unsigned_placements(piece, file)

    def _damaged(self, piece: HunkPiece, file: FileLines) -> list[Placement]:
        return [certain_placement(piece, file)]


def exact_placements(piece: HunkPiece, file: FileLines) -> list[Placement]:
    """Return the positions of the old lines: exact ones or, if there is none, those that differ in trailing blanks."""
    old = piece.old
    if not old:
        return [Placement(piece, ())] if not len(file) else []
    texts = [line.text for line in old]
    found = []
    literal = []
    for start in file.find(piece.keys, _MOST_KEPT):
        end = start + len(old)
        if not piece.marks_fit(file, start):
            continue
        placement = Placement(piece, tuple(range(start, end)))
        found.append(placement)
        if file.texts[start:end] == texts and (not file.is_unterminated(end - 1) or not old[-1].newline):
            literal.append(placement)
    return literal or found


def unsigned_placements(piece: HunkPiece, file: FileLines) -> list[Placement]:
    """Return the positions of the piece if context lines lost their sign, a space."""
    old = piece.old
    forms = [tuple(map(key_of, line.forms)) for line in old]
    counts = [sum(len(file.positions.get(form, ())) for form in ways) for ways in forms]
    if not old or not all(counts):
        return []
    shown_lost = is_unsigned(piece.lines)
    if not shown_lost and len(file.find_stripped([key.strip() for key in piece.keys], 2)) != 1:
        return []  # Only the indent tells that a sign was lost, and lines with other indents match as well.
    seed = min(range(len(old)), key=counts.__getitem__)
    starts = sorted({at - seed for form in forms[seed] for at in file.positions.get(form, ())})
    found = []
    for start in starts[: _MOST_KEPT * 20]:
        rows = file.keys[start : start + len(old)] if start >= 0 and piece.marks_fit(file, start) else []
        if len(rows) == len(old) and all(row in ways for row, ways in zip(rows, forms, strict=True)):
            _check_signs(piece, file)
            repair = "context lines lacked the space before them"
            found.append(Placement(piece, tuple(range(start, start + len(old))), 0.0, (repair,)))
    return found


def _check_signs(piece: HunkPiece, file: FileLines) -> None:
    """Raise `Doubt` if a changed line may be context that begins with `+` or `-` and lost the space before it."""
    for line in piece.lines:
        if not line.is_context and key_of(line.sign + line.text) in file.positions and line.text.strip():
            raise Doubt("whether a line is context or changed is not certain")


def certain_placement(piece: HunkPiece, file: FileLines) -> Placement:
    """Return the only position of a piece with lost or altered context; raise `Doubt` if it is not certain."""
    found = search(piece, file, _MOST_DAMAGE + MARGIN)
    if found.crowded:
        raise Doubt("its lines stand in too many places")
    if not found.placements or found.placements[0].cost > _MOST_DAMAGE:
        raise Doubt("too few of its lines stand together")
    ways: dict[tuple[PieceEdit, ...], Placement] = {}
    problem: Doubt | None = None
    best = found.placements[0]
    for placement in found.placements:
        if placement.cost > best.cost and best.is_confirmed:
            break  # The header confirms the best one, too.
        try:
            ways.setdefault(edits_of(placement, file, settle=True), placement)
        except Doubt as doubt:
            # An alignment without a meaning competes with the best one only if its cost is as low.
            if placement.cost <= best.cost:
                problem = doubt
    if problem is not None:
        raise problem
    if len(ways) != 1:
        raise Doubt("it could stand in several places")
    best = next(iter(ways.values()))
    _check_anchored(best, file)
    return replace(best, repairs=_repairs(best, file))


def _check_anchored(placement: Placement, file: FileLines) -> None:
    """Raise `Doubt` unless the header confirms the position and enough distinctive lines match there exactly.

    Without a correct header, similar code elsewhere cannot be ruled out.
    """
    if not placement.is_confirmed:
        raise Doubt("its lines do not fit to the letter, and the header's numbers do not say that they stand there")
    distinctive = 0
    for line, key, at in zip(placement.piece.old, placement.piece.keys, placement.at, strict=True):
        found = file.keys[at]
        if found == key or found in map(key_of, line.forms):
            distinctive += not is_trivial(key)
        elif not is_trivial(key) and key in file.positions:
            raise Doubt("a context line that does not fit there stands elsewhere in the file")
    if distinctive < (1 if placement.cost <= 1 else _ENOUGH_LINES):
        raise Doubt("too few of its lines tell the place")


def _lost(placement: Placement) -> int:
    return placement.end - placement.start - len(placement.at)


def _repairs(placement: Placement, file: FileLines) -> tuple[str, ...]:
    altered = 0
    for key, line, at in zip(placement.piece.keys, placement.piece.old, placement.at, strict=True):
        same = file.keys[at] == key or file.keys[at] in map(key_of, line.forms)
        altered += not same or not (line.newline or file.is_unterminated(at))
    lost = _lost(placement)
    repairs = []
    if altered:
        repairs.append(f"{_lines(altered)} of context read otherwise in the file, which was kept as it is")
    if lost:
        repairs.append(f"{_lines(lost)} of context {'was' if lost == 1 else 'were'} missing between the others")
    return tuple(repairs)


def _lines(count: int) -> str:
    return "one line" if count == 1 else f"{count} lines"


def contradicts(placement: Placement, file: FileLines) -> bool:
    """Return True if the position in the header fits too: with lost context lines, or because it is applied already.

    Then the exact match at another position may be a coincidence.
    """
    piece = placement.piece
    start = piece.start
    is_there = start == placement.start
    if start is None or start >= len(file) or (is_there and not piece.missing):
        return False
    here = _edits(placement, file)
    for other in placements_at(piece, file, start, _MOST_DAMAGE):
        only_lost = all(file.keys[at] == key for at, key in zip(other.at, piece.keys, strict=True))
        # At the same position only a placement with the line count of the header is better.
        explains = other.start == start and (not is_there or other.counts_lost)
        if only_lost and explains and _edits(other, file) != here:
            return True
    if is_there:
        return False
    stripped = [key.strip() for key in piece.keys]
    return file.stripped[start : start + len(stripped)] == stripped or applied_line(piece, file) == start + 1


def may_mark_another(placement: Placement, file: FileLines) -> bool:
    """Return True if a marker of a missing line feed may belong to a line that was lost before it.

    Then the marker follows the line above, and the hunk wrongly seems to end at the end of the file.
    """
    piece = placement.piece
    bare = without_mark(piece)
    lost = max(piece.missing, int(placement.cost), int(piece.start not in {None, placement.start}))
    if bare is None or not lost:
        return False
    here = _edits(placement, file)
    last = len(file) - 1 - len(piece.old)
    return any(
        other.end < len(file) and other.cost + len(file) - other.end <= lost and _edits(other, file) != here
        for other in placements_at(bare, file, last, min(lost, _MOST_DAMAGE))
    )


def _edits(placement: Placement, file: FileLines) -> tuple[PieceEdit, ...] | None:
    try:
        return edits_of(placement, file)
    except Doubt:
        return None


def reindented(piece: HunkPiece, file: FileLines) -> list[Placement]:
    """Return the placements of a piece whose indents a rule converts into those of the file, with converted lines.

    Raises `Doubt` if several rules fit the old lines and indent an added line differently.
    """
    old = piece.old
    found = file.find_stripped([line.text.strip() for line in old])
    placements = []
    for start in found:
        if not piece.marks_fit(file, start):
            continue
        pairs = [
            (_indent(line.text), _indent(body))
            for line, body in zip(old, file.texts[start : start + len(old)], strict=True)
            if line.text.strip()
        ]
        if not any(line.sign == "-" and line.text.strip() for line in old) and _by_odd_blanks(pairs):
            continue  # One of the spaces may be the sign of a context line that was lost.
        rules = [rule for rule in _rules(pairs) if all(rule(written) == actual for written, actual in pairs)]
        if rules and len(pairs) > 1:
            _check_blanks(piece, file.texts[start : start + len(old)])
            lines = tuple(_converted(line, rules, file) for line in piece.lines)
            repair = "its lines were indented as those of the file are"
            at = tuple(range(start, start + len(old)))
            placements.append(Placement(piece, at, 0.0, (repair,), lines))
    return placements


def _by_odd_blanks(pairs: Sequence[tuple[str, str]]) -> bool:
    return any((len(actual) - len(written)) % 2 and "\t" not in written + actual for written, actual in pairs)


def _check_blanks(piece: HunkPiece, bodies: Sequence[str]) -> None:
    """Raise `Doubt` if the conversion affects lines that are blank but not empty."""
    added = [line.text for line in piece.lines if line.sign == "+" and not line.text.strip()]
    lost = any(body and not body.strip() and body != line.text for line, body in zip(piece.old, bodies, strict=True))
    if any(added) or (added and lost):
        raise Doubt("which blanks an added line has is not certain")


def _rules(pairs: Sequence[tuple[str, str]]) -> Iterator[Rule]:
    """Yield rules that may convert the written indents into those of the file."""
    written, actual = next(((a, b) for a, b in pairs if a or b), ("", ""))
    if actual.endswith(written):
        more = actual.removesuffix(written) if written else actual
        yield lambda indent: more + indent
    if written.endswith(actual):
        less = written.removesuffix(actual) if actual else written
        yield lambda indent: indent.removeprefix(less) if indent.startswith(less) else None
    for width in _WIDTHS:
        yield _spaced(width)
        yield _tabbed(width)
        yield _expanded(width)
        for other in _WIDTHS:
            if other != width:
                yield _scaled(width, other)


def _spaced(width: int) -> Rule:
    return lambda indent: indent.replace("\t", " " * width)


def _expanded(width: int) -> Rule:
    return lambda indent: indent.expandtabs(width)


def _tabbed(width: int) -> Rule:
    return lambda indent: indent.replace(" " * width, "\t")


def _scaled(width: int, other: int) -> Rule:
    def rule(indent: str) -> str | None:
        if "\t" in indent or len(indent) % width:
            return None
        return " " * (len(indent) // width * other)

    return rule


def _converted(line: WrittenLine, rules: Sequence[Rule], file: FileLines) -> WrittenLine:
    if line.sign != "+" or not line.text.strip():
        return line
    indent = _indent(line.text)
    ways = {rule(indent) for rule in rules}
    only = ways.pop()
    if ways or only is None:
        raise Doubt("how an added line is to be indented is not certain")
    if (
        "\t" in only
        and "\t" not in indent
        and _has_inner_blanks(line.text)
        and any("\t" in b.strip() for b in file.texts)
    ):
        raise Doubt("an added line may have had tabs inside")
    return replace(line, text=only + line.text[len(indent) :])


def _has_inner_blanks(text: str) -> bool:
    return "  " in text.strip()


def _indent(text: str) -> str:
    match = _LEADING.match(text)
    return match[0] if match else ""
