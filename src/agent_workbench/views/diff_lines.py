"""Single lines of a unified diff: kind and line numbers of each. `diff_document` builds whole diffs from them."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from agent_workbench.core.proposals import MAX_DIFF_LINES
from agent_workbench.core.text.sanitizer import sanitize_whole
from agent_workbench.views.blocks import Tone

HUNK = re.compile(r"^@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+(.*)$")
HEADS = ("diff --git ", "index ", "old mode", "new mode", "deleted file", "new file", "similarity ", "rename ", "copy ")


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
