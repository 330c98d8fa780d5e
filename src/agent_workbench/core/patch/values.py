"""Values of a parsed diff, of the choice in it and of its changes to files, and the SHA-256 ids that name them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

NO_NEWLINE = "\\ No newline at end of file"
"""The marker after a line without a line feed."""


class LineKind(StrEnum):
    """The first character of a line in a hunk."""

    CONTEXT = " "
    REMOVED = "-"
    ADDED = "+"


class HunkLine(Struct, frozen=True):
    """One line of a hunk.

    `text` excludes the line feed; the carriage return of a CRLF file is part of it. `newline` is False before
    `\\ No newline at end of file`.
    """

    kind: LineKind
    text: str
    newline: bool = True


class Hunk(Struct, frozen=True):
    """One contiguous change of a file.

    `id` is the SHA-256 of path, old lines and new lines. `old_start` and `new_start` count from 1. `section` is the
    text after the second `@@`; it is displayed and never matched.
    """

    id: str
    old_start: int
    new_start: int
    lines: tuple[HunkLine, ...]
    section: str = ""

    @property
    def old(self) -> tuple[HunkLine, ...]:
        """The lines that the file must contain: context and removed lines."""
        return tuple(line for line in self.lines if line.kind is not LineKind.ADDED)

    @property
    def new(self) -> tuple[HunkLine, ...]:
        """The lines that replace them: context and added lines."""
        return tuple(line for line in self.lines if line.kind is not LineKind.REMOVED)

    @property
    def changes(self) -> tuple[int, ...]:
        """The indices of the added and removed lines in `lines`."""
        return tuple(number for number, line in enumerate(self.lines) if line.kind is not LineKind.CONTEXT)


class FileOperation(StrEnum):
    """The operation of a diff on one file."""

    MODIFY = "modify"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


class FilePatch(Struct, frozen=True):
    """The change of one file.

    `old_path` equals `path` unless the file is renamed. `mode` is 0o100644, 0o100755, or None: it stays as it is, and a
    new file is not executable.
    """

    operation: FileOperation
    path: str
    old_path: str
    hunks: tuple[Hunk, ...]
    mode: int | None = None


class Patch(Struct, frozen=True):
    """A parsed diff."""

    files: tuple[FilePatch, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that are written or removed, in order and without duplicates."""
        return tuple(dict.fromkeys(path for each in self.files for path in (each.old_path, each.path)))


class LeftOut(Struct, frozen=True):
    """A hunk, or some of its lines, that the user leaves out of a diff, with the reason.

    `id` is the id of the hunk, or of a file without hunks. `lines` are indices of added or removed lines; if it is
    empty, the whole hunk is left out.
    """

    id: str
    lines: tuple[int, ...] = ()
    reason: str = ""


class HunkFate(StrEnum):
    """The decision about one hunk; `partly`: some of its lines were taken."""

    TAKEN = "taken"
    PARTLY = "partly"
    LEFT = "left"
    EDITED = "edited"


class FileContent(Struct, frozen=True):
    """A regular file: its bytes, and True if it is executable."""

    data: bytes
    executable: bool = False


class FileChange(Struct, frozen=True):
    """The change of one path. `before` None: the path must not exist yet. `after` None: it is removed."""

    path: str
    before: FileContent | None
    after: FileContent | None


class PatchBounds(Struct, frozen=True):
    """Limits of a diff, checked before and after it is parsed.

    Each path must match one of `write_globs` and none of `protected_globs`, and be none of `judges`, the files that
    decide whether the task is done. Protected globs and judges also match spellings that a case-insensitive file system
    treats as the same name.
    """

    max_bytes: int = 1_000_000
    max_files: int = 100
    write_globs: tuple[str, ...] = ("**",)
    protected_globs: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()


OWN_BOUNDS = PatchBounds(max_bytes=50_000_000, max_files=10_000)
"""Limits of diffs that the workbench rendered itself from a diff within the limits of the task."""


def hunk_id(path: str, lines: Iterable[HunkLine], occurrence: int = 0) -> str:
    """Return the SHA-256 (hex) of a hunk's path, old lines and new lines, without its line numbers.

    `occurrence` is the number of equal hunks before it in the same file, so that equal hunks get different ids.
    """
    each = tuple(lines)
    parts = [path, *([str(occurrence)] if occurrence else [])]
    parts += [_marked("-", line) for line in each if line.kind is not LineKind.ADDED]
    parts += [_marked("+", line) for line in each if line.kind is not LineKind.REMOVED]
    return _digest("\n".join(parts))


def hunk_ids(path: str, hunks: Iterable[Iterable[HunkLine]]) -> Iterator[str]:
    """Yield the id of each hunk of a file. Each hunk is given by its lines; equal hunks are numbered."""
    seen: Counter[str] = Counter()
    for lines in map(tuple, hunks):
        plain = hunk_id(path, lines)
        yield hunk_id(path, lines, seen[plain]) if seen[plain] else plain
        seen[plain] += 1


def file_id(file: FilePatch) -> str:
    """Return the SHA-256 (hex) that names a change without hunks: a rename, a mode, an empty file."""
    mode = "" if file.mode is None else f"{file.mode:o}"
    return _digest("\n".join(("file", file.operation, file.old_path, file.path, mode)))


def selectable_ids(patch: Patch) -> tuple[str, ...]:
    """Return the ids of everything in a patch that can be taken or left: its hunks, and its files without hunks."""
    return tuple(each for file in patch.files for each in (tuple(hunk.id for hunk in file.hunks) or (file_id(file),)))


def content_hash(content: FileContent | None) -> str:
    """Return the SHA-256 (hex) of a file's bytes, or the empty string if there is no file."""
    return "" if content is None else hashlib.sha256(content.data).hexdigest()


def patch_hash(text: str) -> str:
    """Return the SHA-256 (hex) of a diff's text in UTF-8."""
    return _digest(text)


def _marked(sign: str, line: HunkLine) -> str:
    return f"{sign}{line.text}" if line.newline else f"{sign}{line.text}\n\\"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
