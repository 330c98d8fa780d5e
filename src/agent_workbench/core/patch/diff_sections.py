"""File sections of a diff: one scanner finds the headers, the hunks and the end of each hunk."""

import re
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.hunk_bodies import (
    HeaderNumbers,
    WrittenHunk,
    read_lines,
    read_numbers,
    unsigned_tail,
)
from agent_workbench.core.patch.hunk_extent import (
    BULLET,
    HUNK,
    ends_hunk,
    has_both_names,
    lenient_size,
    line_at,
    renames,
    signed_size,
    strict_size,
)
from agent_workbench.core.patch.paths import shown

_EXTENDED_HEADER = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|rename from|rename to|copy from|copy to"
    r"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)
_BINARY = ("GIT binary patch", "Binary file ", "Binary files ")
_BLANK = frozenset({"", "\r"})


class Mode(Enum):
    """The assumptions of the scanner about the text.

    Strict: the text is a diff and nothing else, and its hunk headers count correctly. Constrained: the grammar of an
    answer admitted the text, so that its signs are correct, but its numbers are arbitrary. Lenient: there may be text
    around the diff, and lines, counts and headers may be damaged.
    """

    STRICT = "strict"
    CONSTRAINED = "constrained"
    LENIENT = "lenient"


class FileSection(Struct, frozen=True):
    """The part of a diff for one file.

    `line` counts from 1. `git` is the text after `diff --git` (None in a plain diff). `extended` are git's further
    headers. `old` and `new` are the texts after `---` and `+++` (None if the line is missing).
    """

    line: int
    git: str | None
    extended: dict[str, str]
    old: str | None
    new: str | None
    hunks: tuple[WrittenHunk, ...] = ()

    @property
    def name(self) -> str:
        """The name of the file in messages, before its path is known for certain."""
        given = next(
            (each for each in (self.new, self.old, self.extended.get("rename to")) if each not in {None, "/dev/null"}),
            self.git,
        )
        return f"{shown(given or '')} (line {self.line} of the diff)"


class ScannedDiff(Struct, frozen=True):
    """The sections of a diff. `skipped`: text around it was left out.

    `ambiguous`: a line inside a hunk of the counted size would end a hunk in lenient mode.
    """

    sections: tuple[FileSection, ...]
    skipped: bool = False
    ambiguous: bool = False


def scan_sections(lines: Sequence[str], mode: Mode) -> ScannedDiff:
    """Return the sections of a diff, one for each file.

    Raises `PatchError` if there is no diff, for binary changes, and for everything that `mode` does not allow.
    """
    scanner = _Scanner(lines, mode)
    sections = tuple(scanner.sections())
    return ScannedDiff(sections, scanner.skipped, scanner.ambiguous)


