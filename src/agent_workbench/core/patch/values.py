"""Values of a parsed diff, of the user's choice in it, and of the changes it makes to files."""

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
