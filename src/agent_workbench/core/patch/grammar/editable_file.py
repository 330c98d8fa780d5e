"""A file as a diff may change it now: its lines as a diff writes them, and which of them may be named."""

from collections.abc import Collection

from msgspec import Struct

from agent_workbench.core.patch import FileContent

MAX_LINE_BYTES = 4_000
_CONTROLS = frozenset(map(chr, [*range(0x20), 0x7F])) - {"\t", "\f"}


class EditableFile(Struct, frozen=True):
    """`lines` are all lines of the file, without their line ends; `offered` the places of those a diff may name.

    A line whose place is in `offered` is text that can be written in one line of a diff. `terminated` tells whether the
    last line has a line feed.
    """

    path: str
    lines: tuple[str, ...]
    offered: frozenset[int]
    terminated: bool = True

    @property
    def open_end(self) -> int | None:
        """The place of a last line that has no line feed, None where there is none."""
        return None if self.terminated or not self.lines else len(self.lines) - 1

    @property
    def whole(self) -> bool:
        """True when every line may be named, so that the file may be removed."""
        return len(self.offered) == len(self.lines)


class FileText(Struct, frozen=True):
    """A file's content as lines; a carriage return before a line feed belongs to the line's end."""

    lines: tuple[str, ...]
    terminated: bool


def text_of(content: FileContent) -> FileText | None:
    """Return the lines of a text file, None for one that holds a NUL; what is not UTF-8 becomes lone surrogates."""
    if b"\0" in content.data:
        return None
    pieces = content.data.decode("utf-8", "surrogateescape").split("\n")
    terminated = not pieces[-1]
    ended, rest = pieces[:-1], [] if terminated else pieces[-1:]
    return FileText(tuple([line.removesuffix("\r") for line in ended] + rest), terminated)


def editable(path: str, text: FileText, shown: Collection[int]) -> EditableFile:
    """Return the file with those of the `shown` lines offered that a line of a diff can hold."""
    fit = frozenset(at for at in shown if _can_be_written(text.lines[at]))
    return EditableFile(path, text.lines, fit, text.terminated)


def _can_be_written(line: str) -> bool:
    if not _CONTROLS.isdisjoint(line):
        return False
    try:
        return len(line.encode()) <= MAX_LINE_BYTES
    except UnicodeEncodeError:
        return False
