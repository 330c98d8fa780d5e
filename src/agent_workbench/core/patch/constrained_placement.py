"""Placement of diffs in a known form: of the workbench, to the byte, and of a grammar, by their lines.

The grammar ends a hunk only where its old lines occur once in the whole file. So there is one position, and no doubt.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_targets import Target
from agent_workbench.core.patch.file_lines import FileLines, LineEdit, line_end
from agent_workbench.core.patch.hunk_bodies import HeaderNumbers, WrittenHunk
from agent_workbench.core.patch.hunk_mismatch import ADVICE, first_difference
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FilePatch, Hunk, HunkLine, LineKind


def with_positions(target: Target, lines: FileLines) -> Target | None:
    """Return the target with true numbers in its hunks, None if the grammar for these lines would not admit it.

    The old lines of each hunk must occur once in the file, after those of the hunk before. Only the last line of the
    file may be marked as having no line feed, and only if it has none.
    """
    hunks: list[WrittenHunk] = []
    done = shift = 0
    for hunk in target.hunks:
        written = [line for line in hunk.lines if line.sign != "+"]
        old = tuple(line.text for line in written)
        start = _only_position(old, lines)
        if start is None or start < done:
            return None
        if not all(line.newline or lines.is_unterminated(at) for at, line in enumerate(written, start)):
            return None
        new = len(old) + hunk.growth
        numbers = HeaderNumbers(start + bool(old), len(old), start + shift + bool(new), new)
        hunks.append(replace(hunk, numbers=numbers))
        done, shift = start + len(old), shift + hunk.growth
    return replace(target, hunks=tuple(hunks))


def place_constrained(file: FilePatch, lines: FileLines) -> tuple[LineEdit, ...]:
    """Return the edits of one file whose hunks have true numbers. Added lines end like the line before them."""
    usual = b"\r\n" if lines.ends == {b"\r\n"} else b"\n"
    edits = []
    for hunk in file.hunks:
        start = max(hunk.old_start - 1, 0)
        matched = lines.raws[start : start + len(hunk.old)]
        edits.append(LineEdit(start, start + len(matched), tuple(_new_lines(hunk, matched, usual))))
    return tuple(edits)


def _only_position(old: Sequence[str], lines: FileLines) -> int | None:
    """Return the index of the old lines if they occur once; an empty file takes a hunk without old lines."""
    if not old:
        return None if lines.bare else 0
    size = len(old)
    found = [at for at, text in enumerate(lines.bare) if text == old[0] and lines.bare[at : at + size] == old]
    return found[0] if len(found) == 1 else None


def _new_lines(hunk: Hunk, matched: Sequence[bytes], usual: bytes) -> Iterator[bytes]:
    """Yield the new lines of a hunk whose old lines are `matched`; `usual` is the line end of the file."""
    near = (line_end(matched[0]) if matched else b"") or usual
    rest = len(hunk.new)
    remaining = iter(matched)
    for line in hunk.lines:
        rest -= line.kind is not LineKind.REMOVED
        if line.kind is LineKind.ADDED:
            yield line.text.encode() + (near if line.newline else b"")
            continue
        raw = next(remaining)
        end = line_end(raw)
        near = end or near
        if line.kind is LineKind.CONTEXT:
            # The last line of the file needs a line end if lines are added after it.
            yield raw if end or not rest or not line.newline else raw + near


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
