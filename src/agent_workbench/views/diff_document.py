"""Diffs for display: their lines, file headers and hunks, read incrementally while the model still writes.

File headers of a diff: several lines of git's, shown as one.
"""

import re
from collections.abc import Callable, Iterator
from copy import copy
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.proposals import MAX_DIFF_LINES
from agent_workbench.core.text.sanitizer import sanitize_whole
from agent_workbench.views.blocks import Tone

HUNK = re.compile(r"^@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+(.*)$")
HEADS = ("diff --git ", "index ", "old mode", "new mode", "deleted file", "new file", "similarity ", "rename ", "copy ")

_NOTHING = "/dev/null"
_PLAIN, _EXECUTABLE = "100644", "100755"

KEPT_CONTEXT = 3
MIN_FOLDED = 6


class DiffLine(NamedTuple):
    """One line: its text (in a hunk without the sign), its line numbers (0: none), and its tone.

    `hunk` is the number of its hunk in the diff and `at` its own number in that hunk, both from 0 (-1: none). `file` is
    the number of its file.
    """

    text: str
    tone: Tone
    old: int = 0
    new: int = 0
    hunk: int = -1
    at: int = -1
    file: int = -1


class DiffStat(NamedTuple):
    """Numbers of added and removed lines."""

    added: int
    removed: int

    def __str__(self) -> str:
        return f"+{self.added} −{self.removed}"


@lru_cache(maxsize=2)
def diff_stat(diff: str) -> DiffStat:
    """Return the numbers of added and removed lines; cached, because every update asks for the same diff."""
    lines = tuple(diff_lines(diff))
    return DiffStat(sum(each.tone is Tone.ADDED for each in lines), sum(each.tone is Tone.REMOVED for each in lines))


def diff_lines(diff: str) -> Iterator[DiffLine]:
    """Yield all lines of `diff` for display; carriage returns are visible."""
    if not diff:
        return
    raw = diff.removesuffix("\n").split("\n")
    reader = LineReader()
    for line in raw[:MAX_DIFF_LINES]:
        yield reader.read(line)
    if len(raw) > MAX_DIFF_LINES:
        yield hidden_lines(len(raw) - MAX_DIFF_LINES)


def hidden_lines(lines: int) -> DiffLine:
    """Return the line that stands for lines beyond the limit."""
    return DiffLine(f"… {lines:,} more lines are not shown", Tone.WARN)


class LineReader:
    """Reader that counts the lines left in a hunk, so that `--- a` inside one is no header."""

    def __init__(self) -> None:
        self._old = self._new = 0
        self._old_left = self._new_left = 0
        self._hunk = self._at = -1
        self.file = -1
        """The number of the file that the lines belong to, for those who count files."""

    def read(self, line: str) -> DiffLine:
        """Return the next line for display."""
        if self._old_left > 0 or self._new_left > 0:
            return self._in_hunk(line)
        found = HUNK.match(line)
        if found is not None:
            return self._begin_hunk(found)
        if line.startswith(("--- ", "+++ ")):
            return DiffLine(_shown(line), Tone.FILE)
        if line.startswith("\\ "):
            return DiffLine(_shown(line), Tone.DIM, hunk=self._hunk, file=self.file)
        if line.startswith(HEADS):
            return DiffLine(_shown(line), Tone.DIM)
        return DiffLine(_shown(line), _loose_tone(line), file=self.file)

    def _begin_hunk(self, found: re.Match[str]) -> DiffLine:
        old, old_count, new, new_count, _ = found.groups()
        self._old, self._new = int(old[:9]), int(new[:9])
        self._old_left = int((old_count or "1")[:9])
        self._new_left = int((new_count or "1")[:9])
        self._hunk, self._at = self._hunk + 1, -1
        return DiffLine(_shown(found.string), Tone.HUNK, hunk=self._hunk, file=self.file)

    def _in_hunk(self, line: str) -> DiffLine:
        first, rest = line[:1], _shown(line[1:])
        old, new = self._old, self._new
        if first == "+":
            self._new, self._new_left, self._at = new + 1, self._new_left - 1, self._at + 1
            return DiffLine(rest, Tone.ADDED, 0, new, self._hunk, self._at, self.file)
        if first == "-":
            self._old, self._old_left, self._at = old + 1, self._old_left - 1, self._at + 1
            return DiffLine(rest, Tone.REMOVED, old, 0, self._hunk, self._at, self.file)
        if first == "\\":
            return DiffLine(_shown(line), Tone.DIM, hunk=self._hunk, file=self.file)
        if first in {" ", ""}:
            self._old, self._old_left = old + 1, self._old_left - 1
            self._new, self._new_left, self._at = new + 1, self._new_left - 1, self._at + 1
            return DiffLine(rest, Tone.PLAIN, old, new, self._hunk, self._at, self.file)
        self._old_left = self._new_left = 0
        return self.read(line)


