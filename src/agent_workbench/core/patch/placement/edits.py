"""What a placed piece changes in the file, where that is certain."""

from msgspec import Struct

from agent_workbench.core.patch.file_lines import Ground, key_of
from agent_workbench.core.patch.placement.pieces import EDGE_LINES, Doubt, Placing
from agent_workbench.core.patch.reader.hunk_bodies import LooseLine


class Edit(Struct, frozen=True):
    """Lines `start` to `end` of the file become these; they end as the lines of `near` do."""

    start: int
    end: int
    added: tuple[LooseLine, ...]


def edits_of(placing: Placing, ground: Ground, *, settle: bool = False) -> tuple[Edit, ...]:
    """Return what a placing changes; raise `Doubt` where the place of an added line is not certain.

    `settle` lets the number of context lines decide on which side of a changed line a lost one stood.
    """
    edits = []
    lines = placing.new_lines
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
        edits.append(_edit(_Block(placing, ground, block, at, end, seen, seen + removed), settle=settle))
        seen += removed
        at = end
    return tuple(edits)


class _Block(Struct, frozen=True):
    """A row of changed lines: `first` to `last` of the piece's lines, `old` to `old_end` of its old ones."""

    placing: Placing
    ground: Ground
    lines: tuple[LooseLine, ...]
    first: int
    last: int
    old: int
    old_end: int

    @property
    def before(self) -> int | None:
        """Where the old line before the block stands."""
        return self.placing.at[self.old - 1] if self.old else None

    @property
    def behind(self) -> int | None:
        """Where the old line behind the block stands."""
        return self.placing.at[self.old_end] if self.old_end < len(self.placing.at) else None


def _edit(block: _Block, *, settle: bool) -> Edit:
    at = block.placing.at
    added = tuple(line for line in block.lines if line.sign == "+")
    places = at[block.old : block.old_end]
    if places and places[-1] - places[0] != len(places) - 1:
        raise Doubt("other lines stand between the removed ones")
    if not added:
        return Edit(places[0], places[-1] + 1, ())
    leads, trails = block.lines[0].sign == "+", block.lines[-1].sign == "+"
    if places:
        start, end = places[0], places[-1] + 1
        if leads:
            _check_before(block, start, settle=settle)
        if trails:
            _check_behind(block, end, settle=settle)
        return Edit(start, end, added)
    return _insertion(block, added, settle=settle)


def _insertion(block: _Block, added: tuple[LooseLine, ...], *, settle: bool) -> Edit:
    start = block.before + 1 if block.before is not None else block.behind
    if start is None:
        if len(block.ground):
            raise Doubt("a hunk that only adds lines does not say where")
        return Edit(0, 0, added)
    if block.before is not None and block.behind is not None and block.before + 1 != block.behind:
        # The header knows of the lost line; which side it was on is told by the side that is short of one.
        if not (settle and block.placing.counts_lost):
            raise Doubt("a lost line may have stood before or behind the added ones")
        start = block.before + 1 if _balanced(block, before=False) else block.behind
        if start == block.behind and not _balanced(block, before=True):
            raise Doubt("a lost line may have stood before or behind the added ones")
        return Edit(start, start, added)
    _check_before(block, start, settle=False)
    _check_behind(block, start, settle=False)
    return Edit(start, start, added)


def _check_before(block: _Block, start: int, *, settle: bool) -> None:
    """Raise `Doubt` if a lost line may have stood between the added ones and those before them."""
    if not block.old:
        _check_new(block, max(start - len(block.lines), 0), start)
        # A hunk that stood at the beginning would say so.
        says = block.placing.piece.consistent and block.placing.piece.start == start
        if not says and not block.placing.piece.after_dots and _may_lack(start, block.placing.new_lines[::-1], block):
            raise Doubt("a line may be lost between the file's beginning and the added ones")
    elif block.before != start - 1 and not (settle and _balanced(block, before=True)):
        raise Doubt("a lost line may have stood before or behind the added ones")


def _check_behind(block: _Block, end: int, *, settle: bool) -> None:
    """Raise `Doubt` if a lost line may have stood between the added ones and those behind them."""
    if block.old_end == len(block.placing.at):
        _check_new(block, end, end + len(block.lines))
        left = len(block.ground) - end
        if not block.placing.piece.before_dots and _may_lack(left, block.placing.new_lines, block):
            raise Doubt("a line may be lost between the added ones and the file's end")
    elif block.behind != end and not (settle and _balanced(block, before=False)):
        raise Doubt("a lost line may have stood before or behind the added ones")


def _check_new(block: _Block, start: int, end: int) -> None:
    """Raise `Doubt` if these lines of the file are the ones to be added, with no context between that would say so."""
    if all(line.sign == "+" for line in block.lines):
        added = [key_of(line.text) for line in block.lines]
        if any(added) and block.ground.keys[start:end] == added:
            raise Doubt("it seems to be applied already: the lines that it adds stand there")


def _may_lack(distance: int, lines: tuple[LooseLine, ...], block: _Block) -> bool:
    """Return whether a hunk without context on one side may have stood at that edge of the file, with lines lost there.

    Whoever writes diffs gives three lines: where those on the other side and the one up to the edge are three together,
    the latter may have been context that was lost, and then the added lines belong behind it.
    """
    heads = next((at for at, line in enumerate(lines) if not line.is_context), 0)
    # Among lines that replace others the lost one may have stood, too, whatever stands on the other side.
    is_only = heads + len(block.lines) == len(lines) and all(line.sign == "+" for line in block.lines)
    if is_only and heads >= EDGE_LINES:
        return False  # nothing lacks on the other side, so that the added lines stand right behind it
    if 0 < distance <= block.placing.piece.missing:
        return True
    # Who gives no context at all has lost none.
    return distance == 1 and (heads == EDGE_LINES - 1 if is_only else heads > 0)


def _balanced(block: _Block, *, before: bool) -> bool:
    """Return whether the lost line belongs to the context at this end of the hunk, which is one line short.

    Whoever writes diffs gives three lines on either side, as far as the file has them: where there are three and two,
    one of the two is lost.
    """
    placing = block.placing
    if placing.start == 0 if before else placing.end == len(block.ground):
        return False
    lines = block.placing.new_lines
    heads = next((at for at, line in enumerate(lines) if not line.is_context), 0)
    tails = next((at for at, line in enumerate(reversed(lines)) if not line.is_context), 0)
    outer = heads == block.first if before else len(lines) - tails == block.last
    short, whole = (heads, tails) if before else (tails, heads)
    return outer and (short, whole) == (EDGE_LINES - 1, EDGE_LINES)
