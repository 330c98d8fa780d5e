"""The user's choice among the hunks of a diff, carried over to an edited text of that diff."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.patch.hashes import file_id
from agent_workbench.core.patch.selection.choice import HunkChoice
from agent_workbench.core.patch.values import HunkLine, LeftOut, LineKind, Patch

T = TypeVar("T")


class _Part(Struct, frozen=True):
    """One hunk, or the change of one file without hunks, which has a line that stands for it."""

    id: str
    path: str
    lines: tuple[HunkLine, ...]

    @property
    def content(self) -> tuple[str, tuple[HunkLine, ...]]:
        """The path and the lines, by which equal parts of two diffs are matched."""
        return self.path, self.lines


class _Line(Struct, frozen=True):
    """One line, its part and its number there; `left` if it is left out, context of a hunk left out whole included."""

    part: _Part
    number: int
    line: HunkLine
    left: LeftOut | None = None

    @property
    def changes(self) -> bool:
        """True for an added or removed line."""
        return self.line.kind is not LineKind.CONTEXT


def carried_choice(choice: HunkChoice, before: Patch, after: Patch) -> HunkChoice:
    """Return what stays left out, with the reasons, after `before` was edited into `after`.

    Hunks and lines are matched by their order: ids change with the text, and equal hunks take over each other's. A line
    that was left out stays left out. So does a line that replaces only such lines, and every line of a hunk that was
    left out whole. The other lines that the edit added are taken.
    """
    old, new = _parts(before), _parts(after)
    left = {each.id: each for each in choice.left}
    kept: list[LeftOut] = []
    for same, was, now in _runs([each.content for each in old], [each.content for each in new]):
        if same:
            pairs = zip(old[was], new[now], strict=True)
            kept += [replace(left[one.id], id=other.id) for one, other in pairs if one.id in left]
        else:
            kept += _left_after(_lines(old[was], left), _lines(new[now], {}))
    return HunkChoice(tuple(kept))


def _parts(patch: Patch) -> list[_Part]:
    parts = []
    for file in patch.files:
        parts += [_Part(hunk.id, file.path, hunk.lines) for hunk in file.hunks]
        if not file.hunks:
            parts.append(_Part(file_id(file), file.path, (HunkLine(LineKind.ADDED, file.operation),)))
    return parts


def _lines(parts: Sequence[_Part], left: Mapping[str, LeftOut]) -> list[_Line]:
    lines = []
    for part in parts:
        out = left.get(part.id)
        for number, line in enumerate(part.lines):
            is_left = out is not None and (not out.lines or number in out.lines)
            lines.append(_Line(part, number, line, out if is_left else None))
    return lines


def _left_after(old: Sequence[_Line], new: Sequence[_Line]) -> Iterator[LeftOut]:
    """Yield what stays left out of hunks that the edit changed."""
    found: dict[str, tuple[_Part, list[int], dict[str, None]]] = {}
    for same, was, now in _runs([each.line for each in old], [each.line for each in new]):
        around = old[max(0, was.start - 1) : was.stop + 1]
        for line, sources in zip(new[now], _sources(old[was], new[now], around, same=same), strict=True):
            # Of another file only an equal line is the same one.
            known = [each.left for each in sources if each.left and (same or each.part.path == line.part.path)]
            if known and line.changes:
                _, numbers, reasons = found.setdefault(line.part.id, (line.part, [], {}))
                numbers.append(line.number)
                reasons.update(dict.fromkeys(left.reason for left in known if left.reason))
    for part, numbers, reasons in found.values():
        changes = sum(line.kind is not LineKind.CONTEXT for line in part.lines)
        yield LeftOut(part.id, tuple(numbers) if len(numbers) < changes else (), "; ".join(reasons))


def _sources(
    old: Sequence[_Line], new: Sequence[_Line], around: Sequence[_Line], *, same: bool
) -> Sequence[Sequence[_Line]]:
    """Return for each new line the lines with which it stays left out, none for a line that is taken."""
    if same or [each.line.kind for each in old] == [each.line.kind for each in new]:
        return [[each] if each.left else [] for each in old]
    decisive = [each for each in old if each.changes]
    out = [each for each in decisive if each.left]
    if not decisive:
        # Without a change in its place, a new line goes by the hunk around it.
        decisive, out = list(around), [each for each in around if each.left and not each.left.lines]
    return [out if len(out) == len(decisive) else []] * len(new)


def _runs(old: Sequence[T], new: Sequence[T]) -> Iterator[tuple[bool, slice, slice]]:
    """Yield the runs in which two sequences are the same, and those in which they differ, in their order.

    The ends are matched first: one edit in the middle is found exactly, whatever repeats around it.
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
