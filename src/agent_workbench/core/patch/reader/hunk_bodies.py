"""A diff as it came: its lines, hunks and files before anything of it is known to be right."""

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.reader.sections import RawHunk, Section
from agent_workbench.core.patch.values import HunkLine, LineKind

UNSIGNED = "?"
"""The sign of a line that has none: context whose space was lost, or no part of the hunk."""


class LooseLine(Struct, frozen=True):
    """A line of a hunk: `sign` is one of ` -+?`; `newline` is False before the marker of a missing line feed."""

    sign: str
    text: str
    newline: bool = True

    @property
    def is_context(self) -> bool:
        """Whether the line says what stands in the file and stays."""
        return self.sign in {" ", UNSIGNED}

    @property
    def forms(self) -> tuple[str, ...]:
        """What may stand in the file for it: without its sign or, where that was lost, with what looks like one."""
        return (self.text, f" {self.text}") if self.sign == " " else (self.text,)

    def as_hunk_line(self) -> HunkLine:
        """Return the line as a value of a patch."""
        return HunkLine(LineKind.CONTEXT if self.is_context else LineKind(self.sign), self.text, self.newline)


class Numbers(Struct, frozen=True):
    """What a hunk's header says: where, counted from 1, and how many lines."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int


class LooseHunk(Struct, frozen=True):
    """A hunk as it came; `numbers` is None where the header has none that can be read.

    `counted`: the header's counts are those of the lines. `tail` of the last lines have no sign and may be prose.
    """

    header: str
    numbers: Numbers | None
    section: str
    lines: tuple[LooseLine, ...]
    counted: bool
    tail: int = 0

    @property
    def added(self) -> int:
        """How many lines the hunk makes the file grow by; negative where it shrinks."""
        signs = [line.sign for line in self.lines]
        return signs.count("+") - signs.count("-")


class LooseFile(Struct, frozen=True):
    """What a diff says of one file: its headers, whose own hunks are left empty, and its hunks."""

    section: Section
    hunks: tuple[LooseHunk, ...]


class Reading(Struct, frozen=True):
    """One way to read a text as a diff; `repairs` says what was mended in the text for it."""

    files: tuple[LooseFile, ...]
    repairs: tuple[str, ...] = ()
    translated: bool = False


def as_loose(section: Section) -> LooseFile:
    """Return a section that was read to the letter."""
    bare = Section(section.line, section.git, section.extended, section.old, section.new, ())
    return LooseFile(bare, tuple(map(_hunk, section.hunks)))


def read_lines(body: tuple[str, ...] | list[str]) -> tuple[LooseLine, ...]:
    """Return the lines of a hunk's body; markers are taken into the lines before them, empty lines are context."""
    lines: list[LooseLine] = []
    for raw in body:
        if raw.startswith("\\") and lines:
            if not lines[-1].newline:
                raise PatchError(
                    f"`{shown(raw)}` stands twice behind {shown(lines[-1].text)}: the line of the second one is lost",
                    advice="Give each marker behind the line that it belongs to, once.",
                )
            lines[-1] = LooseLine(lines[-1].sign, lines[-1].text, newline=False)
        elif raw in {"", "\r"}:
            lines.append(LooseLine(" ", raw))
        elif raw[0] in " -+":
            lines.append(LooseLine(raw[0], raw[1:]))
        else:
            lines.append(LooseLine(UNSIGNED, raw))
    return tuple(lines)


def _hunk(raw: RawHunk) -> LooseHunk:
    numbers = Numbers(raw.old_start, raw.old_count, raw.new_start, raw.new_count)
    header = f"@@ -{raw.old_start},{raw.old_count} +{raw.new_start},{raw.new_count} @@"
    return LooseHunk(header, numbers, raw.section, read_lines(raw.body), counted=True)
