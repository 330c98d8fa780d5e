"""Whole diff for display: its files, hunks and lines, read incrementally while the model still writes it."""

from collections.abc import Iterator
from copy import copy

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.proposals import MAX_DIFF_LINES
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff_lines import DiffLine, LineReader, hidden_lines
from agent_workbench.views.file_headers import FileHead, is_header, with_header

KEPT_CONTEXT = 3
MIN_FOLDED = 6


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