def _loose_tone(line: str) -> Tone:
    if line.startswith("+"):
        return Tone.ADDED
    return Tone.REMOVED if line.startswith("-") else Tone.DIM


def _shown(line: str) -> str:
    return sanitize_whole(line, keep_returns=True)


class FileHead(Struct, frozen=True):
    """Header of one file: its sanitized paths and the kind of change.

    `hunks` is the number of its hunks, `first_hunk` the number of the first one in the diff, from 0.
    """

    path: str = ""
    old_path: str = ""
    begins: bool = False
    ends: bool = False
    renamed: bool = False
    copied: bool = False
    old_mode: str = ""
    new_mode: str = ""
    added: int = 0
    removed: int = 0
    first_hunk: int = 0
    hunks: int = 0

    @property
    def text(self) -> str:
        """Path and change in one line."""
        name = (self.old_path if self.ends else self.path) or self.old_path or self.path
        return " · ".join((name, *self._said()))

    def _said(self) -> tuple[str, ...]:
        moved = self.old_path != self.path and bool(self.old_path and self.path) and not (self.begins or self.ends)
        word = "copied" if self.copied else "renamed"
        mode = f"mode {self.old_mode} → {self.new_mode}" if self.old_mode else ""
        made = "" if self.old_mode or self.new_mode in {"", _PLAIN} else f"mode {self.new_mode}"
        return tuple(
            said
            for said, holds in (
                ("new file", self.begins),
                ("deleted", self.ends),
                (f"{word} from {self.old_path}", moved),
                (mode, mode),
                ("executable" if made.endswith(_EXECUTABLE) else made, made),
            )
            if holds
        )


def is_header(line: str) -> bool:
    """Return True if this line, outside of a hunk, belongs to a file header."""
    return line.startswith(tuple(_READ) + _IGNORED)


def with_header(head: FileHead, line: str) -> FileHead:
    """Return the header with the facts of this line."""
    for begins, read in _READ.items():
        if line.startswith(begins):
            return read(head, sanitize_whole(line.removeprefix(begins), keep_returns=True))
    return head


def _git(head: FileHead, names: str) -> FileHead:
    """Return the header with the names of a `diff --git` line, which are certain only if both are the same."""
    half = len(names) // 2
    old, new = names[:half].removeprefix("a/"), names[half + 1 :].removeprefix("b/")
    return replace(head, old_path=old, path=new) if old == new else replace(head, path=names)


def _old(head: FileHead, name: str) -> FileHead:
    if name == _NOTHING:
        return replace(head, begins=True)
    return replace(head, old_path=name.removesuffix("\t").removeprefix("a/"))


def _new(head: FileHead, name: str) -> FileHead:
    if name == _NOTHING:
        return replace(head, ends=True)
    return replace(head, path=name.removesuffix("\t").removeprefix("b/"))


_READ: dict[str, Callable[[FileHead, str], FileHead]] = {
    "diff --git ": _git,
    "--- ": _old,
    "+++ ": _new,
    "new file mode ": lambda head, mode: replace(head, begins=True, new_mode=mode),
    "deleted file mode ": lambda head, mode: replace(head, ends=True),
    "old mode ": lambda head, mode: replace(head, old_mode=mode),
    "new mode ": lambda head, mode: replace(head, new_mode=mode),
    "rename from ": lambda head, name: replace(head, old_path=name, renamed=True),
    "rename to ": lambda head, name: replace(head, path=name, renamed=True),
    "copy from ": lambda head, name: replace(head, old_path=name, copied=True),
    "copy to ": lambda head, name: replace(head, path=name, copied=True),
}
_IGNORED = ("index ", "similarity ", "dissimilarity ")


class DiffDocument(Struct, frozen=True):
    """A diff for display: all lines and file headers. `same`: number of first lines unchanged since the last read."""

    lines: tuple[DiffLine, ...] = ()
    files: tuple[FileHead, ...] = ()
    hunks: int = 0
    digits: int = 0
    same: int = 0


class DiffReader:
    """Incremental parser of a diff that may grow."""

    def __init__(self) -> None:
        self._whole = _LineBuilder()
        self._text = ""
        self._chars = 0
        self._shown = DiffDocument()

    def read(self, text: str, *, grows: bool = False) -> DiffDocument:
        """Return the diff of `text`, including an unfinished last line.

        While it `grows`, an unfinished line outside of hunks is left out: half a path is the path of another file.
        """
        if not text.startswith(self._text):
            self._whole, self._chars, self._shown = _LineBuilder(), 0, DiffDocument()
        self._text = text
        # Only the last finished line can change: a header that continues, and the unfinished line after it.
        same = max(len(self._whole.lines) - 1, 0)
        end = text.rfind("\n") + 1
        if end > self._chars:
            for line in text[self._chars : end - 1].split("\n"):
                self._whole.add(line)
            self._chars = end
        lines = self._whole
        if end < len(text):
            going_on = lines.copy()
            going_on.add(text[end:])
            if not grows or (going_on.lines and going_on.lines[-1].hunk >= 0):
                lines = going_on
        before = self._shown.lines
        common = min(len(before), len(lines.lines))
        while same < common and before[same] == lines.lines[same]:
            same += 1
        self._shown = lines.shown(same)
        return self._shown


