"""Fuzzy placement of pieces with missing or altered context: every position whose cost is close to the best."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.patch.file_lines import FileLines, is_trivial, key_of
from agent_workbench.core.patch.hunk_bodies import WrittenLine
from agent_workbench.core.patch.hunk_pieces import HunkPiece, Placement, is_dots

LOST = 1.0
ALTERED = 1.0
FOREIGN = 2.0
MARGIN = 1.0
_BAND = 3
_SEEDS = 5
_MOST_PLACES = 300
_MOST_PATHS = 400
_ALIKE = 0.6
_NEVER = 1e9
_WORD = re.compile(r"\w*", re.ASCII)
_DIGITS = re.compile(r"\d+")


class SearchResult(Struct, frozen=True):
    """The placements, the best first. `crowded`: there were too many positions to compare all of them."""

    placements: tuple[Placement, ...]
    crowded: bool = False


def search(piece: HunkPiece, file: FileLines, most: float) -> SearchResult:
    """Return all placements that cost at most `most`, and at most `MARGIN` more than the cheapest."""
    costs = _Costs(piece, file)
    seeds = _seeds(piece.old, costs.keys, file)
    if seeds is None:
        return SearchResult((), crowded=True)
    starts = sorted({place - at for at in seeds for place in file.positions.get(costs.keys[at], ())})
    found: dict[tuple[int, ...], Placement] = {}
    limit = most
    for start in starts:
        if not costs.are_promising(start, limit):
            continue
        for placement in _Window(costs, start).placements(limit):
            known = found.get(placement.at)
            if known is None or placement.cost < known.cost:
                found[placement.at] = placement
                limit = min(limit, placement.cost + MARGIN)
    kept = sorted((each for each in found.values() if each.cost <= limit), key=lambda each: each.cost)
    return SearchResult(tuple(kept), crowded=len(kept) >= _MOST_PATHS)


def placements_at(piece: HunkPiece, file: FileLines, start: int, most: float) -> list[Placement]:
    """Return the placements near index `start` that cost at most `most`."""
    costs = _Costs(piece, file)
    return list(_Window(costs, start).placements(most)) if costs.are_promising(start, most) else []


def _seeds(old: Sequence[WrittenLine], keys: Sequence[str], file: FileLines) -> list[int] | None:
    """Return old lines such that every relevant position has at least one; None if they occur all over the file."""
    counts = {at: len(file.positions.get(key, ())) for at, key in enumerate(keys)}
    removed = [at for at, line in enumerate(old) if line.sign == "-"]
    if removed:
        # Removed lines must match exactly.
        best = min(removed, key=lambda at: counts[at])
        return [best] if counts[best] <= _MOST_PLACES else _rarest(counts, keys)
    return _rarest(counts, keys)


def _rarest(counts: dict[int, int], keys: Sequence[str]) -> list[int] | None:
    chosen: dict[str, int] = {}
    for at in sorted(counts, key=lambda at: counts[at]):
        if counts[at]:
            chosen.setdefault(keys[at], at)
        if len(chosen) == _SEEDS:
            break
    seeds = list(chosen.values())
    return seeds if sum(counts[at] for at in seeds) <= _SEEDS * _MOST_PLACES else None


class _Costs:
    """Costs of matching lines of the file with the old lines of a piece; shared by all windows."""

    def __init__(self, piece: HunkPiece, file: FileLines) -> None:
        self.piece = piece
        self.file = file
        self.old = piece.old
        self.keys = piece.keys
        self.forms = [
            frozenset(map(key_of, line.forms)) if line.is_context else frozenset({key})
            for line, key in zip(self.old, self.keys, strict=True)
        ]
        self.rigid = [not line.is_context or not line.newline or is_dots(line) for line in self.old]
        self.added = [line.text for line in piece.lines if line.sign == "+"]
        self.known: dict[tuple[int, str], float] = {}

    def are_promising(self, start: int, most: float) -> bool:
        """Return True if enough old lines are near `start` for a cost of at most `most`."""
        around = set(self.file.keys[max(start - _BAND, 0) : start + len(self.keys) + _BAND])
        missing = 0
        for forms, rigid in zip(self.forms, self.rigid, strict=True):
            if around.isdisjoint(forms):
                missing += 1
                if rigid or missing * ALTERED > most:
                    return False
        return True

    def of(self, at: int, line: int, *, hopeful: bool) -> float:
        """Return the cost of matching a line of the file with an old line; `hopeful` assumes that they are similar."""
        key = self.file.keys[line]
        if key in self.forms[at]:
            if self.old[at].newline or self.file.is_unterminated(line):
                return 0.0
            # A context line is not written; a wrong marker alters it like a wrong letter.
            return ALTERED if self.old[at].is_context else _NEVER
        if self.rigid[at]:
            return _NEVER
        if hopeful:
            return ALTERED
        known = self.known.get((at, key))
        if known is None:
            one, other = self.keys[at].strip(), key.strip()
            known = (
                FOREIGN if not are_alike(one, other, self.added) else _NEVER if is_other_item(one, other) else ALTERED
            )
            self.known[at, key] = known
        return known


class _Window:
    """Alignments of the old lines of a piece with the lines of the file near one index."""

    def __init__(self, costs: _Costs, start: int) -> None:
        self.costs = costs
        self.size = len(costs.old)
        self.start = start
        self.hopeful = True
        self.least = self._table()

    def placements(self, most: float) -> Iterator[Placement]:
        """Yield the placements that cost at most `most`, and at most `MARGIN` more than the cheapest of this window."""
        if min(cost for cost, _ in self._begins()) > most:
            return
        # The comparison of different lines is slow, so it is done only where it matters.
        self.hopeful = False
        self.least = self._table()
        begins = self._begins()
        least = min(cost for cost, _ in begins)
        limit = min(most, least + MARGIN)
        paths = 0
        for cost, line in begins:
            for at, total in self._walk(line, limit) if cost <= limit else ():
                paths += 1
                if paths > _MOST_PATHS:
                    return
                yield Placement(self.costs.piece, at, total)

    def _begins(self) -> list[tuple[float, int]]:
        lines = range(self.start - _BAND, self.start + _BAND + 1)
        return [(self._rest(0, line), line) for line in lines]

    def _rest(self, at: int, line: int) -> float:
        column = line - self.start - at + _BAND
        return self.least[at][column] if 0 <= column <= 2 * _BAND else _NEVER

    def _table(self) -> list[list[float]]:
        """Return the least cost of each old line and all after it, from each line of the file in the band."""
        self.least = [[_NEVER] * (2 * _BAND + 1) for _ in range(self.size)] + [[0.0] * (2 * _BAND + 1)]
        for at in range(self.size - 1, -1, -1):
            for column in range(2 * _BAND, -1, -1):
                line = self.start + at + column - _BAND
                costs = (cost + self._rest(*then) for cost, then, _ in self._steps(at, line))
                self.least[at][column] = min(costs, default=_NEVER)
        return self.least

    def _steps(self, at: int, line: int) -> Iterator[tuple[float, tuple[int, int], int | None]]:
        """Yield the next steps: cost, the state after it, and the matched line of the file (None: it was lost)."""
        if not 0 <= line < len(self.costs.file):
            return
        cost = self.costs.of(at, line, hopeful=self.hopeful)
        if cost < _NEVER:
            yield cost, (at + 1, line + 1), line
        if at and line - self.start - at < _BAND:
            yield LOST, (at, line + 1), None

    def _walk(self, begin: int, limit: float) -> Iterator[tuple[tuple[int, ...], float]]:
        stack: list[tuple[int, int, float, tuple[int, ...]]] = [(0, begin, 0.0, ())]
        while stack:
            at, line, spent, path = stack.pop()
            if at == self.size:
                yield path, spent
                continue
            for cost, then, place in self._steps(at, line):
                if spent + cost + self._rest(*then) <= limit:
                    stack.append((*then, spent + cost, path if place is None else (*path, place)))


def are_alike(one: str, other: str, added: Sequence[str]) -> bool:
    """Return True if two stripped lines differ by a typing error, by one name or by their end.

    Quotes, escapes and blanks may differ only if the `added` lines cannot have the same damage: they contain none of
    the surplus characters.
    """
    a, b = _difference(one, other)
    same = len(one) - len(a)
    if not one or not other or 2 * same < _ALIKE * (len(one) + len(other)) or is_trivial(one) != is_trivial(other):
        return False
    if _WORD.fullmatch(a) and _WORD.fullmatch(b):
        return True
    if not (a and b) and _ends_with(one, other, a or b):
        return True
    if not a.strip() and not b.strip():
        return len(a) > len(b) and not any("  " in line.strip() or "\t" in line.strip() for line in added)
    more = set(a) - set(b) - {" ", "\t"}
    return bool(more) and not any(more.intersection(line) for line in added)


def is_other_item(one: str, other: str) -> bool:
    """Return True if two lines differ only by digits: they are two items of a list, not a typing error."""
    return one != other and _DIGITS.sub("", one) == _DIGITS.sub("", other)


def _difference(one: str, other: str) -> tuple[str, str]:
    """Return both lines without their common beginning and end."""
    head = _common(one, other)
    a, b = one[head:], other[head:]
    tail = _common(a[::-1], b[::-1])
    return (a[:-tail], b[:-tail]) if tail else (a, b)


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _ends_with(one: str, other: str, more: str) -> bool:
    return more.isascii() and (one + more == other or other + more == one)
