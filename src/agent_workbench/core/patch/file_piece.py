"""A piece of a file, found again in the file as it is now, and replaced by its new text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.docstrings import with_kept_docstrings
from agent_workbench.core.patch.file_lines import FileLines, LineEdit, line_end
from agent_workbench.core.patch.left_out_text import defined_names, with_left_out
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileContent

BOM = "\ufeff"
_INDENT = re.compile(r"[ \t]*")
_NOTHING = frozenset({"", "...", "…", "# ..."})


class FilePiece(Struct, frozen=True):
    """Lines of a file that were shown under a number: where they were, and their text without line ends.

    `versions` are the texts that the piece had, the newest last: one of them stands in the file. `imports`: it is those
    of its file. `whole`: it is all of its file, so that its new text may not be empty. `short`: its
    long docstrings were shown by their first lines.
    """

    number: int
    path: str
    first_line: int
    versions: tuple[tuple[str, ...], ...]
    imports: bool = False
    whole: bool = False
    short: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The newest text of the piece."""
        return self.versions[-1]

    @property
    def place(self) -> str:
        """Location as `path:first-last`, as it was shown."""
        return f"{self.path}:{self.first_line}-{self.first_line + len(self.lines) - 1}"


def locate(piece: FilePiece, lines: Sequence[str]) -> range | None:
    """Return the indices of the piece in these lines of its file; None if it is not there, or not in one place only.

    `lines` have no line ends. The place where it was shown comes first, then the only place with that text.
    """
    for version in reversed(piece.versions):
        start = piece.first_line - 1
        if tuple(lines[start : start + len(version)]) == version:
            return range(start, start + len(version))
        places = _places(version, lines)
        if len(places) == 1:
            return range(places[0], places[0] + len(version))
    return None


def _places(wanted: Sequence[str], lines: Sequence[str]) -> list[int]:
    if not wanted:
        return []
    size = len(wanted)
    starts = [at for at, line in enumerate(lines) if line == wanted[0] and at + size <= len(lines)]
    return [at for at in starts if tuple(lines[at : at + size]) == tuple(wanted)][:2]


class RewrittenFile(Struct, frozen=True):
    """The new content of a file, the pieces as they stand in it, in the order of the answer, and the repairs."""

    content: FileContent
    pieces: tuple[FilePiece, ...]
    repairs: tuple[str, ...]


def rewrite_file(content: FileContent, rewrites: Iterable[tuple[FilePiece, Sequence[str]]]) -> RewrittenFile:
    """Return the file with the new text of each piece, and a sentence for each repair.

    Line ends, byte order mark and the end of the last line follow the file. A uniform shift of the indentation is
    repaired, the beginnings of the blocks around the piece are dropped, and a definition that the new text leaves out
    stays, as does a docstring that was not shown whole. Raises `PatchError` for a piece that is not there any more, for
    pieces that overlap, for text that was left out in another way, and for an empty text of a whole file.
    """
    file = FileLines(content.data)
    edits: list[LineEdit] = []
    texts: list[tuple[FilePiece, Sequence[str]]] = []
    repairs: list[str] = []
    for piece, written in rewrites:
        found = locate(piece, file.bare)
        if found is None:
            raise PatchError(
                f"piece {piece.number} is not in {shown(piece.path)} any more: it was {piece.place}",
                advice="read_file shows the lines as they are now",
            )
        old = file.bare[found.start : found.stop]
        body, dropped = _without_heads(piece, file.bare[: found.start], old, written)
        lines, repaired = _shifted(piece, old, _without_margins(body, old))
        repaired = (*dropped, *repaired)
        lines, kept = with_left_out(f"piece {piece.number}", piece.path, old, lines, whole=len(old) == len(file))
        repaired += kept
        if piece.short:
            lines, names = with_kept_docstrings(old, lines)
            repaired += tuple(f"the docstring of {name} stayed as before" for name in names)
        edits.append(LineEdit(found.start, found.stop, _ended(file, found, lines)))
        texts.append((piece, lines))
        repairs += repaired
    ordered = sorted(edits, key=lambda edit: edit.start)
    if any(after.start < before.end for before, after in pairwise(ordered)):
        raise PatchError(
            f"two of the pieces of {shown(texts[0][0].path)} overlap", advice="rewrite the larger one, or one at a time"
        )
    pieces = tuple(_as_rewritten(piece, lines, edit, edits) for (piece, lines), edit in zip(texts, edits, strict=True))
    return RewrittenFile(FileContent(b"".join(file.edited(ordered)), content.executable), pieces, tuple(repairs))


