"""A piece of a file, found again in the file as it is now, and replaced by its new text."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PartialRewrite, PatchError
from agent_workbench.core.patch.file_lines import FileLines, LineEdit, line_end
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileContent

BOM = "\ufeff"
_INDENT = re.compile(r"[ \t]*")
_COMMENTS = ("#", "//", "/*", "--", "<!--", ";", "%", "...", "…", "(...", "[...")
LEAST_CLOSING_LINES = 3
"""A shorter string or comment at the end of a file is not kept if a new text leaves it out."""
# A string or comment that is a statement of its own, at the start of a line; with its prefix in Python.
_BLOCKS = (('"""', '"""'), ("'''", "'''"), ("/*", "*/"), ("<!--", "-->"), ("{-", "-}"), ("=begin", "=end"))
_LINE_COMMENTS = ("#", "//", "--", ";", "%")
_REST = frozenset({"rest", "remaining", "remainder", "existing", "other", "previous", "unchanged", "omitted", "more"})
_GONE = frozenset({"unchanged", "same", "omitted", "before", "above", "code", "here"})
_DEFINITION = re.compile(
    r"[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub(?:\([a-z]+\))?|unsafe)\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|module|impl|type)\s+(?:\([^)]*\)\s*)?"
    r"(?P<name>[A-Za-z_$][\w$]*)"
)


class FilePiece(Struct, frozen=True):
    """Lines of a file that were shown under a number: where they were, and their text without line ends.

    `versions` are the texts that the piece had, the newest last: one of them stands in the file. `imports`: it is those
    of its file.
    """

    number: int
    path: str
    first_line: int
    versions: tuple[tuple[str, ...], ...]
    imports: bool = False

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
    repaired. Raises `PatchError` for a piece that is not there any more, for pieces that overlap, for text that was
    left out of the answer, and for an empty text of a whole file.
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
        lines, repaired = _shifted(piece, old, _without_margins(written, old))
        _check_complete(piece, old, lines, whole=len(old) == len(file))
        if len(old) == len(file):
            lines, kept = _with_closing_text(piece, old, lines)
            repaired += kept
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


def _with_closing_text(
    piece: FilePiece, old: Sequence[str], new: Sequence[str]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the new text of a whole file with the closing string or comment that it lost, and the repair.

    A small model often ends a file with its last definition. Code at the end is not kept: it may be meant to go.
    """
    start = _closing_text(old)
    text = [line.strip() for line in old[start:] if line.strip()]
    standing = {line.strip() for line in new}
    words = [line for line in text if any(map(str.isalpha, line))]
    follows = any(line.strip() for line in old[:start])
    if not new or not follows or len(text) < LEAST_CLOSING_LINES or any(line in standing for line in words):
        return new, ()
    body = list(new)
    while body and not body[-1].strip():
        body.pop()
    while start and not old[start - 1].strip():
        start -= 1
    return [*body, *old[start:]], (f"the text at the end of {shown(piece.path)} was kept: the new text left it out",)


def _closing_text(lines: Sequence[str]) -> int:
    """Return the index at which the string or comment of many lines begins that ends a file; its length without one."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if not end:
        return len(lines)
    last = lines[end - 1].strip()
    for opening, closing in _BLOCKS:
        if last.endswith(closing) and last.count(closing) == 1:
            openings = (at for at in range(end - 2, -1, -1) if opening in lines[at])
            start = next(openings, len(lines))
            alone = start < len(lines) and lines[start].startswith(opening)
            return start if alone and lines[start].count(closing) == int(opening == closing) else len(lines)
    start = end
    while start and lines[start - 1].startswith(_LINE_COMMENTS):
        start -= 1
    return start if start < end else len(lines)


def _first_indent(lines: Sequence[str]) -> str | None:
    first = next((line for line in lines if line.strip()), None)
    return None if first is None else _indent(first.removeprefix(BOM))


def _check_complete(piece: FilePiece, old: Sequence[str], new: Sequence[str], *, whole: bool) -> None:
    """Raise `PartialRewrite` for a text in which something was left out, `PatchError` for a whole file that is gone."""
    if not new and whole:
        raise PatchError(
            f"the whole text of {shown(piece.path)} would be gone",
            advice="give the file its whole new text; a file is removed by a diff only",
        )
    standing = {line.strip() for line in old}
    for line in new:
        if _stands_for_text(line.strip()) and line.strip() not in standing:
            raise PartialRewrite(
                f"piece {piece.number} leaves text out: {line.strip()[:80]!r}",
                advice="write every line of the piece, those that stay too",
            )
    if not new:
        return
    kept = defined_names(new)
    if lost := [name for name in dict.fromkeys(defined_names(old)) if name not in kept]:
        names = set(lost)
        if kept and len(kept) < len(set(defined_names(old))) and not _renamed(old, new, names):
            raise PartialRewrite(
                f"piece {piece.number} lost {', '.join(lost[:5])}",
                advice=f"{shown(piece.place)} has to stay complete: write all of its definitions",
            )


def _stands_for_text(line: str) -> bool:
    """Return True for a comment in place of lines that were left out, such as `# ... rest unchanged`."""
    if not line.startswith(_COMMENTS):
        return False
    words, dots = set(re.findall("[a-z]+", line.lower())), "..." in line or "…" in line
    if not words:
        return dots and line not in {"...", "…"}
    rest = words & _REST
    return bool(rest) and (dots or (rest != {"existing"} and bool(words & _GONE) and len(words) <= 8))


def _renamed(old: Sequence[str], new: Sequence[str], lost: set[str]) -> bool:
    """Return True if the new text has other definitions in place of the lost ones."""
    added = set(defined_names(new)) - set(defined_names(old))
    return len(added) >= len(lost)


def defined_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names that these lines define, for the languages whose definitions begin with a keyword."""
    return tuple(found["name"] for line in lines if (found := _DEFINITION.match(line)))


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
