"""A forgiving reading of a diff's text: what stands around it is left out, and counts need not be right."""

import re

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.reader.hunk_bodies import (
    UNSIGNED,
    LooseFile,
    LooseHunk,
    LooseLine,
    Numbers,
    Reading,
    read_lines,
)
from agent_workbench.core.patch.reader.sections import BINARY, EXTENDED_HEADER, Section, read_extended

AROUND = "what stood around the diff was left out"
INDENTED = "the whole diff was indented"
ENDINGS = "the diff's own lines ended with CRLF"

_NUMBERS = re.compile(r"@@ *-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *@@(?: ?(.*))?", re.ASCII | re.DOTALL)
_HUNK = re.compile(r"@@(?=$|[ \t\r])")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*", re.ASCII)
_SIGNATURE = re.compile(r"\d+\.\d+[\w.-]*\r?")
_BULLET = re.compile(r"- [\w`*\"'(\[]|-+[ \t\r]*$")
_INDENT = re.compile(r"([ \t]+)(?:diff --git |--- \S)")


def read_loosely(text: str) -> Reading:
    """Return what can be read as a diff in `text`, which may be an answer or a mail with a diff in it.

    Raises `PatchError` where there is none, and where something that may belong to it stands outside of any hunk.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    repairs: list[str] = []
    lines = _dedented(lines, repairs)
    lines = _without_cr(lines, repairs)
    reader = _Reader(lines)
    files = reader.read()
    if reader.skipped:
        repairs.append(AROUND)
    return Reading(tuple(files), tuple(repairs))


def _dedented(lines: list[str], repairs: list[str]) -> list[str]:
    """Return the lines without the indent of a diff that stands in a list or a quotation."""
    if any(line.startswith(("diff --git ", "--- ")) for line in lines):
        return lines
    indent = next((match[1] for match in map(_INDENT.match, lines) if match), "")
    if not indent:
        return lines
    repairs.append(INDENTED)
    return [line.removeprefix(indent) for line in lines]


def _without_cr(lines: list[str], repairs: list[str]) -> list[str]:
    """Return the lines without the carriage returns of a diff that was converted on its way, headers included."""
    headers = [line for line in lines if _HUNK.match(line) or line.startswith(("--- ", "+++ "))]
    if not headers or not all(line.endswith("\r") for line in headers):
        return lines
    repairs.append(ENDINGS)
    return [line.removesuffix("\r") for line in lines]


class _Reader:
    """Walks over the lines; `at` is the index of the next one, `skipped` whether any was left out as prose."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.skipped = False
        self.trusting = True

    def read(self) -> list[LooseFile]:
        files: list[LooseFile] = []
        while self.at < len(self.lines):
            if self._starts_file(self.at):
                files.append(self._file())
            else:
                self._skip(self.lines[self.at], bool(files))
                self.at += 1
        if not files:
            raise PatchError(
                "there is no diff in it",
                advice="Give the unified diff alone: --- a/<path>, +++ b/<path>, then its hunks.",
            )
        return files

    def _line(self, at: int) -> str:
        return self.lines[at] if at < len(self.lines) else ""

    def _starts_file(self, at: int) -> bool:
        line, following = self._line(at), self._line(at + 1)
        if line.startswith("diff --git "):
            return True
        if line.startswith("--- ") and following.startswith("+++ "):
            return True
        return self._renames(at) or (line.startswith(("--- ", "+++ ")) and bool(_HUNK.match(following)))

    def _renames(self, at: int) -> bool:
        """Whether a file gets another name here, be there a line `diff --git` above or not."""
        return self._line(at).startswith("rename from ") and self._line(at + 1).startswith("rename to ")

    def _skip(self, line: str, behind: bool) -> None:
        """Leave a line out as prose; raise where it may be a part of a diff that would get lost."""
        where = f"line {self.at + 1} of the diff"
        if line.startswith(BINARY):
            raise PatchError(f"{where}: binary changes are not taken: {shown(line)}")
        if EXTENDED_HEADER.fullmatch(line) and not line.startswith("index "):
            raise PatchError(f"{where} is no part of a diff: {shown(line)}")
        if _HUNK.match(line):
            raise PatchError(
                f"{where}: a hunk stands without the lines --- and +++ before it",
                advice="Write `--- a/<path>` and `+++ b/<path>` before the first @@ of each file.",
            )
        is_signed = line.startswith("+") or (line.startswith("-") and not _BULLET.match(line))
        if behind and (is_signed or line.startswith("@@@")) and line.strip("-+ \t\r"):
            raise PatchError(
                f"{where} stands outside of any hunk: {shown(line)}",
                advice="Give the unified diff alone, without text between its lines.",
            )
        self.skipped = self.skipped or bool(line.strip())

    def _file(self) -> LooseFile:
        start = self.at
        git, extended = None, {}
        if self._line(self.at).startswith("diff --git "):
            git = self._line(self.at).removeprefix("diff --git ")
            self.at += 1
            extended = read_extended(self.lines, self.at, git)
        elif self._renames(self.at):
            extended = read_extended(self.lines, self.at, self._line(self.at))
        self.at += len(extended)
        if self._line(self.at).startswith(BINARY):
            raise PatchError(
                f"line {self.at + 1} of the diff: binary changes are not taken: {shown(git or self._line(self.at))}"
            )
        old = self._named("--- ")
        new = self._named("+++ ")
        section = Section(start + 1, git, extended, old, new, ())
        hunks: list[LooseHunk] = []
        named = old is not None or new is not None or git is not None or bool(extended)
        while self._begins_hunk(named, first=not hunks):
            hunks.append(self._hunk(section.name))
        return LooseFile(section, tuple(hunks))

    def _named(self, sign: str) -> str | None:
        if not self._line(self.at).startswith(sign):
            return None
        self.at += 1
        return self._line(self.at - 1)[4:]

    def _begins_hunk(self, named: bool, *, first: bool) -> bool:
        if not named:
            return False
        at = self.at
        while at < len(self.lines) and not self.lines[at].strip():
            at += 1
        line = self._line(at)
        headless = first and line[:1] in {" ", "-", "+"} and not self._starts_file(at)
        if _HUNK.match(line) or (headless and at == self.at and line):
            self.at = at
            return True
        return False

    def _hunk(self, name: str) -> LooseHunk:
        header = self.lines[self.at] if _HUNK.match(self.lines[self.at]) else ""
        self.at += bool(header)
        numbers, section = _numbers(header)
        end = self.at
        while end < len(self.lines) and not self._ends_hunk(end):
            end += 1
        body = self.lines[self.at : end]
        size = _counted_size(body, numbers) if numbers is not None else None
        counted = size is not None and _is_prose(body[size:])
        if not counted:
            size = len(body)
            while size and body[size - 1] in {"", "\r"}:
                size -= 1
        if not size:
            raise PatchError(f"{name}: the hunk {shown(header)} has no lines")
        self.at += size
        lines = read_lines(body[:size])
        tail = 0 if counted else _tail(lines)
        return LooseHunk(header, numbers, section, lines, counted, tail)

    def _ends_hunk(self, at: int) -> bool:
        line = self.lines[at]
        if line[:1] in {" ", "+"} and not line.startswith("+++ "):
            return False
        if _HUNK.match(line) or line.startswith("diff --git ") or _FENCE.fullmatch(line) or self._renames(at):
            return True
        if line in {"-- ", "--", "-- \r"}:
            return _SIGNATURE.fullmatch(self._line(at + 1)) is not None or at + 1 == len(self.lines)
        named = [each[:4] for each in self.lines[at : at + 2]] == ["--- ", "+++ "]
        return named and bool(_HUNK.match(self._line(at + 2)) or self._line(at).startswith(("--- a/", "--- /dev/null")))


