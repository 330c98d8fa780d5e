"""Fit of a diff to the files: read, placed hunk by hunk and applied if its meaning is certain, refused if not."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.application import apply_patch, place_constrained, with_positions
from agent_workbench.core.patch.diff_targets import Target
from agent_workbench.core.patch.file_lines import FileLines, LineEdit, is_trivial
from agent_workbench.core.patch.hunk_bodies import WrittenHunk, WrittenLine
from agent_workbench.core.patch.hunk_locator import Locator, PieceCandidates, contradicts, may_mark_another
from agent_workbench.core.patch.hunk_pieces import (
    EDGE_LINES,
    Doubt,
    HunkPiece,
    PieceEdit,
    Placement,
    edits_of,
    is_unsigned,
    piece_name,
    piece_of,
    position_error,
)
from agent_workbench.core.patch.patch_reader import (
    ConstrainedDiff,
    DiffReading,
    DiffReadings,
    check_text,
    checked_patch,
    file_patch,
)
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileChange, FileContent, FileOperation, Patch, PatchBounds

Preimages = Mapping[str, FileContent | None]
"""The content of each path, None for a path without a file."""

_PLACES_NAMED = 5
_WITNESSES = 2
_NO_SCOPE = frozenset({"import", "from", "#include", "include", "use", "using", "require", "package", "export"})

Placed = tuple[Placement, tuple[PieceEdit, ...]]


class Fit(Struct, frozen=True):
    """A diff that fits the files: its patch, the change of each path, and one sentence for each repair."""

    patch: Patch
    changes: tuple[FileChange, ...]
    repairs: tuple[str, ...]


def fit_diff(diff: DiffReadings, preimages: Preimages, existing: Collection[str] = ()) -> Fit:
    """Return the changes that a diff makes to the files; the first interpretation that fits counts.

    `preimages` holds all paths of the diff. Raises `PatchError` unless every hunk has one certain position.
    """
    first: PatchError | None = None
    for reading in diff.readings:
        try:
            return _fit_reading(reading, preimages, existing)
        except PatchError as error:
            first = first or error
    raise first or PatchError("the diff is empty", advice="Give at least one file with one hunk.")


def fit_constrained_diff(
    diff: ConstrainedDiff, bounds: PatchBounds, preimages: Preimages, existing: Collection[str]
) -> Fit | None:
    """Return the changes of a diff that the grammar for these files admitted, None for any other diff.

    `preimages` holds the `old_paths` of the diff. Raises `PatchError` for faults that a grammar cannot prevent: a diff
    out of `bounds`, or one that changes nothing.
    """
    placed = [_with_positions(target, preimages) for target in diff.targets]
    found = tuple(target for target in placed if target is not None)
    if len(found) < len(placed):
        return None
    check_text(diff.text, bounds)
    patch = checked_patch(tuple(map(file_patch, found)), bounds)
    before = {path: preimages.get(path) for path in patch.paths}
    return Fit(patch, apply_patch(patch, before, existing, place_constrained), ())


def _with_positions(target: Target, preimages: Preimages) -> Target | None:
    content = FileContent(b"") if target.operation is FileOperation.CREATE else preimages.get(target.old_path)
    if content is None or b"\0" in content.data:
        return None
    return with_positions(target, FileLines(content.data))


def _fit_reading(reading: DiffReading, preimages: Preimages, existing: Collection[str]) -> Fit:
    unsigned = any(is_unsigned(hunk.lines) for target in reading.targets for hunk in target.hunks)
    placers = {
        target.path: FilePlacer(target, literal=reading.translated, unsigned=unsigned) for target in reading.targets
    }
    changes = apply_patch(reading.patch, preimages, existing, lambda file, lines: placers[file.path].place(lines))
    repairs = list(reading.repairs)
    if any(placer.moved for placer in placers.values()):
        repairs.append("line numbers or counts in the headers of hunks were set right")
    repairs += (repair for placer in placers.values() for repair in placer.repairs)
    return Fit(reading.patch, changes, tuple(dict.fromkeys(repairs)))


class FilePlacer:
    """Places the hunks of one file.

    After `place`, `repairs` holds one sentence for each repair, and `moved` is True if the numbers or counts of a hunk
    header were wrong.
    """

    def __init__(self, target: Target, *, literal: bool, unsigned: bool) -> None:
        """Set the placer up. `literal`: lines must match exactly. `unsigned`: some line of the diff has no sign."""
        self._target = target
        self._literal = literal or target.guessed
        self._unsigned = unsigned
        self.repairs: tuple[str, ...] = ()
        self.moved = False

    def place(self, lines: FileLines) -> tuple[LineEdit, ...]:
        """Return the edits of the file; raise `PatchError` unless each hunk has one certain position."""
        path, hunks = self._target.old_path, self._target.hunks
        consistent = are_consistent(hunks)
        locator = Locator(path, lines, literal=self._literal, unsigned=self._unsigned)
        candidates = [
            each
            for number, hunk in enumerate(hunks)
            for each in locator.candidates(piece_of(hunk, number, consistent=consistent))
        ]
        placements = choose(path, candidates, lines, consistent=consistent)
        try:
            edits = self._edits(lines, candidates, placements)
        except Doubt as doubt:
            raise PatchError(
                f"{shown(path)}: {doubt}", advice="Give more lines of context, as they stand in the file."
            ) from None
        self._note(placements)
        return edits

    def _edits(
        self, lines: FileLines, candidates: Sequence[PieceCandidates], placements: Sequence[Placement]
    ) -> tuple[LineEdit, ...]:
        placed: list[Placed] = []
        for candidate, placement in zip(candidates, placements, strict=True):
            name = piece_name(candidate.piece)
            try:
                edits = edits_of(placement, lines, settle=not candidate.exact)
            except Doubt as doubt:
                raise Doubt(f"{name}: {doubt}") from None
            if any(_changes_nothing(edit, lines, candidate) for edit in edits):
                raise Doubt(f"{name} puts back the lines that it removes")
            placed.append((placement, edits))
        placed.sort(key=lambda each: (each[0].start, each[0].end))
        for (one, _), (other, _) in pairwise(placed):
            if one.end > other.start:
                raise Doubt(f"{piece_name(one.piece)} and {piece_name(other.piece)} overlap")
        carries_cr = any(line.text.endswith("\r") for hunk in self._target.hunks for line in hunk.lines)
        return tuple(with_line_ends(lines, placed, carries_cr=carries_cr))

    def _note(self, placements: Sequence[Placement]) -> None:
        path = shown(self._target.path)
        repairs = [f"{path}: {repair}" for placement in placements for repair in placement.repairs]
        if list(placements) != sorted(placements, key=lambda each: each.start):
            repairs.append(f"{path}: its hunks stood in another order than in the file")
        self.repairs = tuple(dict.fromkeys(repairs))
        self.moved = any(map(_is_moved, placements))


def _changes_nothing(edit: PieceEdit, lines: FileLines, candidate: PieceCandidates) -> bool:
    """Return True for an edit that restores the lines that it removes: its intended change was lost."""
    same = [line.text for line in edit.added] == lines.texts[edit.start : edit.end]
    terminated = all(line.newline for line in candidate.piece.lines)
    return same and terminated and not any(lines.is_unterminated(at) for at in range(edit.start, edit.end))


def _is_moved(placement: Placement) -> bool:
    """Return True if the numbers or counts in the header of a hunk are wrong; a header need not have any."""
    piece = placement.piece
    if piece.hunk.numbers is None:
        return False
    return not piece.hunk.counted or (bool(placement.at) and placement.start != piece.start)


def choose(
    path: str, candidates: Sequence[PieceCandidates], file: FileLines, *, consistent: bool
) -> tuple[Placement, ...]:
    """Return one placement for each piece; `consistent`: the numbers of the headers agree with each other.

    Several positions are decided by, in this order: the numbers of the headers, if every hunk of the file matches at
    its own; the order of the hunks; the heading after the second @@; a common offset from the header numbers of other
    hunks. Raises `PatchError` if more than one position is plausible.
    """
    chosen = _chosen(candidates, file, consistent=consistent)
    for candidate, places in zip(candidates, chosen, strict=True):
        if len(places) > 1:
            raise _ambiguous(path, candidate.piece, places)
    placements = tuple(places[0] for places in chosen)
    if consistent:
        _check_headers(path, candidates, placements, file)
    for candidate, placement in zip(candidates, placements, strict=True):
        if placement.start != candidate.piece.start and placement.at and all(map(is_trivial, candidate.piece.keys)):
            raise position_error(
                path, candidate.piece, file, ["none of its lines tells a place, and its number is another"]
            )
        if may_mark_another(placement, file):
            raise PatchError(
                f"{shown(path)}: {piece_name(candidate.piece)} seems to lack a line, to which the marker "
                "`\\ No newline at end of file` may belong",
                advice="Give the last line of the file before the marker, and leave no line out.",
            )
        if candidate.exact and _contradicts_heading(placement, file):
            name, heading = piece_name(candidate.piece), shown(candidate.piece.hunk.section)
            raise PatchError(
                f"{shown(path)}: {name} names {heading} behind its numbers, "
                f"but its old lines stand at line {placement.start + 1}, which is below another heading",
                advice="Give the lines as they stand where the change is to be made, or the right heading.",
            )
    return placements


def are_consistent(hunks: Sequence[WrittenHunk]) -> bool:
    """Return True if the numbers of the headers agree: each new number is the old one plus the growth before it."""
    shift = 0
    for hunk in hunks:
        numbers = hunk.numbers
        if numbers is None:
            return False
        # A side without lines has the number of the line before it. A side with a count had lines, and lost them.
        has_old = numbers.old_count > 0 or any(line.sign != "+" for line in hunk.lines)
        has_new = numbers.new_count > 0 or any(line.sign != "-" for line in hunk.lines)
        old, new = numbers.old_start + (not has_old), numbers.new_start + (not has_new)
        if max(old, 1) + shift != max(new, 1):
            return False
        shift += hunk.growth
    return True


def _chosen(candidates: Sequence[PieceCandidates], file: FileLines, *, consistent: bool) -> list[tuple[Placement, ...]]:
    places = [candidate.placements for candidate in candidates]
    if all(len(each) == 1 for each in places):
        return places
    at_headers = [_at_header(candidate) for candidate in candidates]
    others = [candidate for candidate in candidates if len(candidate.placements) == 1]
    lacking = any(candidate.piece.missing for candidate in candidates)
    if all(len(each) == 1 for each in at_headers) and (consistent or (others and not lacking)):
        # A heading that is above another position shows that the numbers match by coincidence.
        if not any(
            _is_under_another(candidate, each[0], file) for candidate, each in zip(candidates, at_headers, strict=True)
        ):
            return at_headers
        return places
    if _ascending(candidates):
        places = _in_order(places)
    places = [_under_heading(candidate.piece, each, file) for candidate, each in zip(candidates, places, strict=True)]
    if _ascending(candidates):
        places = _in_order(places)
    return _at_common_offset(candidates, places) if consistent else places


def _at_header(candidate: PieceCandidates) -> tuple[Placement, ...]:
    """Return the placements that the header may mean: at its number, or after it by the number of lost lines."""
    start = candidate.piece.start
    if start is None:
        return ()
    return tuple(each for each in candidate.placements if start <= each.start <= start + candidate.piece.missing)


def _ascending(candidates: Sequence[PieceCandidates]) -> bool:
    """Return True if the numbers of the headers rise."""
    starts = [candidate.piece.start for candidate in candidates if candidate.piece.start is not None]
    return all(a < b for a, b in pairwise(starts))


def _in_order(places: list[tuple[Placement, ...]]) -> list[tuple[Placement, ...]]:
    """Return the placements that remain if each hunk follows the one before it."""
    kept: list[tuple[Placement, ...]] = []
    floor = 0
    for each in places:
        left = tuple(one for one in each if one.start >= floor)
        if not left:
            return places
        kept.append(left)
        floor = min(one.end for one in left)
    ceiling = max((one.end for one in kept[-1]), default=0)
    for number in range(len(kept) - 1, -1, -1):
        left = tuple(one for one in kept[number] if one.end <= ceiling)
        if not left:
            return places
        kept[number] = left
        ceiling = max(one.start for one in left)
    return kept


def _under_heading(piece: HunkPiece, places: tuple[Placement, ...], file: FileLines) -> tuple[Placement, ...]:
    """Return the only placement below the heading of the hunk, or all if there is not exactly one."""
    if len(places) < 2 or not piece.hunk.section or piece.after_dots or not piece.is_whole:
        return places
    below = tuple(each for each in places if _is_under(piece.hunk.section, each.start, file))
    return below if len(below) == 1 else places


def _is_under_another(candidate: PieceCandidates, chosen: Placement, file: FileLines) -> bool:
    """Return True if the heading of a hunk is above another placement than the chosen one."""
    heading = candidate.piece.hunk.section
    if not heading or len(candidate.placements) < 2 or candidate.piece.after_dots:
        return False
    below = [each for each in candidate.placements if _is_under(heading, each.start, file)]
    return bool(below) and chosen not in below


def _is_under(heading: str, start: int, file: FileLines) -> bool:
    """Return True if the nearest possible heading before `start` is this one."""
    wanted = heading.strip()
    for at in range(start - 1, -1, -1):
        bare = file.stripped[at]
        if bare.startswith(wanted):
            return True
        if bare and file.keys[at][0] not in " \t#/*@)}]\"'" and wanted[:1].isalpha():
            return False
    return False


def _contradicts_heading(placement: Placement, file: FileLines) -> bool:
    """Return True if the file has the heading of the hunk, but neither it nor the header number is at this position.

    Then the hunk may belong to an older version of the code below its heading.
    """
    piece = placement.piece
    wanted = piece.hunk.section.strip()
    if not wanted or piece.after_dots or wanted.split()[0] in _NO_SCOPE:
        return False
    if piece.start is not None and 0 <= placement.start - piece.start <= EDGE_LINES:
        return False
    heads = [at for at, bare in enumerate(file.stripped) if bare.startswith(wanted)]
    if not heads or any(placement.start <= at < placement.end for at in heads):
        return False
    before = [at for at in heads if at < placement.start]
    if not before:
        return True
    indent = len(file.keys[before[-1]]) - len(file.stripped[before[-1]])
    word = wanted.split()[0]
    return any(
        bare.startswith(word) and bare[len(word) :][:1].isspace() and len(key) - len(bare) == indent
        for key, bare in zip(
            file.keys[before[-1] + 1 : placement.start], file.stripped[before[-1] + 1 : placement.start], strict=True
        )
    )


def _at_common_offset(
    candidates: Sequence[PieceCandidates], places: list[tuple[Placement, ...]]
) -> list[tuple[Placement, ...]]:
    """Return the placements at the same offset from the header numbers as all hunks with a single placement."""
    known = [
        each[0].start - candidate.piece.start
        for candidate, each in zip(candidates, places, strict=True)
        if len(each) == 1 and candidate.piece.start is not None
    ]
    if len(known) < _WITNESSES or len(set(known)) != 1:
        return places
    kept = [
        tuple(
            one for one in each if candidate.piece.start is not None and one.start - candidate.piece.start == known[0]
        )
        for candidate, each in zip(candidates, places, strict=True)
    ]
    return kept if all(kept) else places


def _check_headers(
    path: str, candidates: Sequence[PieceCandidates], placements: Sequence[Placement], file: FileLines
) -> None:
    """Raise `PatchError` if the position in a header is plausible too, with lost lines of the hunk."""
    for candidate, placement in zip(candidates, placements, strict=True):
        if candidate.exact and contradicts(placement, file):
            other = "where its header says, where some of them are missing or it is applied already"
            if placement.start == candidate.piece.start:
                other = "there with one more line of context, which its header counts and which is missing"
            name = piece_name(candidate.piece)
            raise PatchError(
                f"{shown(path)}: {name} could stand at line {placement.start + 1}, where its lines are, or {other}",
                advice="Give all lines of context, as the file has them now.",
            )


def _ambiguous(path: str, piece: HunkPiece, places: Sequence[Placement]) -> PatchError:
    starts = sorted(each.start + 1 for each in places)
    named = ", ".join(map(str, starts[:_PLACES_NAMED])) + (", …" if len(starts) > _PLACES_NAMED else "")
    return PatchError(
        f"{shown(path)}: the old lines of {piece_name(piece)} stand in more than one place: lines {named}",
        advice="Give more lines of context, until they are in one place only.",
    )


def with_line_ends(file: FileLines, placed: Sequence[Placed], *, carries_cr: bool) -> Iterator[LineEdit]:
    """Yield the edits of a file with the line ends of all added lines.

    `carries_cr` is True if a line of the diff ends with a carriage return. Raises `Doubt` if the line end of an added
    line is not certain.
    """
    for placement, edits in placed:
        ends = _LineEnds(file, placement, carries_cr=carries_cr)
        for edit in edits:
            added = tuple(ends.written(line) for line in edit.added)
            _check_last_line(file, placement, edit, added)
            yield LineEdit(edit.start, edit.end, added, ends.added)


def _check_last_line(file: FileLines, placement: Placement, edit: PieceEdit, added: Sequence[bytes]) -> None:
    """Raise `Doubt` if the last line has no line feed and the diff does not say whether its replacement has one."""
    replaces_last = edit.end == len(file) > edit.start and not file.terminated
    if not added or not replaces_last or any(not line.newline for line in placement.new_lines):
        return
    old = [text.encode(errors="surrogateescape") for text in file.texts[edit.start : edit.end]]
    if [line.rstrip(b"\r\n") for line in added] != [line.rstrip(b"\r") for line in old]:
        raise Doubt(
            "the file's last line has no line feed, and whether the new one has one is not said "
            "(`\\ No newline at end of file` belongs behind a line without)"
        )


class _LineEnds:
    """Line ends of the added lines of one hunk; `added` is the end of a line without a carriage return of its own."""

    def __init__(self, file: FileLines, placement: Placement, *, carries_cr: bool) -> None:
        pairs = [
            (line.text.endswith("\r"), file.texts[at].endswith("\r"))
            for line, at in zip(placement.piece.old, placement.at, strict=True)
            if not file.is_unterminated(at)
        ]
        adds = any(actual and not written for written, actual in pairs)
        self._drops = any(written and not actual for written, actual in pairs)
        if not pairs and not carries_cr and file.ends == {b"\r\n"}:
            adds = True
        self.added = b"\r\n" if adds else b"\n"
        added = [line.text.endswith("\r") for line in placement.new_lines if line.sign == "+"]
        mixed = (adds and not all(actual for _, actual in pairs)) or (
            self._drops and any(actual for _, actual in pairs)
        )
        if added and ((adds and self._drops) or mixed or (self._drops and not all(added))):
            raise Doubt("how an added line is to end is not certain: the file's lines around it end differently")
        if adds and any(added):
            raise Doubt("how an added line is to end is not certain: the diff's own lines end differently")

    def written(self, line: WrittenLine) -> bytes:
        """Return an added line with its line end."""
        text = line.text.removesuffix("\r") if self._drops else line.text
        return text.encode() + (self.added if line.newline else b"")
