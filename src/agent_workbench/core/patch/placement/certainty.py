"""Which of its places each hunk of a file is meant for: the one that is certain, or none."""

from collections.abc import Sequence
from itertools import pairwise

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import Ground, is_trivial
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.locator import Spot, contradicts, may_mark_another
from agent_workbench.core.patch.placement.nearest import nowhere, piece_name
from agent_workbench.core.patch.placement.pieces import EDGE_LINES, Piece, Placing
from agent_workbench.core.patch.reader.hunk_bodies import LooseHunk

_PLACES_NAMED = 5
_WITNESSES = 2
_NO_SCOPE = frozenset({"import", "from", "#include", "include", "use", "using", "require", "package", "export"})


def choose(path: str, spots: Sequence[Spot], ground: Ground, *, consistent: bool) -> tuple[Placing, ...]:
    """Return one placing for each spot; `consistent`: the headers' numbers fit together. Raises `PatchError` where
    more than one reading is plausible.

    Where a hunk's lines stand in several places, these may choose, in this order: the headers' numbers if every hunk
    of the file stands where its own says; the order of the hunks; the heading behind the second @@; one distance from
    the headers' numbers that several hunks with one place share.
    """
    chosen = _chosen(spots, ground, consistent=consistent)
    for spot, places in zip(spots, chosen, strict=True):
        if len(places) > 1:
            raise _several(path, spot.piece, places)
    placings = tuple(places[0] for places in chosen)
    if consistent:
        _check_headers(path, spots, placings, ground)
    for spot, placing in zip(spots, placings, strict=True):
        if placing.start != spot.piece.start and placing.at and all(map(is_trivial, spot.piece.keys)):
            raise nowhere(path, spot.piece, ground, ["none of its lines tells a place, and its number is another"])
        if may_mark_another(placing, ground):
            raise PatchError(
                f"{shown(path)}: {piece_name(spot.piece)} seems to lack a line, to which the marker "
                "`\\ No newline at end of file` may belong",
                advice="Give the last line of the file before the marker, and leave no line out.",
            )
        if spot.exact and _heading_speaks_against(placing, ground):
            raise PatchError(
                f"{shown(path)}: {piece_name(spot.piece)} names {shown(spot.piece.hunk.section)} behind its numbers, "
                f"but its old lines stand at line {placing.start + 1}, which is below another heading",
                advice="Give the lines as they stand where the change is to be made, or the right heading.",
            )
    return placings


def are_consistent(hunks: Sequence[LooseHunk]) -> bool:
    """Return whether the headers' numbers fit together: each new line number is the old one and what came before it."""
    shift = 0
    for hunk in hunks:
        numbers = hunk.numbers
        if numbers is None:
            return False
        # A side without lines is numbered by the line before it; one that is counted had lines, and lost them.
        has_old = numbers.old_count > 0 or any(line.sign != "+" for line in hunk.lines)
        has_new = numbers.new_count > 0 or any(line.sign != "-" for line in hunk.lines)
        old, new = numbers.old_start + (not has_old), numbers.new_start + (not has_new)
        if max(old, 1) + shift != max(new, 1):
            return False
        shift += hunk.added
    return True


def _chosen(spots: Sequence[Spot], ground: Ground, *, consistent: bool) -> list[tuple[Placing, ...]]:
    places = [spot.placings for spot in spots]
    if all(len(each) == 1 for each in places):
        return places
    at_headers = [_at_header(spot) for spot in spots]
    others = [spot for spot in spots if len(spot.placings) == 1]
    lacking = any(spot.piece.missing for spot in spots)
    if all(len(each) == 1 for each in at_headers) and (consistent or (others and not lacking)):
        # A heading that speaks for another place says that the numbers are wrong by accident.
        if not any(_disowned(spot, each[0], ground) for spot, each in zip(spots, at_headers, strict=True)):
            return at_headers
        return places
    if _ascending(spots):
        places = _in_order(places)
    places = [_under_heading(spot.piece, each, ground) for spot, each in zip(spots, places, strict=True)]
    if _ascending(spots):
        places = _in_order(places)
    return _at_one_distance(spots, places) if consistent else places


def _at_header(spot: Spot) -> tuple[Placing, ...]:
    """Return the places that the header means: at its number or, if it counts lines that are lost, as many behind."""
    start = spot.piece.start
    if start is None:
        return ()
    return tuple(each for each in spot.placings if start <= each.start <= start + spot.piece.missing)


def _ascending(spots: Sequence[Spot]) -> bool:
    """Return whether the headers' numbers do not speak against the order that the hunks stand in."""
    starts = [spot.piece.start for spot in spots if spot.piece.start is not None]
    return all(a < b for a, b in pairwise(starts))


