"""Every place where a piece of a hunk may stand, from those to the letter to those with a line lost or altered."""

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import Ground, is_trivial, key_of
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.edits import Edit, edits_of
from agent_workbench.core.patch.placement.fuzzy import MARGIN, placings_at, search
from agent_workbench.core.patch.placement.indentation import reindented
from agent_workbench.core.patch.placement.nearest import already_there, nowhere, piece_name
from agent_workbench.core.patch.placement.pieces import (
    Doubt,
    Piece,
    Placing,
    is_unsigned,
    split_at_dots,
    without_mark,
    without_tail,
)

_MOST_DAMAGE = 2.0
_ENOUGH_LINES = 3
_MOST_KEPT = 50


class Spot(Struct, frozen=True):
    """A piece and where it may stand; `placings` is never empty. `exact`: its lines stand there as they are."""

    piece: Piece
    placings: tuple[Placing, ...]
    exact: bool


class Locator:
    """Looks for the pieces of one file's hunks; `literal` takes nothing but lines that stand as they are.

    `unsigned` says that lines of some hunk of the diff have no sign.
    """

    def __init__(self, path: str, ground: Ground, *, literal: bool = False, unsigned: bool = False) -> None:
        self.path = path
        self.unsigned = unsigned
        self.ground = ground
        self.literal = literal

    def spots(self, piece: Piece) -> tuple[Spot, ...]:
        """Return where the piece may stand, or each of its rows between dots.

        Raises `PatchError` if it stands nowhere, or nowhere for certain.
        """
        whole = self._exact(piece)
        if whole is not None:
            return (whole,)
        if self.literal:
            raise nowhere(self.path, piece, self.ground)
        rows = [row for row in split_at_dots(piece) if row.changes]
        if not rows:
            return (self._mended(piece),)
        try:
            return (self._mended(piece),)
        except PatchError:
            return self._rows(rows)

    def _exact(self, piece: Piece) -> Spot | None:
        for each in filter(None, (piece, without_tail(piece))):
            placings = exact_placings(each, self.ground)
            if placings:
                return Spot(each, tuple(placings), exact=True)
        return None

    def _rows(self, rows: list[Piece]) -> tuple[Spot, ...]:
        spots = []
        for row in rows:
            spot = self._exact(row)
            if spot is None:
                raise nowhere(self.path, row, self.ground)
            said = "the lines that dots stood for were kept"
            spots.append(replace(spot, placings=tuple(replace(each, repairs=(said,)) for each in spot.placings)))
        return tuple(spots)

    def _mended(self, piece: Piece) -> Spot:
        if line := already_there(piece, self.ground):
            raise PatchError(
                f"{shown(self.path)}: {piece_name(piece)} seems to be applied already: "
                f"its new lines stand at line {line}",
                advice="Look at the file as it is now, and leave out what is done.",
            )
        doubts: list[str] = []
        for find in (self._unsigned, reindented, self._damaged):
            for each in filter(None, (piece, without_tail(piece))):
                try:
                    placings = find(each, self.ground)
                except Doubt as doubt:
                    doubts.append(str(doubt))
                    continue
                if placings:
                    return Spot(each, tuple(placings), exact=False)
        raise nowhere(self.path, piece, self.ground, doubts)

    def _unsigned(self, piece: Piece, ground: Ground) -> list[Placing]:
        if not self.unsigned and not any(line.sign == "-" and line.text.strip() for line in piece.lines):
            return []  # then all lines may lack a blank, the added ones, too
        return unsigned_placings(piece, ground)

    def _damaged(self, piece: Piece, ground: Ground) -> list[Placing]:
        return [certain_placing(piece, ground)]


def exact_placings(piece: Piece, ground: Ground) -> list[Placing]:
    """Return where the piece's old lines stand: to the byte or, where they do nowhere, but for what is blank behind."""
    old = piece.old
    if not old:
        return [Placing(piece, ())] if not len(ground) else []
    texts = [line.text for line in old]
    found = []
    literal = []
    for start in ground.find(piece.keys, _MOST_KEPT):
        end = start + len(old)
        if not piece.marks_fit(ground, start):
            continue
        placing = Placing(piece, tuple(range(start, end)))
        found.append(placing)
        if ground.bodies[start:end] == texts and (not ground.is_open(end - 1) or not old[-1].newline):
            literal.append(placing)
    return literal or found


def unsigned_placings(piece: Piece, ground: Ground) -> list[Placing]:
    """Return where the piece stands if context lines lost their first blank."""
    old = piece.old
    forms = [tuple(map(key_of, line.forms)) for line in old]
    counts = [sum(len(ground.places.get(form, ())) for form in ways) for ways in forms]
    if not old or not all(counts):
        return []
    shown_lost = is_unsigned(piece.lines)
    if not shown_lost and len(ground.find_stripped([key.strip() for key in piece.keys], 2)) != 1:
        return []  # nothing but the depth says that a blank was lost, and there are other depths
    seed = min(range(len(old)), key=counts.__getitem__)
    starts = sorted({at - seed for form in forms[seed] for at in ground.places.get(form, ())})
    found = []
    for start in starts[: _MOST_KEPT * 20]:
        rows = ground.keys[start : start + len(old)] if start >= 0 and piece.marks_fit(ground, start) else []
        if len(rows) == len(old) and all(row in ways for row, ways in zip(rows, forms, strict=True)):
            _check_signs(piece, ground)
            said = "context lines lacked the space before them"
            found.append(Placing(piece, tuple(range(start, start + len(old))), 0.0, (said,)))
    return found


