"""Choice of a diff's hunks: the choice itself, the diff that it leaves, and the choice carried to a newer diff."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_text import hunk_line_text, patch_stat, render_patch
from agent_workbench.core.patch.hunk_bodies import read_lines
from agent_workbench.core.patch.paths import special_paths
from agent_workbench.core.patch.values import (
    FileOperation,
    FilePatch,
    Hunk,
    HunkFate,
    HunkLine,
    LeftOut,
    LineKind,
    Patch,
    file_id,
    hunk_ids,
    patch_hash,
    selectable_ids,
)

T = TypeVar("T")


class SelectablePart(Struct, frozen=True):
    """A hunk, or a file without hunks, that can be taken or left.

    `changes` are the indices of its added and removed lines.
    """

    id: str
    path: str
    changes: tuple[int, ...] = ()


def selectable_parts(patch: Patch) -> tuple[SelectablePart, ...]:
    """Return everything in a patch that can be taken or left, in its order."""
    found: list[SelectablePart] = []
    for file in patch.files:
        for hunk in file.hunks:
            found.append(SelectablePart(hunk.id, file.path, hunk.changes))
        if not file.hunks:
            found.append(SelectablePart(file_id(file), file.path))
    return tuple(found)


class HunkChoice(Struct, frozen=True):
    """The parts of a diff that are left out, with the reasons; the others are taken."""

    left: tuple[LeftOut, ...] = ()

    def of(self, each: SelectablePart) -> LeftOut | None:
        """Return the entry for this part, None if all of it is taken."""
        return next((left for left in self.left if left.id == each.id), None)

    def fate(self, each: SelectablePart) -> HunkFate:
        """Return the decision about this part: taken, left or partly taken."""
        left = self.of(each)
        if left is None:
            return HunkFate.TAKEN
        return HunkFate.PARTLY if left.lines else HunkFate.LEFT

    def leaves(self, each: SelectablePart, line: int) -> bool:
        """Return True if this line of the part is left out."""
        left = self.of(each)
        return left is not None and (not left.lines or line in left.lines)

    def toggled(self, chosen: Iterable[tuple[SelectablePart, Collection[int] | None]]) -> "HunkChoice":
        """Return the choice with these parts toggled: left out if any of their lines was taken, else taken.

        Each part comes with the indices of the lines to toggle, None for all.
        """
        meant = [(each, _meant(each, lines)) for each, lines in chosen]
        leave = any(not self.leaves(each, line) for each, lines in meant for line in lines or (0,))
        choice = self
        for each, lines in meant:
            choice = choice._with_lines(each, lines, leave=leave)
        return choice

    def _with_lines(self, each: SelectablePart, lines: frozenset[int], *, leave: bool) -> "HunkChoice":
        before = self.of(each)
        gone = frozenset(() if before is None else before.lines or each.changes)
        now = gone | lines if leave else gone - lines
        others = tuple(left for left in self.left if left.id != each.id)
        if not now and not (leave and not each.changes):
            return HunkChoice(others)
        kept = () if now.issuperset(each.changes) else tuple(sorted(now))
        return HunkChoice((*others, LeftOut(each.id, kept, before.reason if before is not None else "")))

    def with_reason(self, ids: Collection[str], reason: str) -> "HunkChoice":
        """Return the choice with this reason for the parts with these ids."""
        return HunkChoice(tuple(replace(left, reason=reason) if left.id in ids else left for left in self.left))


def _meant(each: SelectablePart, lines: Collection[int] | None) -> frozenset[int]:
    return frozenset(each.changes if lines is None else set(each.changes).intersection(lines))


class PartialDiff(Struct, frozen=True):
    """The part of a diff that a choice takes.

    `taken` of all `hunks` are taken, wholly or in part. `special` paths need a second confirmation. `text` is the
    resulting diff, `result_sha` its hash.
    """

    left: tuple[LeftOut, ...]
    taken: int
    hunks: int
    added: int
    removed: int
    special: tuple[str, ...]
    text: str
    result_sha: str

    @property
    def said(self) -> str:
        """The summary of the choice for the screen."""
        if not self.taken:
            return "nothing would be taken"
        return (
            f"taking {self.taken} of {self.hunks} hunk{'' if self.hunks == 1 else 's'}, +{self.added} −{self.removed}"
        )


def partial_diff(patch: Patch, choice: HunkChoice, special: Collection[str] = ()) -> PartialDiff:
    """Return the part that a choice takes; raise `PatchError` if the choice belongs to another patch.

    `special` are those of the whole patch.
    """
    kept = leave_out(patch, choice.left)
    text = render_patch(kept)
    all_of_it = selectable_parts(patch)
    taken = sum(choice.fate(each) is not HunkFate.LEFT for each in all_of_it)
    added, removed = patch_stat(kept)
    return PartialDiff(
        choice.left, taken, len(all_of_it), added, removed, special_paths(kept, special), text, patch_hash(text)
    )


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


def leave_out(patch: Patch, left: Iterable[LeftOut]) -> Patch:
    """Return the patch without these hunks and lines; a file without any change left drops out, and so does its rename.

    An added line that is left out is not added; a removed one stays in the file. Raises `PatchError` for an id or a
    line that the patch does not have, as the choice belongs to another diff then.
    """
    lines = {each.id: each.lines for each in left}
    _check_known(patch, lines)
    return Patch(tuple(kept for file in patch.files if (kept := _without(file, lines)) is not None))


def _check_known(patch: Patch, ids: Iterable[str]) -> None:
    unknown = set(ids).difference(selectable_ids(patch))
    if unknown:
        raise PatchError(f"the diff has no hunk {min(unknown)[:12]}", advice="Show the diff again and decide anew.")


def _without(file: FilePatch, left: Mapping[str, tuple[int, ...]]) -> FilePatch | None:
    if not file.hunks:
        return None if file_id(file) in left else file
    hunks = [kept for hunk in file.hunks if (kept := _without_lines(hunk, left.get(hunk.id))) is not None]
    if not hunks:
        return None
    if all(kept.id for kept in hunks):
        return replace(file, hunks=tuple(hunks))
    stays = file.operation is FileOperation.DELETE
    operation, mode = (FileOperation.MODIFY, None) if stays else (file.operation, file.mode)
    names = hunk_ids(file.path, (hunk.lines for hunk in hunks))
    named = tuple(replace(hunk, id=name) for hunk, name in zip(hunks, names, strict=True))
    return replace(file, operation=operation, mode=mode, hunks=named)


def _without_lines(hunk: Hunk, left: tuple[int, ...] | None) -> Hunk | None:
    """Return the rest of a hunk, None if nothing is left; a part of a hunk has no id yet.

    `left` None leaves out nothing, an empty tuple everything.
    """
    if left is None:
        return hunk
    changes = set(hunk.changes)
    if unknown := set(left) - changes:
        raise PatchError(
            f"line {min(unknown)} of hunk {hunk.id[:12]} changes nothing", advice="Show the diff again and decide anew."
        )
    if not left or changes <= set(left):
        return None
    kept = list(_kept_lines(hunk.lines, frozenset(left)))
    return replace(hunk, id="", lines=tuple(_with_ends(kept)))


def _kept_lines(lines: Iterable[HunkLine], left: frozenset[int]) -> Iterator[HunkLine]:
    for number, line in enumerate(lines):
        if number not in left:
            yield line
        elif line.kind is LineKind.REMOVED:
            yield replace(line, kind=LineKind.CONTEXT)


def _with_ends(lines: list[HunkLine]) -> Iterator[HunkLine]:
    """Yield the lines; a line without a line feed gets one if another line follows it now."""
    for number, line in enumerate(lines):
        followed = any(later.kind is not LineKind.REMOVED for later in lines[number + 1 :])
        if line.newline or not followed or line.kind is LineKind.REMOVED:
            yield line
            continue
        if line.kind is LineKind.CONTEXT:
            yield replace(line, kind=LineKind.REMOVED)
        yield replace(line, kind=LineKind.ADDED, newline=True)


def hunk_text(patch: Patch, hunk_id: str) -> str:
    """Return the lines of a hunk with their signs; raise `PatchError` if the patch has no such hunk."""
    return "".join(map(hunk_line_text, _hunk(patch, hunk_id).lines))


def with_hunk_text(patch: Patch, hunk_id: str, text: str) -> str:
    """Return the text of the whole diff with these lines for the hunk; without a change in them the hunk drops out.

    Raises `PatchError` for a line without a sign, and if the patch has no such hunk.
    """
    lines = _hunk_lines(text)
    changes = any(line.kind is not LineKind.CONTEXT for line in lines)
    _hunk(patch, hunk_id)
    files = []
    for file in patch.files:
        hunks = tuple(
            replace(hunk, lines=lines) if hunk.id == hunk_id else hunk
            for hunk in file.hunks
            if changes or hunk.id != hunk_id
        )
        if hunks or not file.hunks:
            files.append(replace(file, hunks=hunks))
    return render_patch(Patch(tuple(files)))


def _hunk(patch: Patch, hunk_id: str) -> Hunk:
    for file in patch.files:
        for hunk in file.hunks:
            if hunk.id == hunk_id:
                return hunk
    raise PatchError(f"the diff has no hunk {hunk_id[:12]}", advice="Show the diff again and decide anew.")


def _hunk_lines(text: str) -> tuple[HunkLine, ...]:
    body = text.removesuffix("\n").split("\n") if text else []
    for number, raw in enumerate(body, start=1):
        if raw not in {"", "\r"} and raw[0] not in (" +-\\" if number > 1 else " +-"):
            raise PatchError(
                f"line {number} of the hunk begins with {raw[0]!r}",
                advice="Each line begins with a space (it stays), + (it comes) or - (it goes).",
            )
    return tuple(line.as_hunk_line() for line in read_lines(body))
