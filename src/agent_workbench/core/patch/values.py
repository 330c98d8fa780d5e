"""What a parsed diff is made of, and what applying it changes."""

from enum import StrEnum

from msgspec import Struct


class LineKind(StrEnum):
    """The first character of a line in a hunk."""

    CONTEXT = " "
    REMOVED = "-"
    ADDED = "+"


class HunkLine(Struct, frozen=True):
    """One line of a hunk.

    `text` is what stands before the line feed: a carriage return of a CRLF file belongs to it. `newline` is False
    before `\\ No newline at end of file`.
    """

    kind: LineKind
    text: str
    newline: bool = True


class Hunk(Struct, frozen=True):
    """A contiguous change; `id` is the SHA-256 of path, old and new lines. Line numbers are hints, counted from 1.

    `section` is what stands behind the second `@@`; it is shown and never matched.
    """

    id: str
    old_start: int
    new_start: int
    lines: tuple[HunkLine, ...]
    section: str = ""

    @property
    def old(self) -> tuple[HunkLine, ...]:
        """The lines that must stand in the file."""
        return tuple(line for line in self.lines if line.kind is not LineKind.ADDED)

    @property
    def changes(self) -> tuple[int, ...]:
        """The numbers, from 0, of the lines that are added or removed."""
        return tuple(number for number, line in enumerate(self.lines) if line.kind is not LineKind.CONTEXT)

    @property
    def new(self) -> tuple[HunkLine, ...]:
        """The lines that stand there afterwards."""
        return tuple(line for line in self.lines if line.kind is not LineKind.REMOVED)


class FileOperation(StrEnum):
    """What a diff does to a file."""

    MODIFY = "modify"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


class FilePatch(Struct, frozen=True):
    """The change of one file.

    `old_path` equals `path` unless it is renamed. `mode` is 0o100644, 0o100755 or None (kept; not executable if new).
    """

    operation: FileOperation
    path: str
    old_path: str
    hunks: tuple[Hunk, ...]
    mode: int | None = None


class Patch(Struct, frozen=True):
    """A whole diff."""

    files: tuple[FilePatch, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is written or removed, in order, once."""
        return tuple(dict.fromkeys(path for each in self.files for path in (each.old_path, each.path)))


class LeftOut(Struct, frozen=True):
    """What the user leaves out of a diff, and why.

    `id` is a hunk's, or that of a change without hunks. `lines` are the numbers, from 0, of lines of the hunk that are
    added or removed by it; without any, all of it is left out.
    """

    id: str
    lines: tuple[int, ...] = ()
    reason: str = ""


class FileContent(Struct, frozen=True):
    """A regular file: its bytes and whether it is executable."""

    data: bytes
    executable: bool = False


class FileChange(Struct, frozen=True):
    """What one path becomes: `after` None removes it, `before` None says that it must not exist yet."""

    path: str
    before: FileContent | None
    after: FileContent | None


class PatchBounds(Struct, frozen=True):
    """The limits a diff is held to before and after it is parsed.

    Every path must match one of `write_globs` and none of `protected_globs`; for the latter, spellings that a
    case-insensitive disk takes for the same name count as the same.
    """

    max_bytes: int = 1_000_000
    max_files: int = 100
    write_globs: tuple[str, ...] = ("**",)
    protected_globs: tuple[str, ...] = ()


OWN_BOUNDS = PatchBounds(max_bytes=50_000_000, max_files=10_000)
"""For diffs that we made ourselves from one that was held to the task's bounds."""