class _Scanner:
    """Walks over the lines; `at` is the index of the next one."""

    def __init__(self, lines: Sequence[str], mode: Mode) -> None:
        self.lines = lines
        self.mode = mode
        self.at = 0
        self.skipped = False
        self.ambiguous = False

    def sections(self) -> list[FileSection]:
        found: list[FileSection] = []
        while self.at < len(self.lines):
            if self._starts_file(self.at):
                found.append(self._section())
            else:
                self._skip(self.lines[self.at], behind=bool(found))
                self.at += 1
        if found:
            return found
        if self.mode is Mode.STRICT:
            raise PatchError("the diff is empty", advice="Give at least one file with one hunk.")
        raise PatchError(
            "there is no diff in it", advice="Give the unified diff alone: --- a/<path>, +++ b/<path>, then its hunks."
        )

    @property
    def _current(self) -> str:
        return line_at(self.lines, self.at)

    def _starts_file(self, at: int) -> bool:
        line = line_at(self.lines, at)
        if has_both_names(self.lines, at) or (line.startswith("diff --git ") and self.mode is not Mode.CONSTRAINED):
            return True
        if self.mode is Mode.STRICT:
            return False
        half = (
            self.mode is Mode.LENIENT and line.startswith(("--- ", "+++ ")) and HUNK.match(line_at(self.lines, at + 1))
        )
        return renames(self.lines, at) or bool(half)

    def _skip(self, line: str, *, behind: bool) -> None:
        """Leave out a line outside of all sections; raise if it may be a part of the diff."""
        where = f"line {self.at + 1} of the diff"
        if line.startswith(_BINARY):
            raise PatchError(f"{where}: binary changes are not taken: {shown(line)}")
        if HUNK.match(line):
            raise PatchError(
                f"{where}: a hunk stands without the lines --- and +++ before it",
                advice="Write `--- a/<path>` and `+++ b/<path>` before the first @@ of each file.",
            )
        foreign = self.mode is Mode.CONSTRAINED or (self.mode is Mode.STRICT and line not in _BLANK)
        if foreign or (_EXTENDED_HEADER.fullmatch(line) and not line.startswith("index ")):
            advice = "Give the unified diff alone: --- a/<path>, +++ b/<path>, then its hunks." if foreign else ""
            raise PatchError(f"{where} is no part of a diff: {shown(line)}", advice=advice)
        is_signed = line.startswith("+") or (line.startswith("-") and not BULLET.match(line))
        if behind and (is_signed or line.startswith("@@@")) and line.strip("-+ \t\r"):
            raise PatchError(
                f"{where} stands outside of any hunk: {shown(line)}",
                advice="Give the unified diff alone, without text between its lines.",
            )
        self.skipped = self.skipped or bool(line.strip())

    def _section(self) -> FileSection:
        start = self.at
        git, extended = None, {}
        if self._current.startswith("diff --git "):
            git = self._current.removeprefix("diff --git ")
            self.at += 1
            extended = self._extended(git)
        elif renames(self.lines, self.at):
            extended = self._extended(self._current)
        if self._current.startswith(_BINARY):
            raise PatchError(
                f"line {self.at + 1} of the diff: binary changes are not taken: {shown(git or self._current)}"
            )
        named = not extended if self.mode is Mode.CONSTRAINED else self._may_be_named()
        old = self._name("--- ") if named else None
        new = self._name("+++ ") if named else None
        empty = FileSection(start + 1, git, extended, old, new)
        hunks: list[WrittenHunk] = []
        while self._begins_hunk(empty, first=not hunks):
            hunks.append(self._hunk(empty.name))
        return FileSection(start + 1, git, extended, old, new, tuple(hunks))

    def _extended(self, name: str) -> dict[str, str]:
        """Return git's further headers; raise `PatchError` if one occurs twice."""
        found: dict[str, str] = {}
        while match := _EXTENDED_HEADER.fullmatch(self._current):
            key, value = match.groups()
            if key in found:
                if key == "rename from" and renames(self.lines, self.at):
                    break
                raise PatchError(f"{shown(name)}: the header {key} stands twice")
            found[key] = value
            self.at += 1
        return found

    def _may_be_named(self) -> bool:
        return self.mode is Mode.LENIENT or has_both_names(self.lines, self.at)

    def _name(self, sign: str) -> str | None:
        if not self._current.startswith(sign):
            return None
        self.at += 1
        return line_at(self.lines, self.at - 1)[4:]

    def _begins_hunk(self, section: FileSection, *, first: bool) -> bool:
        line = self._current
        if self.mode is Mode.CONSTRAINED:
            return line == "@@" or line.startswith("@@ -")
        if self.mode is Mode.STRICT:
            if line.startswith("@@") and section.old is None:
                raise PatchError(
                    f"{section.name}: a hunk stands without the lines --- and +++ before it",
                    advice="Write `--- a/<path>` and `+++ b/<path>` before the first @@ of each file.",
                )
            return line.startswith("@@")
        at = self.at
        while at < len(self.lines) and not self.lines[at].strip():
            at += 1
        headless = first and at == self.at and line[:1] in {" ", "-", "+"} and not self._starts_file(at)
        if HUNK.match(line_at(self.lines, at)) or (headless and line):
            self.at = at
            return True
        return False

    def _hunk(self, name: str) -> WrittenHunk:
        header = self.lines[self.at] if self.lines[self.at].startswith("@@") else ""
        numbers, section = read_numbers(header)
        if self.mode is Mode.STRICT and numbers is None:
            raise PatchError(
                f"{name}: line {self.at + 1} is no hunk header: {shown(header)}",
                advice="A hunk begins with @@ -<line>,<count> +<line>,<count> @@.",
            )
        self.at += bool(header)
        size, counted = self._size(name, header, numbers)
        if not size:
            raise PatchError(f"{name}: the hunk {shown(header)} has no lines")
        body = tuple(self.lines[self.at : self.at + size])
        self.at += size
        lines = read_lines(body)
        if self.mode is Mode.CONSTRAINED:
            return WrittenHunk(None, "", body, lines)
        return WrittenHunk(numbers, section, body, lines, counted, 0 if counted else unsigned_tail(lines))

    def _size(self, name: str, header: str, numbers: HeaderNumbers | None) -> tuple[int, bool]:
        """Return the number of lines of the body at this index, and True if the header counts them correctly."""
        if self.mode is Mode.CONSTRAINED:
            return signed_size(self.lines, self.at), True
        if self.mode is Mode.LENIENT:
            return lenient_size(self.lines, self.at, numbers)
        size = strict_size(self.lines, self.at, numbers)
        if size is None:
            raise PatchError(
                f"{name}: the hunk {shown(header)} does not count its lines",
                advice="The numbers behind the commas are the numbers of old and of new lines.",
            )
        self.ambiguous = self.ambiguous or any(ends_hunk(self.lines, at) for at in range(self.at, self.at + size))
        return size, True
