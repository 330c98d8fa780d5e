"""File in the grammar of diffs: its lines, and those of them that a diff may contain."""

from collections.abc import Collection

from msgspec import Struct

from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.values import FileContent

MAX_LINE_BYTES = 4_000
_CONTROLS = frozenset(map(chr, [*range(0x20), 0x7F])) - {"\t", "\f"}


class EditableFile(Struct, frozen=True):
    """A file that a diff may change.

    `lines` are all its lines, without their line ends. `offered` are the indices of those that a diff may contain: each
    is text that fits in one line of a diff. `terminated` is True if the last line has a line feed.
    """

    path: str
    lines: tuple[str, ...]
    offered: frozenset[int]
    terminated: bool = True

    @property
    def open_end(self) -> int | None:
        """The index of a last line without a line feed, None if there is none."""
        return None if self.terminated or not self.lines else len(self.lines) - 1

    @property
    def whole(self) -> bool:
        """True if every line is offered, so that the file may be deleted."""
        return len(self.offered) == len(self.lines)


def text_lines(content: FileContent) -> FileLines | None:
    """Return the lines of a text file, None for a file that contains a NUL."""
    return None if b"\0" in content.data else FileLines(content.data)


def editable(path: str, lines: FileLines, shown: Collection[int]) -> EditableFile:
    """Return the file with those of the `shown` lines offered that fit in a line of a diff."""
    fit = frozenset(at for at in shown if _can_be_written(lines.bare[at]))
    return EditableFile(path, lines.bare, fit, lines.terminated)


def _can_be_written(line: str) -> bool:
    if not _CONTROLS.isdisjoint(line):
        return False
    try:
        return len(line.encode()) <= MAX_LINE_BYTES
    except UnicodeEncodeError:
        return False
