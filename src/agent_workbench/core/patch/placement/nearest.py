"""What to say of a hunk that stands nowhere: the nearest place, and what differs there."""

from collections.abc import Sequence

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import Ground, is_trivial, key_of
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.mismatch import misfit, nearest_place
from agent_workbench.core.patch.placement.pieces import Piece


def nowhere(path: str, piece: Piece, ground: Ground, doubts: Sequence[str] = ()) -> PatchError:
    """Return the error for a piece that stands nowhere, or nowhere for certain: `doubts` say why."""
    what = f"{shown(path)}: the old lines of {piece_name(piece)} stand nowhere"
    old = piece.old
    if not old:
        return PatchError(
            f"{shown(path)}: a hunk that only adds lines does not say where",
            advice="Give at least one line of context with it.",
        )
    why = f" ({doubts[-1]})" if doubts else ""
    start = min(piece.start or 0, max(len(ground) - 1, 0))
    at = nearest_place(piece.keys, ground.keys, start)
    return misfit(what, [line.text for line in old], ground.bodies, at, same=_same, why=why)


def _same(one: str, other: str) -> bool:
    return key_of(one) == key_of(other)


def piece_name(piece: Piece) -> str:
    """Return what a message calls the hunk of a piece."""
    numbers = piece.hunk.numbers
    return f"the hunk at line {numbers.old_start}" if numbers is not None else f"hunk {piece.number + 1}"


def already_there(piece: Piece, ground: Ground) -> int:
    """Return the number of the line where the new lines of a piece stand with what is around them; 0 for nowhere."""
    new = [key_of(line.text) for line in piece.lines if line.sign != "-"]
    added = [key_of(line.text) for line in piece.lines if line.sign == "+"]
    if len(new) < 2 or not any(not is_trivial(key) for key in added or new):
        return 0
    found = ground.find(new, 1)
    return found[0] + 1 if found else 0
