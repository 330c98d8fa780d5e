"""Fitting a diff from anywhere to the files: applied where it is certain what is meant, refused otherwise."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.file_lines import Ground
from agent_workbench.core.patch.hashes import hunk_ids
from agent_workbench.core.patch.line_endings import spliced
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.certainty import are_consistent, choose
from agent_workbench.core.patch.placement.edits import Edit, edits_of
from agent_workbench.core.patch.placement.locator import Locator, Spot
from agent_workbench.core.patch.placement.nearest import piece_name
from agent_workbench.core.patch.placement.pieces import Doubt, Placing, is_unsigned, piece_of
from agent_workbench.core.patch.reader.hunk_bodies import LooseHunk, LooseLine, Reading
from agent_workbench.core.patch.reader.lenient import read_loosely
from agent_workbench.core.patch.reader.patch_reader import check_hunks, check_patch, check_text
from agent_workbench.core.patch.reader.readings import READERS
from agent_workbench.core.patch.reader.targets import Target, find_targets
from agent_workbench.core.patch.values import (
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
    PatchBounds,
)

_NUMBERS = "line numbers or counts in the headers of hunks were set right"


class LooseDiff(Struct, frozen=True):
    """A diff that was read and is not yet placed; `readings` are the ways to read it, the strictest first."""

    readings: tuple["_Aimed", ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path whose content is needed to place it."""
        return tuple(dict.fromkeys(path for each in self.readings for path in each.patch.paths))


class Fit(Struct, frozen=True):
    """A diff that fits: what it says, what each path becomes, and a sentence for each thing that was mended."""

    patch: Patch
    changes: tuple[FileChange, ...]
    repairs: tuple[str, ...]


class _Aimed(Struct, frozen=True):
    """A reading whose files are known."""

    patch: Patch
    targets: tuple[Target, ...]
    repairs: tuple[str, ...]
    translated: bool


def read_diff(text: str, bounds: PatchBounds, existing: Collection[str]) -> LooseDiff:
    """Return a diff as far as it can be known without the files; `existing` are all paths of the repository.

    Text around it, wrong counts and incomplete headers are no obstacle; whatever docs/safety.md lists is. Raises
    `PatchError` with the cause.
    """
    check_text(text, bounds)
    found: list[_Aimed] = []
    first: PatchError | None = None
    for read in READERS:
        try:
            reading = read(text)
            aimed = None if reading is None else _aimed(reading, bounds, existing)
        except PatchError as error:
            # What the forgiving reader says is about the diff, what the strict one says about the text around it.
            first = error if first is None or read is read_loosely else first
            continue
        if aimed is not None and all(aimed.targets != each.targets for each in found):
            found.append(aimed)
    if not found:
        raise first or PatchError("the diff is empty", advice="Give at least one file with one hunk.")
    return LooseDiff(tuple(found))


def fit_diff(diff: LooseDiff, preimages: Mapping[str, FileContent | None], existing: Collection[str] = ()) -> Fit:
    """Return what a diff makes of the files, with what was mended for it.

    `preimages` holds every path of the diff, None for one that does not exist. Raises `PatchError` unless every hunk
    has one place that is certain.
    """
    first: PatchError | None = None
    for aimed in diff.readings:
        try:
            return _fit(aimed, preimages, existing)
        except PatchError as error:
            first = first or error
    raise first or PatchError("the diff is empty", advice="Give at least one file with one hunk.")


def _aimed(reading: Reading, bounds: PatchBounds, existing: Collection[str]) -> _Aimed:
    targets = find_targets(reading.files, existing)
    files = tuple(map(_file_patch, targets))
    patch = check_patch(files, bounds)
    repairs = dict.fromkeys((*reading.repairs, *(said for target in targets for said in target.repairs)))
    return _Aimed(patch, targets, tuple(repairs), reading.translated)


def _file_patch(target: Target) -> FilePatch:
    bodies = [tuple(_as_made(line, target.operation) for line in hunk.lines) for hunk in target.hunks]
    hunks = []
    for hunk, lines, name in zip(target.hunks, bodies, hunk_ids(target.path, bodies), strict=True):
        numbers = hunk.numbers
        start, new = (numbers.old_start, numbers.new_start) if numbers is not None else (0, 0)
        hunks.append(Hunk(name, start, new, lines, hunk.section))
    file = FilePatch(target.operation, target.path, target.old_path, tuple(hunks), target.mode)
    check_hunks(file)
    return file