def _in_order(places: list[tuple[Placing, ...]]) -> list[tuple[Placing, ...]]:
    """Return the places that are left where each hunk stands behind the one before it."""
    kept: list[tuple[Placing, ...]] = []
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


def _under_heading(piece: Piece, places: tuple[Placing, ...], ground: Ground) -> tuple[Placing, ...]:
    """Return the one place that stands below the heading of the hunk, or all of them if that is not one."""
    if len(places) < 2 or not piece.hunk.section or piece.after_dots or not piece.is_whole:
        return places
    below = tuple(each for each in places if _stands_under(piece.hunk.section, each.start, ground))
    return below if len(below) == 1 else places


def _disowned(spot: Spot, chosen: Placing, ground: Ground) -> bool:
    """Return whether the heading of a hunk speaks for another of its places than the chosen one."""
    heading = spot.piece.hunk.section
    if not heading or len(spot.placings) < 2 or spot.piece.after_dots:
        return False
    below = [each for each in spot.placings if _stands_under(heading, each.start, ground)]
    return bool(below) and chosen not in below


def _stands_under(heading: str, start: int, ground: Ground) -> bool:
    """Return whether the nearest line that could be a heading before `start` is this one."""
    wanted = heading.strip()
    for at in range(start - 1, -1, -1):
        bare = ground.stripped[at]
        if bare.startswith(wanted):
            return True
        if bare and ground.keys[at][0] not in " \t#/*@)}]\"'" and wanted[:1].isalpha():
            return False
    return False


def _heading_speaks_against(placing: Placing, ground: Ground) -> bool:
    """Return whether a heading of the hunk stands in the file, but not over this place, and its number does not either.

    Then the hunk may be an older text of what stands below its heading.
    """
    piece = placing.piece
    wanted = piece.hunk.section.strip()
    if not wanted or piece.after_dots or wanted.split()[0] in _NO_SCOPE:
        return False
    if piece.start is not None and 0 <= placing.start - piece.start <= EDGE_LINES:
        return False
    heads = [at for at, bare in enumerate(ground.stripped) if bare.startswith(wanted)]
    if not heads or any(placing.start <= at < placing.end for at in heads):
        return False
    before = [at for at in heads if at < placing.start]
    if not before:
        return True
    indent = len(ground.keys[before[-1]]) - len(ground.stripped[before[-1]])
    word = wanted.split()[0]
    return any(
        bare.startswith(word) and bare[len(word) :][:1].isspace() and len(key) - len(bare) == indent
        for key, bare in zip(
            ground.keys[before[-1] + 1 : placing.start], ground.stripped[before[-1] + 1 : placing.start], strict=True
        )
    )


def _at_one_distance(spots: Sequence[Spot], places: list[tuple[Placing, ...]]) -> list[tuple[Placing, ...]]:
    """Return the places at the distance from the headers' numbers that every hunk with one place has."""
    known = [
        each[0].start - spot.piece.start
        for spot, each in zip(spots, places, strict=True)
        if len(each) == 1 and spot.piece.start is not None
    ]
    if len(known) < _WITNESSES or len(set(known)) != 1:
        return places
    there = [
        tuple(one for one in each if spot.piece.start is not None and one.start - spot.piece.start == known[0])
        for spot, each in zip(spots, places, strict=True)
    ]
    return there if all(there) else places


def _check_headers(path: str, spots: Sequence[Spot], placings: Sequence[Placing], ground: Ground) -> None:
    """Raise `PatchError` where a header's numbers speak for a place at which lines of the hunk would be lost."""
    for spot, placing in zip(spots, placings, strict=True):
        if spot.exact and contradicts(placing, ground):
            other = "where its header says, where some of them are missing or it is applied already"
            if placing.start == spot.piece.start:
                other = "there with one more line of context, which its header counts and which is missing"
            raise PatchError(
                f"{shown(path)}: {piece_name(spot.piece)} could stand at line {placing.start + 1}, where its lines "
                f"are, or {other}",
                advice="Give the line numbers of the file as it is now, and all lines of context.",
            )


def _several(path: str, piece: Piece, places: Sequence[Placing]) -> PatchError:
    starts = sorted(each.start + 1 for each in places)
    named = ", ".join(map(str, starts[:_PLACES_NAMED])) + (", …" if len(starts) > _PLACES_NAMED else "")
    return PatchError(
        f"{shown(path)}: the old lines of {piece_name(piece)} stand in more than one place: lines {named}",
        advice="Give more context, or the right line numbers for every hunk of the file.",
    )