def _as_rewritten(piece: FilePiece, lines: Sequence[str], own: LineEdit, edits: Sequence[LineEdit]) -> FilePiece:
    grown = sum(
        len(each.added) - (each.end - each.start) for each in edits if each.end <= own.start and each is not own
    )
    return replace(piece, first_line=own.start + grown + 1, versions=(*piece.versions, tuple(lines)))


def _without_margins(written: Sequence[str], old: Sequence[str]) -> Sequence[str]:
    """Return the text with as many blank lines at its start and end as the old one has there."""
    body = list(written)
    for at in (0, -1):
        while body and not body[at].strip():
            del body[at]
    if not body or not any(line.strip() for line in old):
        return body
    head = next(at for at, line in enumerate(old) if line.strip())
    tail = next(at for at, line in enumerate(reversed(old)) if line.strip())
    return [*old[:head], *body, *old[len(old) - tail :]]


def _without_heads(
    piece: FilePiece, above: Sequence[str], old: Sequence[str], written: Sequence[str]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the text without the lines that begin the blocks around it, and the repair.

    The prompt shows `class Cart:` above a method of it, and a small model writes it again.
    """
    heads = set(_heads(above, old)).difference(map(str.strip, old))
    again = tuple(takewhile(lambda line: line in heads or line in _NOTHING, map(str.strip, written)))
    rest = written[len(again) :]
    known = defined_names(old)
    if heads.isdisjoint(again) or not rest or (known and set(known).isdisjoint(defined_names(rest))):
        return written, ()
    first = next(line for line in again if line in heads)
    return rest, (f"{shown(first)} stands above piece {piece.number}, so it was dropped",)


def _heads(above: Sequence[str], old: Sequence[str]) -> Iterator[str]:
    """Yield the lines ending in a colon that begin the blocks around a piece, the innermost first."""
    inner = _first_indent(old) or ""
    for line in reversed(above):
        if line.strip() and len(_indent(line)) < len(inner):
            inner = _indent(line)
            if line.rstrip().endswith(":"):
                yield line.strip()


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


def _shifted(piece: FilePiece, old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the new text with the indentation of the old one, and the repair; raise `PatchError` if it differs."""
    before, after = _first_indent(old), _first_indent(new)
    if before is None or after is None or before == after:
        return new, ()
    bom = BOM if old[0].startswith(BOM) else ""
    if bom and before == after.removeprefix(bom):
        return new, ()
    outer = min((_indent(line) for line in new if line.strip()), key=len)
    if before.endswith(after) and outer == after:
        more = before.removesuffix(after) if after else before
        lines = [more + line if line.strip() else line for line in new]
    elif after.endswith(before) and all(line.startswith(after[len(before) :]) for line in new if line.strip()):
        less = len(after) - len(before)
        lines = [line[less:] if line.strip() else line for line in new]
    else:
        raise PatchError(
            f"piece {piece.number} of {shown(piece.path)} is indented in another way than the file",
            advice=f"its first line begins with {len(before)} blanks; keep the indentation of the piece",
        )
    return lines, (f"piece {piece.number} was indented as the file is",)


def _first_indent(lines: Sequence[str]) -> str | None:
    first = next((line for line in lines if line.strip()), None)
    return None if first is None else _indent(first.removeprefix(BOM))


def _ended(file: FileLines, found: range, lines: Sequence[str]) -> tuple[bytes, ...]:
    """Return the lines with the line ends of the replaced ones, and the end of the file as it was."""
    ends = [line_end(raw) for raw in file.raws[found.start : found.stop] if line_end(raw)]
    ends = ends or [line_end(raw) for raw in file.raws if line_end(raw)] or [b"\n"]
    end = max(set(ends), key=ends.count)
    raws = [line.encode("utf-8", "surrogateescape") + end for line in lines]
    if raws and found.stop == len(file) and not file.terminated:
        raws[-1] = raws[-1].removesuffix(end)
    first = file.raws[found.start] if found.start < len(file) else b""
    bom = BOM.encode()
    if raws and found.start == 0 and first.startswith(bom) and not raws[0].startswith(bom):
        raws[0] = bom + raws[0]
    return tuple(raws)