def _check_signs(piece: Piece, ground: Ground) -> None:
    """Raise `Doubt` where a changed line may be context that begins with a sign and lost the space before it."""
    for line in piece.lines:
        if not line.is_context and key_of(line.sign + line.text) in ground.places and line.text.strip():
            raise Doubt("whether a line is context or changed is not certain")


def certain_placing(piece: Piece, ground: Ground) -> Placing:
    """Return the one place where the piece stands but for lost or altered context; raise `Doubt` for any other."""
    found = search(piece, ground, _MOST_DAMAGE + MARGIN)
    if found.crowded:
        raise Doubt("its lines stand in too many places")
    if not found.placings or found.placings[0].cost > _MOST_DAMAGE:
        raise Doubt("too few of its lines stand together")
    ways: dict[tuple[Edit, ...], Placing] = {}
    problem: Doubt | None = None
    best = found.placings[0]
    for placing in found.placings:
        if placing.cost > best.cost and best.is_confirmed:
            break  # the header speaks for the best one, too
        try:
            ways.setdefault(edits_of(placing, ground, settle=True), placing)
        except Doubt as doubt:
            # A worse alignment that means nothing is no rival; as good a one as the best is.
            if placing.cost <= best.cost:
                problem = doubt
    if problem is not None:
        raise problem
    if len(ways) != 1:
        raise Doubt("it could stand in several places")
    best = next(iter(ways.values()))
    _check_anchored(best, ground)
    return replace(best, repairs=_told(best, ground))


def _check_anchored(placing: Placing, ground: Ground) -> None:
    """Raise `Doubt` unless the header's numbers speak for the place, and lines that tell it stand there as they are.

    Without a true header another thing that looks much like the one that is meant cannot be told from it.
    """
    if not placing.is_confirmed:
        raise Doubt("its lines do not fit to the letter, and the header's numbers do not say that they stand there")
    telling = 0
    for line, key, at in zip(placing.piece.old, placing.piece.keys, placing.at, strict=True):
        there = ground.keys[at]
        if there == key or there in map(key_of, line.forms):
            telling += not is_trivial(key)
        elif not is_trivial(key) and key in ground.places:
            raise Doubt("a context line that does not fit there stands elsewhere in the file")
    if telling < (1 if placing.cost <= 1 else _ENOUGH_LINES):
        raise Doubt("too few of its lines tell the place")


def _lost(placing: Placing) -> int:
    return placing.end - placing.start - len(placing.at)


def _told(placing: Placing, ground: Ground) -> tuple[str, ...]:
    altered = 0
    for key, line, at in zip(placing.piece.keys, placing.piece.old, placing.at, strict=True):
        same = ground.keys[at] == key or ground.keys[at] in map(key_of, line.forms)
        altered += not same or not (line.newline or ground.is_open(at))
    lost = _lost(placing)
    said = []
    if altered:
        said.append(f"{_lines(altered)} of context read otherwise in the file, which was kept as it is")
    if lost:
        said.append(f"{_lines(lost)} of context {'was' if lost == 1 else 'were'} missing between the others")
    return tuple(said)


def _lines(count: int) -> str:
    return "one line" if count == 1 else f"{count} lines"


def contradicts(placing: Placing, ground: Ground) -> bool:
    """Return whether the header's own place would be right if lines of context were lost, or is changed already.

    Then the place that was found fits as it is by accident only.
    """
    piece = placing.piece
    start = piece.start
    is_there = start == placing.start
    if start is None or start >= len(ground) or (is_there and not piece.missing):
        return False
    here = _edits(placing, ground)
    for other in placings_at(piece, ground, start, _MOST_DAMAGE):
        only_lost = all(ground.keys[at] == key for at, key in zip(other.at, piece.keys, strict=True))
        # At one place with the other, only what has the header's count of lines is better.
        explains = other.start == start and (not is_there or other.counts_lost)
        if only_lost and explains and _edits(other, ground) != here:
            return True
    if is_there:
        return False
    stripped = [key.strip() for key in piece.keys]
    return ground.stripped[start : start + len(stripped)] == stripped or already_there(piece, ground) == start + 1


def may_mark_another(placing: Placing, ground: Ground) -> bool:
    """Return whether a marker of a missing last line feed may belong to a line that was lost before it.

    It then stands behind the line above, and the hunk seems to end where the file does.
    """
    piece = placing.piece
    bare = without_mark(piece)
    lost = max(piece.missing, int(placing.cost), int(piece.start not in {None, placing.start}))
    if bare is None or not lost:
        return False
    here = _edits(placing, ground)
    last = len(ground) - 1 - len(piece.old)
    return any(
        other.end < len(ground) and other.cost + len(ground) - other.end <= lost and _edits(other, ground) != here
        for other in placings_at(bare, ground, last, min(lost, _MOST_DAMAGE))
    )


def _edits(placing: Placing, ground: Ground) -> tuple[Edit, ...] | None:
    try:
        return edits_of(placing, ground)
    except Doubt:
        return None
