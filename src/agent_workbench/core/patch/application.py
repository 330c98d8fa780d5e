"""Application of a diff to file contents: all of it, or nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.constrained_placement import place_exactly
from agent_workbench.core.patch.file_lines import FileLines, LineEdit
from agent_workbench.core.patch.paths import find_clash, find_folder_clash, shown, similar_paths
from agent_workbench.core.patch.values import FileChange, FileContent, FileOperation, FilePatch, Patch

_EXECUTABLE = 0o100755

Placer = Callable[[FilePatch, FileLines], Sequence[LineEdit]]
"""Finds the edits that the hunks of one file make in its lines; raises `PatchError`."""


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
