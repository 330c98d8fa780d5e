"""Combination of successive patches into one, with the patches that wrote each hunk."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct, field

from agent_workbench.core.patch.comparison import CONTEXT_LINES, shared_blocks
from agent_workbench.core.patch.values import FileOperation, FilePatch, Hunk, HunkLine, LineKind, Patch, hunk_ids

MODES = (0o100644, 0o100755)
Line = tuple[str, bool]


class CombinedFile(Struct, frozen=True):
    """The combined change of one file. `origins` are, for each hunk, the indices of the patches that wrote it."""

    patch: FilePatch
    origins: tuple[tuple[int, ...], ...]


class _Added(NamedTuple):
    """A line that the patch with index `origin` added."""

    line: Line
    origin: int


class _CombinedLine(NamedTuple):
    """A line of the combined patch, after `old` old and `new` new lines. `origin` -1: it is unchanged."""

    kind: LineKind
    line: Line | None
    old: int
    new: int
    origin: int


class _CombinedState(Struct):
    """A file after some of the patches. `cells` are the numbers of original lines, and lines that were added.

    `known` are the original lines that some patch contains. `mode` and `mode_before` are None until a patch sets them.
    """

    path: str
    old_path: str
    exists: bool
    existed: bool
    mode: int | None = None
    mode_before: int | None = None
    cells: list[int | _Added] = field(default_factory=list)
    size: int = 0
    known: dict[int, Line] = field(default_factory=dict)
    removed: dict[int, int] = field(default_factory=dict)


def combine_patches(patches: Sequence[Patch]) -> tuple[CombinedFile, ...]:
    """Return the combined change of each file, in the order of first mention.

    Each patch follows the one before it, and its hunks are exactly where their headers say. A line that was removed and
    added back is no change. Context that no patch contains is left out.
    """
    files: dict[str, _CombinedState] = {}
    for number, patch in enumerate(patches):
        for file in patch.files:
            _take(files, file, number)
    combined = (_combined(file) for file in files.values())
    return tuple(each for each in combined if each is not None)


def _take(files: dict[str, _CombinedState], patch: FilePatch, number: int) -> None:
    creates = patch.operation is FileOperation.CREATE
    file = files.pop(patch.old_path, None) if patch.operation is FileOperation.RENAME else files.get(patch.old_path)
    if file is None:
        file = _CombinedState(patch.path, patch.old_path, exists=True, existed=not creates)
    files[patch.path] = file
    file.path = patch.path
    file.exists = patch.operation is not FileOperation.DELETE
    _take_mode(file, patch)
    for hunk in reversed(patch.hunks):
        _change(file, hunk, number)


def _take_mode(file: _CombinedState, patch: FilePatch) -> None:
    if patch.mode is None:
        return
    if file.mode_before is None and file.existed:
        other = next(each for each in MODES if each != patch.mode)
        file.mode_before = patch.mode if patch.operation is FileOperation.DELETE else other
    file.mode = patch.mode


def _change(file: _CombinedState, hunk: Hunk, number: int) -> None:
    at = hunk.old_start - bool(hunk.old)
    end = at + len(hunk.old)
    while len(file.cells) < end:
        file.cells.append(file.size)
        file.size += 1
    old = iter(file.cells[at:end])
    new: list[int | _Added] = []
    for line in hunk.lines:
        if line.kind is LineKind.ADDED:
            new.append(_Added((line.text, line.newline), number))
            continue
        cell = next(old)
        if isinstance(cell, int):
            file.known[cell] = (line.text, line.newline)
        if line.kind is LineKind.CONTEXT:
            new.append(cell)
        elif isinstance(cell, int):
            file.removed[cell] = number
    file.cells[at:end] = new


def _combined(file: _CombinedState) -> CombinedFile | None:
    if not file.exists and not file.existed:
        return None
    pairs = tuple(_hunks(file.path, _combined_lines(file)))
    operation = FileOperation.MODIFY
    if not file.exists:
        operation = FileOperation.DELETE
    elif not file.existed:
        operation = FileOperation.CREATE
    elif file.old_path != file.path:
        operation = FileOperation.RENAME
    mode = None if file.mode == file.mode_before and operation is not FileOperation.DELETE else file.mode
    if operation is FileOperation.MODIFY and not pairs and mode is None:
        return None
    old_path = file.old_path if operation is FileOperation.RENAME else file.path
    patch = FilePatch(operation, file.path, old_path, tuple(hunk for hunk, _ in pairs), mode)
    return CombinedFile(patch, tuple(origins for _, origins in pairs))


def _combined_lines(file: _CombinedState) -> list[_CombinedLine]:
    """Return the lines of the file together with the removed ones, in the order of a diff."""
    shown: list[_CombinedLine] = []
    added: list[_Added] = []
    old = new = 0
    for cell in (*file.cells, file.size):
        if isinstance(cell, _Added):
            added.append(cell)
            continue
        shown += _block(file, range(old, cell), added, new)
        new += len(added)
        added = []
        if cell < file.size:
            shown.append(_CombinedLine(LineKind.CONTEXT, file.known.get(cell), cell, new, -1))
            new += 1
        old = cell + 1
    return shown


def _block(file: _CombinedState, gone: range, added: Sequence[_Added], new: int) -> Iterator[_CombinedLine]:
    """Yield the lines between two unchanged ones; a line that was added back is unchanged."""
    before, after = [file.known[number] for number in gone], [each.line for each in added]
    at_old = at_new = 0
    for same in (*shared_blocks(before, after), None):
        end_old, end_new = (same.old, same.new) if same is not None else (len(before), len(after))
        for at in range(at_old, end_old):
            number = gone[at]
            yield _CombinedLine(LineKind.REMOVED, before[at], number, new + at_new, file.removed[number])
        for at in range(at_new, end_new):
            yield _CombinedLine(LineKind.ADDED, after[at], gone.start + end_old, new + at, added[at].origin)
        if same is not None:
            for step in range(same.size):
                line = before[same.old + step]
                yield _CombinedLine(LineKind.CONTEXT, line, gone[same.old + step], new + same.new + step, -1)
            at_old, at_new = same.old + same.size, same.new + same.size


def _hunks(path: str, shown: Sequence[_CombinedLine]) -> Iterator[tuple[Hunk, tuple[int, ...]]]:
    groups = [group for run in _known_runs(shown) for group in _groups(run)]
    bodies = [tuple(HunkLine(each.kind, *each.line) for each in group if each.line is not None) for group in groups]
    for group, lines, name in zip(groups, bodies, hunk_ids(path, bodies), strict=True):
        has_old = any(line.kind is not LineKind.ADDED for line in lines)
        has_new = any(line.kind is not LineKind.REMOVED for line in lines)
        origins = sorted({each.origin for each in group if each.origin >= 0})
        yield Hunk(name, group[0].old + has_old, group[0].new + has_new, lines), tuple(origins)


def _known_runs(shown: Sequence[_CombinedLine]) -> Iterator[list[_CombinedLine]]:
    """Yield the runs of known lines that differ before and after."""
    for known, lines in groupby(shown, lambda each: each.line is not None):
        run = list(lines)
        old = [each.line for each in run if each.kind is not LineKind.ADDED]
        if known and old != [each.line for each in run if each.kind is not LineKind.REMOVED]:
            yield run


def _groups(shown: Sequence[_CombinedLine]) -> Iterator[list[_CombinedLine]]:
    """Yield the runs of lines near a change."""
    changed = [at for at, each in enumerate(shown) if each.kind is not LineKind.CONTEXT]
    near = sorted({other for at in changed for other in range(at - CONTEXT_LINES, at + CONTEXT_LINES + 1)})
    groups: list[list[_CombinedLine]] = []
    last = -1
    for at in near:
        if 0 <= at < len(shown):
            if not groups or at != last + 1:
                groups.append([])
            groups[-1].append(shown[at])
            last = at
    yield from (group for group in groups if any(each.origin >= 0 for each in group))
