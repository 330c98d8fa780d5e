"""Comparison with unidiff: a second reader, written by others, must find the same lines in a strict diff."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.reader.hunk_bodies import WrittenHunk, WrittenLine
from agent_workbench.core.patch.values import NO_NEWLINE

if TYPE_CHECKING:
    from unidiff.patch import Hunk as UnidiffHunk


def compare_with_unidiff(path: str, hunks: Sequence[WrittenHunk]) -> None:
    """Raise `PatchError` unless unidiff reads the same lines in the hunks of one file."""
    if not hunks:
        return
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        (file,) = PatchSet(list(_plain_diff(hunks)))
    except (UnidiffParseError, ValueError) as error:
        raise PatchError(f"{shown(path)}: {shown(str(error))}") from error
    for written, read in zip(hunks, file, strict=True):
        if _lines(read) != list(written.lines):
            raise PatchError(f"{shown(path)}: the hunk at line {read.source_start} can be read in two ways")


def _plain_diff(hunks: Sequence[WrittenHunk]) -> Iterator[str]:
    """Yield the hunks as lines that end at line feeds only, under constant names.

    unidiff splits strings at other characters too, and does not decode quoted names.
    """
    yield from ("--- a\n", "+++ b\n")
    for hunk in hunks:
        if hunk.numbers is not None:
            old, new = hunk.numbers.old_start, hunk.numbers.new_start
            yield f"@@ -{old},{hunk.numbers.old_count} +{new},{hunk.numbers.new_count} @@\n"
        yield from (f"{_uniform(line)}\n" for line in hunk.body)


def _uniform(line: str) -> str:
    if line.startswith("\\"):
        return NO_NEWLINE
    return line if line[:1] in {" ", "-", "+"} else f" {line}"


def _lines(hunk: "UnidiffHunk") -> list[WrittenLine]:
    lines: list[WrittenLine] = []
    for line in hunk:
        if line.line_type == "\\":
            lines[-1] = WrittenLine(lines[-1].sign, lines[-1].text, newline=False)
        else:
            lines.append(WrittenLine(line.line_type, line.value.removesuffix("\n")))
    return lines
