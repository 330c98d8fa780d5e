"""Diff of pieces while the model rewrites them: their text so far against the part of the old text that it reached."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.patch.alignment import shared_blocks
from agent_workbench.core.patch.rewrite.answer_body import read_unfinished
from agent_workbench.core.state.file_pieces import OfferedPieces
from agent_workbench.core.text.sanitizer import sanitize_line

MOST_SKIPPED = 20
"""Old lines that the new text may be ahead of; a bare bracket that matches far below would make all between deleted."""


def streamed_diff(pieces: OfferedPieces, body: str) -> str:
    """Return the unified diff of an unfinished answer. Old lines below what is written so far are not in it."""
    known = {piece.number: piece for piece in pieces.pieces}
    hunks: list[str] = []
    for written in read_unfinished(body):
        piece = None if written.path else known.get(written.number)
        path = sanitize_line(written.path or (piece.path if piece is not None else ""), 200)
        if piece is not None:
            hunks += [f"--- a/{path}", f"+++ b/{path}", *_hunk(piece.first_line, piece.lines, written.lines)]
        elif path:
            hunks += ["--- /dev/null", f"+++ b/{path}", *_hunk(0, (), written.lines)]
    return "".join(f"{line}\n" for line in hunks)


def _hunk(first_line: int, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    blocks = shared_blocks([(line, True) for line in old[: len(new) + MOST_SKIPPED]], [(line, True) for line in new])
    end = blocks[-1].old + blocks[-1].size if blocks else 0
    yield f"@@ -{first_line},{end} +{max(1, first_line)},{len(new)} @@"
    at_old = at_new = 0
    for block in blocks:
        yield from (f"-{line}" for line in old[at_old : block.old])
        yield from (f"+{line}" for line in new[at_new : block.new])
        yield from (f" {line}" for line in new[block.new : block.new + block.size])
        at_old, at_new = block.old + block.size, block.new + block.size
    yield from (f"+{line}" for line in new[at_new:])
