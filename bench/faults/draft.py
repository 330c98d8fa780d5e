"""A diff taken apart so far that any part of it can be spoiled, and put together again."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
MARKER = "\\ No newline at end of file"


class Hunk(Struct, frozen=True):
    """A hunk; `body` has its lines as they are written, `header` what stands in place of a header made of numbers."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    body: tuple[str, ...]
    header: str | None = None

    @property
    def old(self) -> list[str]:
        """The old lines without their first characters."""
        return [line[1:] for line in self.body if line[:1] in {" ", "-"}]

    @property
    def new(self) -> list[str]:
        """The new lines without their first characters."""
        return [line[1:] for line in self.body if line[:1] in {" ", "+"}]

    @property
    def ends_file(self) -> bool:
        """Whether a marker says that the last old line is the file's, without a newline."""
        marked = (line for line, after in pairwise(self.body) if after == MARKER)
        return any(line[:1] in {" ", "-"} for line in marked)

    def counted(self) -> "Hunk":
        """Return the hunk with the counts of the lines it has now."""
        return replace(self, old_count=len(self.old), new_count=len(self.new))

    def text(self) -> str:
        """Return the hunk as it is written."""
        old, new = (_range(*pair) for pair in ((self.old_start, self.old_count), (self.new_start, self.new_count)))
        header = f"@@ -{old} +{new} @@{self.section}" if self.header is None else self.header
        return "\n".join([header, *self.body]) + "\n"


class FileDraft(Struct, frozen=True):
    """The diff of one file: git's own lines, the two lines with its names, its hunks."""

    git_lines: tuple[str, ...]
    names: tuple[str, ...]
    hunks: tuple[Hunk, ...]

    @property
    def path(self) -> str:
        """The name that is not /dev/null."""
        old, new = (line[4:].split("\t")[0] for line in self.names)
        return old.removeprefix("a/") if new == "/dev/null" else new.removeprefix("b/")

    def text(self) -> str:
        """Return the file's part of the diff."""
        heads = [f"{line}\n" for line in (*self.git_lines, *self.names)]
        return "".join([*heads, *(hunk.text() for hunk in self.hunks)])


class Draft(Struct, frozen=True):
    """A diff of one file or more."""

    files: tuple[FileDraft, ...]

    def text(self) -> str:
        """Return the diff as it is written."""
        return "".join(file.text() for file in self.files)

    def each_file(self, alter: Callable[[FileDraft], FileDraft]) -> "Draft":
        """Return the draft with every file altered."""
        return Draft(tuple(alter(file) for file in self.files))

    def each_hunk(self, alter: Callable[[Hunk], Hunk]) -> "Draft":
        """Return the draft with every hunk altered."""
        return self.each_file(lambda file: replace(file, hunks=tuple(alter(hunk) for hunk in file.hunks)))

    def hunks(self) -> list[Hunk]:
        """Every hunk of every file."""
        return [hunk for file in self.files for hunk in file.hunks]

    def modified(self) -> bool:
        """Return whether every file exists on both sides."""
        return not any("/dev/null" in line for file in self.files for line in file.names)


def read_draft(diff: str) -> Draft:
    """Take apart what `diff_of` wrote; raises ValueError where it holds anything else."""
    lines = diff.split("\n")
    if lines.pop() != "":
        raise ValueError("a diff of git ends with a line feed")
    starts = [at for at, line in enumerate(lines) if line.startswith("diff --git ")]
    # A line of a hunk always has a first character of its own, so that none can look like a header of git.
    ends = [*starts[1:], len(lines)]
    return Draft(tuple(_file(lines[start:end]) for start, end in zip(starts, ends, strict=True)))


def _file(lines: Sequence[str]) -> FileDraft:
    named = next((at for at, line in enumerate(lines) if line.startswith("--- ")), None)
    if named is None:
        raise ValueError(f"no names in the diff that begins with {lines[0]!r}")
    hunks = []
    at = named + 2
    while at < len(lines):
        hunk, at = _hunk(lines, at)
        hunks.append(hunk)
    return FileDraft(tuple(lines[:named]), tuple(lines[named : named + 2]), tuple(hunks))


def _hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    found = _HEADER.fullmatch(lines[at])
    if found is None:
        raise ValueError(f"not a header of a hunk: {lines[at]!r}")
    old_count, new_count = (int(found[group] or "1") for group in (2, 4))
    end = at + 1
    old, new = old_count, new_count
    while old or new or (end < len(lines) and lines[end].startswith("\\")):
        old -= lines[end][:1] in {" ", "-"}
        new -= lines[end][:1] in {" ", "+"}
        end += 1
    body = tuple(lines[at + 1 : end])
    return Hunk(int(found[1]), old_count, int(found[3]), new_count, found[5], body), end


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"
