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
from agent_workbench.core.patch.paths import shown

_EXTENDED_HEADER = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|rename from|rename to|copy from|copy to"
    r"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)
_BINARY = ("GIT binary patch", "Binary file ", "Binary files ")
_BLANK = frozenset({"", "\r"})

HUNK = re.compile(r"@@(?=$|[ \t\r])")
"""The beginning of a hunk header."""
BULLET = re.compile(r"- [\w`*\"'(\[]|-+[ \t\r]*$")
"""A list item or a rule in prose, which begins like a removed line."""
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*", re.ASCII)
_SIGNATURE = re.compile(r"\d+\.\d+[\w.-]*\r?")


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


def has_both_names(lines: Sequence[str], at: int) -> bool:
    """Return True if the lines `---` and `+++` of a file are at this index."""
    return line_at(lines, at).startswith("--- ") and line_at(lines, at + 1).startswith("+++ ")


def renames(lines: Sequence[str], at: int) -> bool:
    """Return True if a rename is at this index; a line `diff --git` before it may be missing."""
    return line_at(lines, at).startswith("rename from ") and line_at(lines, at + 1).startswith("rename to ")


def line_at(lines: Sequence[str], at: int) -> str:
    """Return the line at this index, empty behind the last one."""
    return lines[at] if at < len(lines) else ""


def strict_size(lines: Sequence[str], start: int, numbers: HeaderNumbers | None) -> int | None:
    """Return the size of the body at `start` if its header counts it correctly, else None."""
    size = None if numbers is None else _counted_size(lines, start, len(lines), numbers)
    if size is None:
        return None
    at = start + size
    while at < len(lines) and lines[at] in _BLANK:
        at += 1
    goes_on = line_at(lines, at)[:1] in {" ", "-", "+", "\\"}
    return None if goes_on and not (has_both_names(lines, at) and line_at(lines, at + 2).startswith("@@ ")) else size


def signed_size(lines: Sequence[str], start: int) -> int:
    """Return the size of the body at `start` in a text whose lines all have their signs."""
    end = start
    while end < len(lines) and not (_begins_hunk(lines[end]) or has_both_names(lines, end) or renames(lines, end)):
        end += 1
    return end - start


def _begins_hunk(line: str) -> bool:
    return line == "@@" or line.startswith("@@ -")


def lenient_size(lines: Sequence[str], start: int, numbers: HeaderNumbers | None) -> tuple[int, bool]:
    """Return the likely size of the body at `start`, and True if its header counts it correctly."""
    end = start
    while end < len(lines) and not ends_hunk(lines, end):
        end += 1
    size = None if numbers is None else _counted_size(lines, start, end, numbers)
    if size is not None and _is_prose(lines[start + size : end]):
        return size, True
    while end > start and lines[end - 1] in _BLANK:
        end -= 1
    return end - start, False


def ends_hunk(lines: Sequence[str], at: int) -> bool:
    """Return True if the line at this index looks like the first line after a hunk."""
    line = lines[at]
    if line[:1] in {" ", "+"} and not line.startswith("+++ "):
        return False
    if HUNK.match(line) or line.startswith("diff --git ") or _FENCE.fullmatch(line) or renames(lines, at):
        return True
    following = line_at(lines, at + 1)
    if line in {"-- ", "--", "-- \r"}:
        return _SIGNATURE.fullmatch(following) is not None or at + 1 == len(lines)
    named = line.startswith("--- ") and following.startswith("+++ ")
    return named and bool(HUNK.match(line_at(lines, at + 2)) or line.startswith(("--- a/", "--- /dev/null")))


def _counted_size(lines: Sequence[str], start: int, end: int, numbers: HeaderNumbers) -> int | None:
    """Return the size of the body from `start` to `end` by its header's counts, None if no size satisfies both."""
    old, new = numbers.old_count, numbers.new_count
    at = start
    while (old > 0 or new > 0) and at < end:
        line = lines[at]
        sign = " " if line in {"", "\r"} else line[0]
        if sign not in " -+\\":
            return None
        old -= sign in " -"
        new -= sign in " +"
        at += 1
    if old or new or at == start:
        return None
    return at - start + (at < end and lines[at].startswith("\\"))


def _is_prose(rest: Sequence[str]) -> bool:
    """Return True if the lines after a hunk of the counted size cannot belong to it."""
    filled = [line for line in rest if line.strip()]
    if not filled:
        return True
    if filled[0].rstrip() == "--" and not rest[0].strip():
        filled = filled[1:]  # the signature of a mail
    elif filled[0][0] in " +-\\":
        return False
    return not any(line[0] == "+" or (line[0] == "-" and not BULLET.match(line)) for line in filled)
