"""The first reading of a diff: which line is a header, which belongs to a hunk, and where each file begins."""

import re
from collections.abc import Sequence

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown

_HUNK_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: (.*))?", re.ASCII | re.DOTALL)
EXTENDED_HEADER = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|rename from|rename to|copy from|copy to"
    r"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)
BINARY = ("GIT binary patch", "Binary file ", "Binary files ")
_BLANK = frozenset({"", "\r"})


class RawHunk(Struct, frozen=True):
    """A hunk as it stands in the text: its header's numbers, and its body's lines without their line feeds."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    body: tuple[str, ...]


class Section(Struct, frozen=True):
    """What a diff says of one file.

    `line` counts from 1. `git` is what follows `diff --git` (None in a plain diff), `extended` holds git's further
    headers, `old` and `new` are what follows `---` and `+++` (None where these lines are missing).
    """

    line: int
    git: str | None
    extended: dict[str, str]
    old: str | None
    new: str | None
    hunks: tuple[RawHunk, ...]

    @property
    def name(self) -> str:
        """The file as a message may call it before its name is known for good."""
        given = next(
            (each for each in (self.new, self.old, self.extended.get("rename to")) if each not in {None, "/dev/null"}),
            self.git,
        )
        return f"{shown(given or '')} (line {self.line} of the diff)"


def read_sections(text: str) -> tuple[Section, ...]:
    """Return the sections of a diff, one for each file, with every hunk's body as long as its header says.

    Lines end at a line feed and nowhere else. Raises `PatchError` for anything that is no part of a diff, for binary
    changes, and where a hunk's header and its body disagree.
    """
    reader = _Reader(_split(text))
    sections = []
    while reader.skip_blank():
        sections.append(reader.section())
    return tuple(sections)


def read_extended(lines: Sequence[str], at: int, name: str) -> dict[str, str]:
    """Return git's further headers that stand from line `at` on, each on one line; raise `PatchError` for one twice."""
    extended: dict[str, str] = {}
    while at < len(lines) and (match := EXTENDED_HEADER.fullmatch(lines[at])):
        key, value = match.groups()
        if key in extended:
            raise PatchError(f"{shown(name)}: the header {key} stands twice")
        extended[key] = value
        at += 1
    return extended


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    # No tool ends its headers with CRLF: such a diff was converted on its way, content lines included.
    if lines and all(line.endswith("\r") for line in lines):
        return [line[:-1] for line in lines]
    return lines


class _Reader:
    """Walks over the lines; `at` is the index of the next one."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def peek(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def skip_blank(self) -> bool:
        self.at = self._next_filled(self.at)
        return self.at < len(self.lines)

    def section(self) -> Section:
        start = self.at
        git = None
        extended: dict[str, str] = {}
        if self.lines[start].startswith("diff --git "):
            git = self.lines[start].removeprefix("diff --git ")
            self.at += 1
            extended = read_extended(self.lines, self.at, git)
            self.at += len(extended)
        old = new = None
        if self.peek().startswith(BINARY):
            raise PatchError(
                f"line {self.at + 1} of the diff: binary changes are not taken: {shown(git or self.peek())}"
            )
        if self._is_file_header(self.at):
            old, new = self.lines[self.at][4:], self.lines[self.at + 1][4:]
            self.at += 2
        elif git is None:
            raise self._foreign()
        empty = Section(start + 1, git, extended, old, new, ())
        hunks = []
        while self.peek().startswith("@@"):
            if old is None:
                raise PatchError(
                    f"{empty.name}: a hunk stands without the lines --- and +++ before it",
                    advice="Write `--- a/<path>` and `+++ b/<path>` before the first @@ of each file.",
                )
            hunks.append(self._hunk(empty.name))
        return Section(start + 1, git, extended, old, new, tuple(hunks))

    def _hunk(self, name: str) -> RawHunk:
        header = self.lines[self.at]
        match = _HUNK_HEADER.fullmatch(header)
        if match is None:
            raise PatchError(
                f"{name}: line {self.at + 1} is no hunk header: {shown(header)}",
                advice="A hunk begins with @@ -<line>,<count> +<line>,<count> @@.",
            )
        self.at += 1
        old_start, old_count, new_start, new_count = (1 if each is None else int(each) for each in match.groups()[:4])
        end = self._end_by_count(old_count, new_count)
        if end is None:
            raise self._miscounted(name, header, (old_start, new_start))
        body = tuple(self.lines[self.at : end])
        self.at = end
        section = (match[5] or "").rstrip("\r")
        return RawHunk(old_start, old_count, new_start, new_count, section, body)

    def _end_by_count(self, old: int, new: int) -> int | None:
        """Return the index behind a body of so many lines, None if there is no such body or it goes on."""
        at = self.at
        while old > 0 or new > 0:
            kind = _kind(self.lines[at]) if at < len(self.lines) else ""
            if not kind or (kind == "\\" and at == self.at):
                return None
            old -= kind in " -"
            new -= kind in " +"
            at += 1
        if old or new or at == self.at:
            return None
        at += at < len(self.lines) and _kind(self.lines[at]) == "\\"
        return None if self._goes_on(at) else at

    def _goes_on(self, at: int) -> bool:
        """Return whether the body of a hunk has more lines at `at`; blank lines alone are none."""
        at = self._next_filled(at)
        return at < len(self.lines) and bool(_kind(self.lines[at])) and not self._is_next_file(at)

    def _miscounted(self, name: str, header: str, starts: tuple[int, int]) -> PatchError:
        at = self.at
        old = new = 0
        while self._goes_on(at):
            filled = self._next_filled(at)
            kind = _kind(self.lines[filled])
            old += filled - at + (kind in " -")
            new += filled - at + (kind in " +")
            at = filled + 1
        if not old and not new:
            return PatchError(f"{name}: the hunk {shown(header)} has no lines")
        right = f"@@ -{starts[0]},{old} +{starts[1]},{new} @@"
        return PatchError(
            f"{name}: the hunk {shown(header)} does not count its lines: {old} old and {new} new ones follow",
            advice=f"With these lines the header should be {right}.",
        )

    def _is_file_header(self, at: int) -> bool:
        return [line[:4] for line in self.lines[at : at + 2]] == ["--- ", "+++ "]

    def _is_next_file(self, at: int) -> bool:
        return self._is_file_header(at) and self.lines[at + 2 : at + 3] != [] and self.lines[at + 2].startswith("@@ ")

    def _next_filled(self, at: int) -> int:
        while at < len(self.lines) and self.lines[at] in _BLANK:
            at += 1
        return at

    def _foreign(self) -> PatchError:
        line = self.lines[self.at]
        where = f"line {self.at + 1} of the diff"
        if line.startswith("@@"):
            return PatchError(f"{where}: a hunk stands without the lines --- and +++ before it")
        return PatchError(
            f"{where} is no part of a diff: {shown(line)}",
            advice="Give the unified diff alone: --- a/<path>, +++ b/<path>, then its hunks.",
        )


def _kind(line: str) -> str:
    """Return what a line is in a hunk's body: one of ` -+\\`, or the empty string for none of these."""
    # Editors and models strip the only space of an empty context line; git reads it like this too.
    if line in _BLANK:
        return " "
    return line[0] if line[0] in " -+\\" else ""
