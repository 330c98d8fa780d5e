"""Placement of the hunks of one file in a diff that may be damaged: certain, or refused."""

from collections.abc import Sequence
from itertools import pairwise

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import FileLines, LineEdit
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.certainty import are_consistent, choose
from agent_workbench.core.patch.placement.edits import PieceEdit, edits_of
from agent_workbench.core.patch.placement.line_endings import Placed, with_line_ends
from agent_workbench.core.patch.placement.locator import Locator, PieceCandidates
from agent_workbench.core.patch.placement.mismatch import piece_name
from agent_workbench.core.patch.placement.pieces import Doubt, Placement, piece_of
from agent_workbench.core.patch.reader.targets import Target


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
