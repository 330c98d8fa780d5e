"""Validation of a diff: its size, its file names, the scope of the task, and hunks that make sense."""

from collections import Counter

from agent_workbench.core.errors import JudgeTouched, PatchError
from agent_workbench.core.patch.paths import (
    find_clash,
    find_folder_clash,
    fold_path,
    matches_glob,
    shown,
    takes_place_of,
)
from agent_workbench.core.patch.values import NO_NEWLINE, FileOperation, FilePatch, LineKind, Patch, PatchBounds


def check_text(text: str, bounds: PatchBounds) -> None:
    """Raise `PatchError` for a text that is too long or contains characters that no diff may contain."""
    # Counted in characters first: encoding 200 MB to learn that it is too much would cost another 200 MB.
    size = len(text)
    if size <= bounds.max_bytes:
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise PatchError(f"the diff is not valid Unicode: a lone surrogate at character {error.start}") from None
    if size > bounds.max_bytes:
        raise PatchError(
            f"the diff has {size} bytes; the limit is {bounds.max_bytes}",
            advice="Split the change into smaller diffs.",
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise PatchError(f"line {line} of the diff holds a NUL character", advice="Binary changes are not taken.")


def check_count(files: int, bounds: PatchBounds) -> None:
    """Raise `PatchError` if a diff changes more files than allowed."""
    if files > bounds.max_files:
        raise PatchError(
            f"the diff changes {files} files; the limit is {bounds.max_files}",
            advice="Split the change into smaller diffs.",
        )


def checked_patch(files: tuple[FilePatch, ...], bounds: PatchBounds) -> Patch:
    """Return the patch of these files; raise `PatchError` for names that collide or are out of bounds."""
    check_count(len(files), bounds)
    _check_names(files)
    patch = Patch(files)
    if judged := tuple(path for path in patch.paths if any(takes_place_of(path, judge) for judge in bounds.judges)):
        raise JudgeTouched(judged)
    for path in patch.paths:
        _check_scope(path, bounds)
    return patch


def check_hunks(file: FilePatch) -> None:
    """Raise `PatchError` for hunks that change nothing or contradict the operation on their file."""
    path = shown(file.path)
    if not file.hunks and file.operation is FileOperation.MODIFY and file.mode is None:
        raise PatchError(f"{path}: the diff changes nothing in it")
    for hunk in file.hunks:
        if all(line.kind is LineKind.CONTEXT for line in hunk.lines):
            raise PatchError(f"{path}: the hunk at line {hunk.old_start} changes nothing")
        if not all(line.newline for side in (hunk.old, hunk.new) for line in side[:-1]):
            raise PatchError(f"{path}: `{NO_NEWLINE}` stands before the last line of the hunk at line {hunk.old_start}")
    only = {FileOperation.CREATE: LineKind.ADDED, FileOperation.DELETE: LineKind.REMOVED}.get(file.operation)
    if only is not None and any(line.kind is not only for hunk in file.hunks for line in hunk.lines):
        word = "new" if only is LineKind.ADDED else "deleted"
        raise PatchError(
            f"{path}: in the diff of a {word} file every line begins with {only}",
            advice="Use --- a/<path> and +++ b/<path> to change a file that exists and stays.",
        )
    if only is not None and len(file.hunks) > 1:
        raise PatchError(f"{path}: a file is created or deleted by one hunk, not by {len(file.hunks)}")


def _check_names(files: tuple[FilePatch, ...]) -> None:
    paths = [path for file in files for path in dict.fromkeys((file.old_path, file.path))]
    twice = next((path for path, count in Counter(paths).items() if count > 1), None)
    if twice is not None:
        raise PatchError(f"{shown(twice)}: the diff names it twice", advice="Put all hunks of a file under one header.")
    if clash := find_clash(paths):
        raise PatchError(
            f"{shown(clash[0])} and {shown(clash[1])}: the names differ only by case or Unicode form",
            advice="Some disks take them for the same file.",
        )
    written = [file.path for file in files if file.operation is not FileOperation.DELETE]
    if clash := find_folder_clash(written):
        raise PatchError(f"{shown(clash[0])} cannot be a file: {shown(clash[1])} lies in it")


def _check_scope(path: str, bounds: PatchBounds) -> None:
    folded = fold_path(path)
    if any(matches_glob(folded, fold_path(pattern)) for pattern in bounds.protected_globs):
        raise PatchError(
            f"{shown(path)} is protected: no diff may change it",
            advice="Leave this file alone; its owner changes it by hand.",
        )
    if not any(matches_glob(path, pattern) for pattern in bounds.write_globs):
        raise PatchError(
            f"{shown(path)} is outside the files this task may write",
            advice=f"Allowed are: {', '.join(bounds.write_globs) or 'none'}.",
        )
