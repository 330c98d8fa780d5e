"""What to say of a hunk that stands nowhere: the nearest place, and what differs there."""

from collections import Counter
from collections.abc import Sequence

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.ground import Ground, is_trivial, key_of
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.pieces import Piece

_OFTEN = 50
_ADVICE = "Give the old lines exactly as they stand in the file, with enough context to be found in one place only."


def nowhere(path: str, piece: Piece, ground: Ground, doubts: Sequence[str] = ()) -> PatchError:
    """Return the error for a piece that stands nowhere, or nowhere for certain: `doubts` say why."""
    numbers = piece.hunk.numbers
    name = f"the hunk at line {numbers.old_start}" if numbers is not None else f"hunk {piece.number + 1}"
    what = f"{shown(path)}: the old lines of {name} stand nowhere"
    old = piece.old
    if not old:
        return PatchError(
            f"{shown(path)}: a hunk that only adds lines does not say where",
            advice="Give at least one line of context with it.",
        )
    why = f" ({doubts[-1]})" if doubts else ""
    at = _nearest(piece, ground)
    for offset, line in enumerate(old):
        found = ground.bodies[at + offset] if at + offset < len(ground) else None
        if found is None or key_of(found) != key_of(line.text):
            there = "the end of the file" if found is None else _quoted(found)
            return PatchError(
                f"{what}; nearest is line {at + 1}, where line {at + offset + 1} differs: "
                f"expected {_quoted(line.text)}, found {there}{why}",
                advice=_ADVICE,
            )
    return PatchError(
        f"{what}; nearest is line {at + 1}, where line {at + len(old)} differs: "
        "expected the end of the file without a line feed, found a line feed",
        advice=_ADVICE,
    )


def already_there(piece: Piece, ground: Ground) -> int:
    """Return the number of the line where the new lines of a piece stand with what is around them; 0 for nowhere."""
    new = [key_of(line.text) for line in piece.lines if line.sign != "-"]
    added = [key_of(line.text) for line in piece.lines if line.sign == "+"]
    if len(new) < 2 or not any(not is_trivial(key) for key in added or new):
        return 0
    found = ground.find(new, 1)
    return found[0] + 1 if found else 0


def _nearest(piece: Piece, ground: Ground) -> int:
    """Return the index where most of the old lines stand; the header's own where none that is rare in the file does."""
    start = piece.start or 0
    header = min(start, max(len(ground) - 1, 0))
    votes: Counter[int] = Counter()
    for offset, key in enumerate(piece.keys):
        places = ground.places.get(key, ())
        if key.strip() and len(places) <= _OFTEN:
            votes.update(place - offset for place in places if place >= offset)
    return min(votes, key=lambda at: (-votes[at], abs(at - header)), default=header)


def _quoted(body: str) -> str:
    text = "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char for char in body)
    return repr(shown(text, 120))