def _numbers(header: str) -> tuple[Numbers | None, str]:
    match = _NUMBERS.fullmatch(header)
    if match is None:
        behind = header[2:].partition("@@")[2].strip()
        return None, behind
    old_start, old_count, new_start, new_count = (1 if each is None else int(each) for each in match.groups()[:4])
    return Numbers(old_start, old_count, new_start, new_count), (match[5] or "").strip()


def _counted_size(body: list[str], numbers: Numbers) -> int | None:
    """Return how many lines of the body are as many as the header says; None where no number of them is."""
    old, new = numbers.old_count, numbers.new_count
    at = 0
    while (old > 0 or new > 0) and at < len(body):
        sign = body[at][:1] if body[at] not in {"", "\r"} else " "
        if sign not in {" ", "-", "+", "\\"}:
            return None
        old -= sign in {" ", "-"}
        new -= sign in {" ", "+"}
        at += 1
    if old or new or not at:
        return None
    return at + (at < len(body) and body[at].startswith("\\"))


def _is_prose(rest: list[str]) -> bool:
    """Return whether what follows a hunk of the right size can be no part of it."""
    filled = [line for line in rest if line.strip()]
    if not filled:
        return True
    if filled[0].rstrip() == "--" and not rest[0].strip():
        filled = filled[1:]  # a mail's signature
    elif filled[0][0] in " +-\\":
        return False
    return not any(line[0] == "+" or (line[0] == "-" and not _BULLET.match(line)) for line in filled)


def _tail(lines: tuple[LooseLine, ...]) -> int:
    signed = [at for at, line in enumerate(lines) if line.sign != UNSIGNED]
    return len(lines) - 1 - signed[-1] if signed else len(lines)
