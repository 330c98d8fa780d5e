"""Exact placement of the diffs that the workbench rendered: every hunk is where its header says, to the byte."""

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import FileLines, LineEdit
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.mismatch import ADVICE, first_difference
from agent_workbench.core.patch.values import FilePatch, Hunk, HunkLine


def place_exactly(file: FilePatch, lines: FileLines) -> tuple[LineEdit, ...]:
    """Return the edits of one file; raise `PatchError` unless its hunks are exactly where their headers say."""
    edits: list[LineEdit] = []
    done = 0
    for hunk in file.hunks:
        old = [_raw(line, file.path) for line in hunk.old]
        if not old and lines.raws:
            raise PatchError(
                f"{shown(file.path)}: a hunk that only adds lines does not say where",
                advice="Give at least one line of context with it.",
            )
        start = max(hunk.old_start - 1, 0)
        if start < done:
            raise PatchError(f"{shown(file.path)}: the hunk at line {hunk.old_start} overlaps the one before it")
        if lines.raws[start : start + len(old)] != old:
            raise _misplaced(file, hunk, lines, start)
        done = start + len(old)
        edits.append(LineEdit(start, done, tuple(_raw(line, file.path) for line in hunk.new)))
    return tuple(edits)


def _raw(line: HunkLine, path: str) -> bytes:
    try:
        return line.text.encode() + b"\n" * line.newline
    except UnicodeEncodeError:
        raise PatchError(f"{shown(path)}: the diff holds a lone surrogate") from None


def _misplaced(file: FilePatch, hunk: Hunk, lines: FileLines, start: int) -> PatchError:
    difference = first_difference([line.text for line in hunk.old], lines.texts, start)
    what = f"{shown(file.path)}: the hunk at line {hunk.old_start} does not apply there"
    return PatchError(f"{what}: {difference}", advice=ADVICE)
