"""Application of a diff to file contents, all or nothing; a diff in a known form is placed exactly or refused.

The grammar ends a hunk only where its old lines occur once in the whole file. So there is one position, and no doubt.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_targets import Target
from agent_workbench.core.patch.file_lines import FileLines, LineEdit, line_end
from agent_workbench.core.patch.hunk_bodies import HeaderNumbers, WrittenHunk
from agent_workbench.core.patch.hunk_pieces import ADVICE, first_difference
from agent_workbench.core.patch.paths import find_clash, find_folder_clash, shown, similar_paths
from agent_workbench.core.patch.values import (
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
)

_EXECUTABLE = 0o100755

Placer = Callable[[FilePatch, FileLines], Sequence[LineEdit]]
"""Finds the edits that the hunks of one file make in its lines; raises `PatchError`."""


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


def apply_patch(
    patch: Patch,
    preimages: Mapping[str, FileContent | None],
    existing: Collection[str] = (),
    place: Placer = place_exactly,
) -> tuple[FileChange, ...]:
    """Return the change of each path, in the order of the patch; a rename is two changes.

    `preimages` holds every path of the patch, None for a path without a file. New names are checked against `existing`,
    all paths of the repository. `place` finds the hunks in the files. Raises `PatchError` if any part of the patch
    cannot be applied.
    """
    unread = next((path for path in patch.paths if path not in preimages), None)
    if unread is not None:
        raise PatchError(f"{shown(unread)}: its content was not read before the diff was to be applied")
    _check_new_names(patch, existing)
    _check_old_names(patch, preimages, existing)
    return tuple(change for file in patch.files for change in _apply_file(file, preimages, place))


def _check_old_names(patch: Patch, preimages: Mapping[str, FileContent | None], existing: Collection[str]) -> None:
    for file in patch.files:
        if file.operation is not FileOperation.CREATE and preimages[file.old_path] is None:
            near = ", ".join(map(shown, similar_paths(file.old_path, existing)))
            raise PatchError(
                f"{shown(file.old_path)} does not exist{f'; near it are: {near}' if near else ''}",
                advice="Name a file of the repository; --- /dev/null makes a new one.",
            )


def _check_new_names(patch: Patch, existing: Collection[str]) -> None:
    created = [f.path for f in patch.files if f.operation in {FileOperation.CREATE, FileOperation.RENAME}]
    if not created:
        return
    taken = set(existing).intersection(created)
    if taken:
        raise _exists(min(taken))
    if clash := find_clash(created, existing):
        raise PatchError(
            f"{shown(clash[0])}: {shown(clash[1])} exists, and differs from it only by case or Unicode form",
            advice="Spell the name as it stands in the repository, or choose another one.",
        )
    removed = {f.old_path for f in patch.files if f.operation in {FileOperation.DELETE, FileOperation.RENAME}}
    if clash := find_folder_clash(created, set(existing) - removed):
        raise PatchError(f"{shown(clash[0])} cannot be a file: {shown(clash[1])} lies in it")


def _apply_file(file: FilePatch, preimages: Mapping[str, FileContent | None], place: Placer) -> Iterator[FileChange]:
    before = preimages[file.old_path]
    if file.operation is FileOperation.CREATE:
        if before is not None:
            raise _exists(file.path)
        yield FileChange(file.path, None, _changed(file, FileContent(b""), place_exactly))
        return
    if before is None:
        raise AssertionError(f"{file.old_path} was not looked for before it is changed")
    after = _changed(file, before, place)
    if file.operation is FileOperation.DELETE:
        if after.data:
            raise PatchError(
                f"{shown(file.path)}: the diff deletes the file without all of its lines",
                advice="Remove every line of the file in one hunk.",
            )
        yield FileChange(file.path, before, None)
    elif file.operation is FileOperation.RENAME:
        if preimages[file.path] is not None:
            raise _exists(file.path)
        yield FileChange(file.old_path, before, None)
        yield FileChange(file.path, None, after)
    else:
        if after == before:
            raise PatchError(f"{shown(file.path)}: the diff leaves it as it is")
        yield FileChange(file.path, before, after)


def _exists(path: str) -> PatchError:
    return PatchError(f"{shown(path)} already exists", advice="Change it with --- a/<path> and +++ b/<path> instead.")


def _changed(file: FilePatch, before: FileContent, place: Placer) -> FileContent:
    executable = before.executable if file.mode is None else file.mode == _EXECUTABLE
    if not file.hunks:
        return FileContent(before.data, executable)
    if b"\0" in before.data:
        raise PatchError(f"{shown(file.old_path)} is binary", advice="Text files alone can be changed by a diff.")
    lines = FileLines(before.data)
    new = lines.edited(place(file, lines))
    if any(not line.endswith(b"\n") for line in new[:-1]):
        raise PatchError(
            f"{shown(file.path)}: `\\ No newline at end of file` stands behind a line that is not the last",
            advice="Leave the marker out.",
        )
    return FileContent(b"".join(new), executable)
