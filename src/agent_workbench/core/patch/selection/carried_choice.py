"""Transfer of the user's choice to the edited version of a diff."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.patch.hashes import file_id
from agent_workbench.core.patch.selection.choice import HunkChoice
from agent_workbench.core.patch.values import HunkLine, LeftOut, LineKind, Patch

T = TypeVar("T")


class _ComparedHunk(Struct, frozen=True):
    """One hunk, or a file without hunks, which gets one line that represents its change."""

    id: str
    path: str
    lines: tuple[HunkLine, ...]

    @property
    def content(self) -> tuple[str, tuple[HunkLine, ...]]:
        """The path and the lines, by which equal hunks of two diffs are matched."""
        return self.path, self.lines


class _ComparedLine(Struct, frozen=True):
    """One line of a hunk; `left` if it is left out, which includes the context of a hunk left out as a whole."""

    hunk: _ComparedHunk
    number: int
    line: HunkLine
    left: LeftOut | None = None

    @property
    def changes(self) -> bool:
        """True for an added or removed line."""
        return self.line.kind is not LineKind.CONTEXT


def carry_choice(choice: HunkChoice, before: Patch, after: Patch) -> HunkChoice:
    """Return the choice, with its reasons, after `before` was edited into `after`.

    Hunks and lines are matched in order, as ids change with the text. A line that was left out stays left out. So does
    a line that replaces only such lines, and every line of a hunk that was left out as a whole. All other new lines are
    taken.
    """
    old, new = _hunks(before), _hunks(after)
    left = {each.id: each for each in choice.left}
    kept: list[LeftOut] = []
    for same, was, now in _runs([each.content for each in old], [each.content for each in new]):
        if same:
            pairs = zip(old[was], new[now], strict=True)
            kept += [replace(left[one.id], id=other.id) for one, other in pairs if one.id in left]
        else:
            kept += _left_after(_lines(old[was], left), _lines(new[now], {}))
    return HunkChoice(tuple(kept))


def _hunks(patch: Patch) -> list[_ComparedHunk]:
    hunks = []
    for file in patch.files:
        hunks += [_ComparedHunk(hunk.id, file.path, hunk.lines) for hunk in file.hunks]
        if not file.hunks:
            hunks.append(_ComparedHunk(file_id(file), file.path, (HunkLine(LineKind.ADDED, file.operation),)))
    return hunks


def _lines(hunks: Sequence[_ComparedHunk], left: Mapping[str, LeftOut]) -> list[_ComparedLine]:
    lines = []
    for hunk in hunks:
        out = left.get(hunk.id)
        for number, line in enumerate(hunk.lines):
            is_left = out is not None and (not out.lines or number in out.lines)
            lines.append(_ComparedLine(hunk, number, line, out if is_left else None))
    return lines


def _left_after(old: Sequence[_ComparedLine], new: Sequence[_ComparedLine]) -> Iterator[LeftOut]:
    """Yield the parts left out of hunks that the edit changed."""
    found: dict[str, tuple[_ComparedHunk, list[int], dict[str, None]]] = {}
    for same, was, now in _runs([each.line for each in old], [each.line for each in new]):
        around = old[max(0, was.start - 1) : was.stop + 1]
        for line, sources in zip(new[now], _sources(old[was], new[now], around, same=same), strict=True):
            # In another file only an equal line is the same line.
            known = [each.left for each in sources if each.left and (same or each.hunk.path == line.hunk.path)]
            if known and line.changes:
                _, numbers, reasons = found.setdefault(line.hunk.id, (line.hunk, [], {}))
                numbers.append(line.number)
                reasons.update(dict.fromkeys(left.reason for left in known if left.reason))
    for hunk, numbers, reasons in found.values():
        changes = sum(line.kind is not LineKind.CONTEXT for line in hunk.lines)
        yield LeftOut(hunk.id, tuple(numbers) if len(numbers) < changes else (), "; ".join(reasons))


def _sources(
    old: Sequence[_ComparedLine], new: Sequence[_ComparedLine], around: Sequence[_ComparedLine], *, same: bool
) -> Sequence[Sequence[_ComparedLine]]:
    """Return for each new line the old lines that keep it left out; none for a line that is taken."""
    if same or [each.line.kind for each in old] == [each.line.kind for each in new]:
        return [[each] if each.left else [] for each in old]
    decisive = [each for each in old if each.changes]
    out = [each for each in decisive if each.left]
    if not decisive:
        # A new line that replaces no change follows the hunk around it.
        decisive, out = list(around), [each for each in around if each.left and not each.left.lines]
    return [out if len(out) == len(decisive) else []] * len(new)


def _runs(old: Sequence[T], new: Sequence[T]) -> Iterator[tuple[bool, slice, slice]]:
    """Yield the runs in which two sequences are equal (True) and those in which they differ, in order.

    The ends are matched first, so that one edit in the middle is found exactly, whatever repeats around it.
    """
    head, most = 0, min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    yield True, slice(0, head), slice(0, head)
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for tag, first, end, start, stop in middle.get_opcodes():
        yield tag == "equal", slice(head + first, head + end), slice(head + start, head + stop)
    yield True, slice(len(old) - tail, len(old)), slice(len(new) - tail, len(new))