def _as_made(line: LooseLine, operation: FileOperation) -> HunkLine:
    """Return a line as a patch has it: in a new file an empty line without a sign is an added one, too."""
    if operation is FileOperation.CREATE and line.is_context and not line.text.strip():
        return HunkLine(LineKind.ADDED, "", line.newline)
    return line.as_hunk_line()


def _fit(aimed: _Aimed, preimages: Mapping[str, FileContent | None], existing: Collection[str]) -> Fit:
    unsigned = any(is_unsigned(hunk.lines) for target in aimed.targets for hunk in target.hunks)
    fitters = {
        file.path: _Fitter(target, file, literal=aimed.translated, unsigned=unsigned)
        for target, file in zip(aimed.targets, aimed.patch.files, strict=True)
    }
    changes = apply_patch(
        aimed.patch, preimages, existing, rewrite=lambda file, data: fitters[file.path].rewritten(data)
    )
    moved = any(fitter.moved for fitter in fitters.values())
    said = (said for fitter in fitters.values() for said in fitter.repairs)
    repairs = dict.fromkeys((*aimed.repairs, *((_NUMBERS,) if moved else ()), *said))
    return Fit(aimed.patch, changes, tuple(repairs))


class _Fitter:
    """Fits the hunks of one file to its content; `repairs` and `moved` are known afterwards."""

    def __init__(self, target: Target, file: FilePatch, *, literal: bool, unsigned: bool) -> None:
        self.unsigned = unsigned
        self.target = target
        self.file = file
        self.literal = literal or target.guessed
        self.repairs: tuple[str, ...] = ()
        self.moved = False

    def rewritten(self, data: bytes) -> bytes:
        """Return the file's new content."""
        if self.target.operation is FileOperation.CREATE:
            return _made(self.file)
        ground = Ground(data)
        path = self.target.old_path
        consistent = are_consistent(self.target.hunks)
        locator = Locator(path, ground, literal=self.literal, unsigned=self.unsigned)
        spots = [
            spot
            for number, hunk in enumerate(self.target.hunks)
            for spot in locator.spots(piece_of(hunk, number, consistent=consistent))
        ]
        placings = choose(path, spots, ground, consistent=consistent)
        try:
            new = self._spliced(ground, spots, placings)
        except Doubt as doubt:
            raise PatchError(
                f"{shown(path)}: {doubt}", advice="Give more lines of context, as they stand in the file."
            ) from None
        self._note(placings)
        return new

    def _spliced(self, ground: Ground, spots: Sequence[Spot], placings: Sequence[Placing]) -> bytes:
        done: list[tuple[Placing, tuple[Edit, ...]]] = []
        for spot, placing in zip(spots, placings, strict=True):
            try:
                edits = edits_of(placing, ground, settle=not spot.exact)
            except Doubt as doubt:
                raise Doubt(f"{piece_name(spot.piece)}: {doubt}") from None
            _check_changes(edits, ground, spot)
            done.append((placing, edits))
        done.sort(key=lambda each: (each[0].start, each[0].end))
        for (one, _), (other, _) in pairwise(done):
            if one.end > other.start:
                raise Doubt(f"{piece_name(one.piece)} and {piece_name(other.piece)} overlap")
        carries_cr = any(line.text.endswith("\r") for hunk in self.target.hunks for line in hunk.lines)
        return spliced(ground, done, carries_cr=carries_cr)

    def _note(self, placings: Sequence[Placing]) -> None:
        path = shown(self.target.path)
        said = [f"{path}: {said}" for placing in placings for said in placing.repairs]
        if list(placings) != sorted(placings, key=lambda each: each.start):
            said.append(f"{path}: its hunks stood in another order than in the file")
        self.repairs = tuple(dict.fromkeys(said))
        self.moved = any(_is_moved(placing) for placing in placings)


def _made(file: FilePatch) -> bytes:
    lines = [line for hunk in file.hunks for line in hunk.lines]
    return b"".join(line.text.encode() + b"\n" * line.newline for line in lines)


def _check_changes(edits: tuple[Edit, ...], ground: Ground, spot: Spot) -> None:
    """Raise `Doubt` for a hunk that puts back what it takes away: what it was to change is lost."""
    for edit in edits:
        same = [line.text for line in edit.added] == ground.bodies[edit.start : edit.end]
        ends = all(line.newline for line in spot.piece.lines)
        if same and ends and not any(ground.is_open(at) for at in range(edit.start, edit.end)):
            raise Doubt(f"{piece_name(spot.piece)} puts back the lines that it removes")


def _is_moved(placing: Placing) -> bool:
    hunk: LooseHunk = placing.piece.hunk
    if not hunk.counted:
        return True
    return placing.piece.start is not None and bool(placing.at) and placing.start != placing.piece.start
