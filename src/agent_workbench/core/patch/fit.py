"""Fit of a diff to the files: read, placed and applied if its meaning is certain, refused if not."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.application import apply_patch, place_constrained, with_positions
from agent_workbench.core.patch.diff_targets import Target
from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.file_placer import FilePlacer
from agent_workbench.core.patch.hunk_pieces import is_unsigned
from agent_workbench.core.patch.patch_reader import (
    ConstrainedDiff,
    DiffReading,
    DiffReadings,
    check_text,
    checked_patch,
    file_patch,
)
from agent_workbench.core.patch.values import FileChange, FileContent, FileOperation, Patch, PatchBounds

Preimages = Mapping[str, FileContent | None]
"""The content of each path, None for a path without a file."""


class Fit(Struct, frozen=True):
    """A diff that fits the files: its patch, the change of each path, and one sentence for each repair."""

    patch: Patch
    changes: tuple[FileChange, ...]
    repairs: tuple[str, ...]


def fit_diff(diff: DiffReadings, preimages: Preimages, existing: Collection[str] = ()) -> Fit:
    """Return the changes that a diff makes to the files; the first interpretation that fits counts.

    `preimages` holds all paths of the diff. Raises `PatchError` unless every hunk has one certain position.
    """
    first: PatchError | None = None
    for reading in diff.readings:
        try:
            return _fit_reading(reading, preimages, existing)
        except PatchError as error:
            first = first or error
    raise first or PatchError("the diff is empty", advice="Give at least one file with one hunk.")


def fit_constrained_diff(
    diff: ConstrainedDiff, bounds: PatchBounds, preimages: Preimages, existing: Collection[str]
) -> Fit | None:
    """Return the changes of a diff that the grammar for these files admitted, None for any other diff.

    `preimages` holds the `old_paths` of the diff. Raises `PatchError` for faults that a grammar cannot prevent: a diff
    out of `bounds`, or one that changes nothing.
    """
    placed = [_with_positions(target, preimages) for target in diff.targets]
    found = tuple(target for target in placed if target is not None)
    if len(found) < len(placed):
        return None
    check_text(diff.text, bounds)
    patch = checked_patch(tuple(map(file_patch, found)), bounds)
    before = {path: preimages.get(path) for path in patch.paths}
    return Fit(patch, apply_patch(patch, before, existing, place_constrained), ())


def _with_positions(target: Target, preimages: Preimages) -> Target | None:
    content = FileContent(b"") if target.operation is FileOperation.CREATE else preimages.get(target.old_path)
    if content is None or b"\0" in content.data:
        return None
    return with_positions(target, FileLines(content.data))


def _fit_reading(reading: DiffReading, preimages: Preimages, existing: Collection[str]) -> Fit:
    unsigned = any(is_unsigned(hunk.lines) for target in reading.targets for hunk in target.hunks)
    placers = {
        target.path: FilePlacer(target, literal=reading.translated, unsigned=unsigned) for target in reading.targets
    }
    changes = apply_patch(reading.patch, preimages, existing, lambda file, lines: placers[file.path].place(lines))
    repairs = list(reading.repairs)
    if any(placer.moved for placer in placers.values()):
        repairs.append("line numbers or counts in the headers of hunks were set right")
    repairs += (repair for placer in placers.values() for repair in placer.repairs)
    return Fit(reading.patch, changes, tuple(dict.fromkeys(repairs)))
