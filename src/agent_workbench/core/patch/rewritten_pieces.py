"""Reader of rewritten pieces: heads that name a piece or a new file, each with its whole new text between fences.

The form of one is a line `Piece 2` or `New file shop/cart.py`, a fence of at least three back-ticks, the text, and the
same fence. A fence inside of the text is text where it is shorter than the one around it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown

MOST_REWRITES = 8
"""Number of pieces that one answer may rewrite."""
MOST_HEAD_CHARS = 500
PIECE, NEW_FILE = "Piece", "New file"
_FENCE = re.compile(r"(?P<ticks>`{3,})(?P<word>[^`\n]*)")
_HEAD = re.compile(r"[#*\s]*(?:piece|file)?[\s*#:]*(?P<number>[0-9]{1,4})\b[^\n]{0,300}", re.IGNORECASE)
_NEXT_STEP = re.compile(r"[*_]{0,2}(?:Thought|Action|Observation)[*_]{0,2}:")
_NEW = re.compile(r"[#*\s]*new[ \t]+file[\s*:]+`?(?P<path>[^`*\n]{1,400}?)`?[*:\s]*", re.IGNORECASE)


class RewrittenPiece(Struct, frozen=True):
    """The new text of one piece: of the piece with this number, or of a new file at `path`.

    `lines` have no line ends. Number 0 without a path: the answer did not name the piece.
    """

    lines: tuple[str, ...]
    number: int = 0
    path: str = ""


def read_rewrites(body: str) -> tuple[RewrittenPiece, ...]:
    """Return the rewritten pieces in the body of an answer, in its order.

    Raises `PatchError` if there is none, if a fence is not closed, or if one piece is rewritten twice.
    """
    found = tuple(_read(body.split("\n")))
    if not found:
        raise PatchError(
            "no rewritten piece was found",
            advice=f"write a line `{PIECE} <number>`, then its whole new text between two lines of three back-ticks",
        )
    if len(found) > MOST_REWRITES:
        raise PatchError(f"{len(found)} pieces are rewritten at once", advice=f"rewrite at most {MOST_REWRITES}")
    names = [each.path or str(each.number) for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise PatchError(f"piece {shown(twice)} is rewritten twice", advice="give each piece one new text")
    return found


def read_unfinished(body: str) -> tuple[RewrittenPiece, ...]:
    """Return the rewritten pieces of an answer that still arrives; the last one may lack lines."""
    return tuple(islice(_read(body.split("\n"), unfinished=True), MOST_REWRITES))


def _read(lines: Sequence[str], *, unfinished: bool = False) -> Iterator[RewrittenPiece]:
    head, at = "", 0
    while at < len(lines):
        if _NEXT_STEP.match(lines[at]):
            return  # One answer is one step.
        opened = _FENCE.fullmatch(lines[at].strip())
        if opened is None:
            head = lines[at] if lines[at].strip() else head
            at += 1
            continue
        end = _closing(lines, at + 1, opened["ticks"])
        if end is None and unfinished:
            end = len(lines) - 1  # The last line has only begun.
        if end is None:
            raise PatchError(
                "the text between the fences has no end, so the answer was cut or is not complete",
                advice="give a shorter piece its whole new text",
            )
        yield _named(head, tuple(line.removesuffix("\r") for line in lines[at + 1 : end]))
        head, at = "", end + 1


def _closing(lines: Sequence[str], start: int, ticks: str) -> int | None:
    """Return the index of the line that closes a fence, None without one."""
    return next((at for at in range(start, len(lines)) if lines[at].rstrip() == ticks), None)


def _named(head: str, lines: tuple[str, ...]) -> RewrittenPiece:
    # A head is short; what a model writes in place of one may be long and all blanks, which the patterns read slowly.
    if len(head) > MOST_HEAD_CHARS:
        return RewrittenPiece(lines)
    if new := _NEW.fullmatch(head):
        return RewrittenPiece(lines, path=new["path"].strip())
    if old := _HEAD.fullmatch(head):
        return RewrittenPiece(lines, number=int(old["number"]))
    return RewrittenPiece(lines)


def fence_for(text: str) -> str:
    """Return a fence that no line of `text` closes: three back-ticks, or one more than the longest run in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)
