"""Where a piece stands of which context is lost or altered: every place that is nearly as good as the best."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.patch.file_lines import Ground, is_trivial, key_of
from agent_workbench.core.patch.placement.pieces import Piece, Placing, is_dots
from agent_workbench.core.patch.reader.hunk_bodies import LooseLine

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


class Search(Struct, frozen=True):
    """What was found: `placings`, the best first, and `crowded` where there are too many places to look at."""

    placings: tuple[Placing, ...]
    crowded: bool = False


def search(piece: Piece, ground: Ground, most: float) -> Search:
    """Return every placing whose damage is no more than `most`, and than `MARGIN` over the least."""
    costs = _Costs(piece, ground)
    seeds = _seeds(piece.old, costs.keys, ground)
    if seeds is None:
        return Search((), crowded=True)
    starts = sorted({place - at for at in seeds for place in ground.places.get(costs.keys[at], ())})
    found: dict[tuple[int, ...], Placing] = {}
    limit = most
    for start in starts:
        if not costs.are_promising(start, limit):
            continue
        for placing in _Window(costs, start).placings(limit):
            known = found.get(placing.at)
            if known is None or placing.cost < known.cost:
                found[placing.at] = placing
                limit = min(limit, placing.cost + MARGIN)
    kept = sorted((each for each in found.values() if each.cost <= limit), key=lambda each: each.cost)
    return Search(tuple(kept), crowded=len(kept) >= _MOST_PATHS)


def placings_at(piece: Piece, ground: Ground, start: int, most: float) -> list[Placing]:
    """Return the placings around one place."""
    costs = _Costs(piece, ground)
    return list(_Window(costs, start).placings(most)) if costs.are_promising(start, most) else []


def _seeds(old: Sequence[LooseLine], keys: Sequence[str], ground: Ground) -> list[int] | None:
    """Return old lines of which every place that counts has at least one; None where they stand all over the file."""
    counts = {at: len(ground.places.get(key, ())) for at, key in enumerate(keys)}
    removed = [at for at, line in enumerate(old) if line.sign == "-"]
    if removed:
        # Removed lines stand to the letter, or the piece stands nowhere.
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
    """What it costs to take a line of the file for one of a piece's old lines; known once for all windows."""

    def __init__(self, piece: Piece, ground: Ground) -> None:
        self.piece = piece
        self.ground = ground
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
        """Return whether enough of the old lines stand around `start` for the damage to be no more than `most`."""
        around = set(self.ground.keys[max(start - _BAND, 0) : start + len(self.keys) + _BAND])
        missing = 0
        for forms, rigid in zip(self.forms, self.rigid, strict=True):
            if around.isdisjoint(forms):
                missing += 1
                if rigid or missing * ALTERED > most:
                    return False
        return True

    def of(self, at: int, line: int, *, hopeful: bool) -> float:
        """Return the cost of the file's line for this old one; `hopeful` takes any other line for one much like it."""
        key = self.ground.keys[line]
        if key in self.forms[at]:
            if self.old[at].newline or self.ground.is_open(line):
                return 0.0
            # Of a line that stays nothing is written: the marker is a part of it that reads otherwise.
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
    """The alignments of a piece's old lines with the file's around one start."""

    def __init__(self, costs: _Costs, start: int) -> None:
        self.costs = costs
        self.size = len(costs.old)
        self.start = start
        self.hopeful = True
        self.least = self._table()

    def placings(self, most: float) -> Iterator[Placing]:
        """Yield the placings whose cost is no more than `most` and than `MARGIN` over the least in this window."""
        if min(cost for cost, _ in self._begins()) > most:
            return
        # Comparing lines that differ is what takes time: only where it can matter.
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
                yield Placing(self.costs.piece, at, total)

    def _begins(self) -> list[tuple[float, int]]:
        lines = range(self.start - _BAND, self.start + _BAND + 1)
        return [(self._rest(0, line), line) for line in lines]

    def _rest(self, at: int, line: int) -> float:
        column = line - self.start - at + _BAND
        return self.least[at][column] if 0 <= column <= 2 * _BAND else _NEVER

    def _table(self) -> list[list[float]]:
        """Return the least cost of each old line and those behind it from each line of the file in the band on."""
        self.least = [[_NEVER] * (2 * _BAND + 1) for _ in range(self.size)] + [[0.0] * (2 * _BAND + 1)]
        for at in range(self.size - 1, -1, -1):
            for column in range(2 * _BAND, -1, -1):
                line = self.start + at + column - _BAND
                costs = (cost + self._rest(*then) for cost, then, _ in self._steps(at, line))
                self.least[at][column] = min(costs, default=_NEVER)
        return self.least

    def _steps(self, at: int, line: int) -> Iterator[tuple[float, tuple[int, int], int | None]]:
        """Yield what may come next: its cost, where that leads, and the file's line for this one (None: it is lost)."""
        if not 0 <= line < len(self.costs.ground):
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
    """Return whether two lines, stripped, look like one line with a typing error, another name in it or another end.

    Quotes, escapes and blanks may differ only if the `added` lines cannot have suffered in the same way: they hold
    nothing of what this line has too much.
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
    """Return whether two lines differ by digits alone: then they are two items of a row, and no typing error."""
    return one != other and _DIGITS.sub("", one) == _DIGITS.sub("", other)


def _difference(one: str, other: str) -> tuple[str, str]:
    """Return what is left of both lines without what they begin and end with in common."""
    head = _common(one, other)
    a, b = one[head:], other[head:]
    tail = _common(a[::-1], b[::-1])
    return (a[:-tail], b[:-tail]) if tail else (a, b)


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _ends_with(one: str, other: str, more: str) -> bool:
    return more.isascii() and (one + more == other or other + more == one)