class _LineBuilder:
    """Lines so far. A file's headers are one line, which changes until its first hunk arrives."""

    def __init__(self) -> None:
        self.lines: list[DiffLine] = []
        self._reader = LineReader()
        self._heads: list[FileHead] = []
        self._counts: list[tuple[int, int, int]] = []
        self._in_head = self._old_named = False
        self._read = self._hunks = 0
        self._highest = 0

    def copy(self) -> "_LineBuilder":
        """Return an independent copy."""
        other = copy(self)
        other._reader = copy(self._reader)
        other.lines, other._heads, other._counts = [*self.lines], [*self._heads], [*self._counts]
        return other

    def add(self, raw: str) -> None:
        """Add the next line of the diff."""
        self._read += 1
        missing = self._read - MAX_DIFF_LINES
        if missing > 0:
            if missing > 1:
                self.lines.pop()
            self.lines.append(hidden_lines(missing))
            return
        line = self._reader.read(raw)
        if line.hunk < 0 and is_header(raw):
            self._add_header(raw)
            return
        self._in_head = self._old_named = False
        self._hunks += line.tone is Tone.HUNK
        if line.tone is not Tone.PLAIN and self._heads:
            added, removed, hunks = self._counts[-1]
            self._counts[-1] = (
                added + (line.tone is Tone.ADDED),
                removed + (line.tone is Tone.REMOVED),
                hunks + (line.tone is Tone.HUNK),
            )
        if line.old > self._highest or line.new > self._highest:
            self._highest = max(line.old, line.new)
        self.lines.append(line)

    def _add_header(self, raw: str) -> None:
        second = raw.startswith("--- ") and self._old_named
        if not self._in_head or second or raw.startswith("diff --git "):
            self._heads.append(FileHead(first_hunk=self._hunks))
            self._counts.append((0, 0, 0))
            self.lines.append(DiffLine("", Tone.FILE))
            self._reader.file = len(self._heads) - 1
        self._in_head = True
        self._old_named = raw.startswith(("--- ", "+++ "))
        head = self._heads[-1] = with_header(self._heads[-1], raw)
        self.lines[-1] = DiffLine(head.text, Tone.FILE, file=len(self._heads) - 1)

    def shown(self, same: int) -> DiffDocument:
        """Return the lines as a value."""
        files = tuple(
            replace(head, added=added, removed=removed, hunks=hunks)
            for head, (added, removed, hunks) in zip(self._heads, self._counts, strict=True)
        )
        hunks = sum(each.hunks for each in files)
        return DiffDocument(tuple(self.lines), files, hunks, len(str(self._highest)) if self._highest else 0, same)


def context_folds(shown: DiffDocument) -> Iterator[tuple[int, int]]:
    """Yield the folded runs of unchanged lines: the first line, and the one after the last.

    Only complete runs are folded, and never the lines next to a change.
    """
    start = 0
    for number, line in enumerate((*shown.lines, DiffLine("", Tone.HUNK))):
        if line.at >= 0 and line.tone is Tone.PLAIN:
            continue
        first, end = start + KEPT_CONTEXT, number - KEPT_CONTEXT
        if end - first >= MIN_FOLDED:
            yield first, end
        start = number + 1


def change_pairs(shown: DiffDocument, start: int = 0) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the removed lines with the added ones that replace them, from line `start` on."""
    removed: list[int] = []
    added: list[int] = []
    for number in range(start, len(shown.lines)):
        line = shown.lines[number]
        tone = line.tone if line.at >= 0 or line.tone is Tone.DIM else Tone.HUNK
        if tone is Tone.REMOVED and not added:
            removed.append(number)
        elif tone is Tone.ADDED and removed:
            added.append(number)
        elif tone is not Tone.DIM:
            if added:
                yield removed, added
            removed, added = ([number] if tone is Tone.REMOVED else []), []
    if added:
        yield removed, added


def change_start(shown: DiffDocument, line: int) -> int:
    """Return the first line of the change, or of the header, to which `line` belongs."""
    while line > 0 and shown.lines[line - 1].tone in {Tone.ADDED, Tone.REMOVED, Tone.DIM}:
        line -= 1
    return line


def line_in_diff(shown: DiffDocument, place: CodePlace) -> int:
    """Return the number of the diff's line that shows this line of the changed file, -1 if none does.

    A path that a test run printed matches a file that ends with it, or that it ends with.
    """
    for number, line in enumerate(shown.lines):
        if line.new == place.line and line.file >= 0 and _same_file(shown.files[line.file].path, place.path):
            return number
    return -1


def _same_file(path: str, spelt: str) -> bool:
    return path == spelt or spelt.endswith(f"/{path}") or path.endswith(f"/{spelt}")
