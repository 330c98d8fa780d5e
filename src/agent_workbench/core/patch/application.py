"""Applying a diff to file contents: all of it in the right place, or nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import find_clash, find_folder_clash, shown, similar_paths
from agent_workbench.core.patch.placement.exact import FileLines, carries_cr, place_hunks
from agent_workbench.core.patch.values import (
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    LineKind,
    Patch,
)

_EXECUTABLE = 0o100755


Rewrite = Callable[[FilePatch, bytes], bytes]
"""What the hunks of a file make of its content; raises `PatchError`."""


def apply_patch(
    patch: Patch,
    preimages: Mapping[str, FileContent | None],
    existing: Collection[str] = (),
    rewrite: Rewrite | None = None,
) -> tuple[FileChange, ...]:
    """Return what each path of the patch becomes, in the patch's order; a rename is two changes.

    `preimages` holds every path of the patch, None for one that does not exist; `existing` are all paths of the
    repository, against which new names are checked. `rewrite` places the hunks, to the letter unless given.
    Raises `PatchError` if any part of the patch cannot be applied.
    """
    unread = next((path for path in patch.paths if path not in preimages), None)
    if unread is not None:
        raise PatchError(f"{shown(unread)}: its content was not read before the diff was to be applied")
    _check_new_names(patch, existing)
    _check_old_names(patch, preimages, existing)
    return tuple(change for file in patch.files for change in _apply_file(file, preimages, rewrite or _rewritten))


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


def _apply_file(file: FilePatch, preimages: Mapping[str, FileContent | None], rewrite: Rewrite) -> Iterator[FileChange]:
    before = preimages[file.old_path]
    if file.operation is FileOperation.CREATE:
        if before is not None:
            raise _exists(file.path)
        yield FileChange(file.path, None, _changed(file, FileContent(b""), rewrite))
        return
    if before is None:
        raise AssertionError(f"{file.old_path} was not looked for before it is changed")
    after = _changed(file, before, rewrite)
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


def _changed(file: FilePatch, before: FileContent, rewrite: Rewrite) -> FileContent:
    executable = before.executable if file.mode is None else file.mode == _EXECUTABLE
    if not file.hunks:
        return FileContent(before.data, executable)
    if b"\0" in before.data:
        raise PatchError(f"{shown(file.old_path)} is binary", advice="Text files alone can be changed by a diff.")
    return FileContent(rewrite(file, before.data), executable)


def _rewritten(file: FilePatch, data: bytes) -> bytes:
    try:
        lines = FileLines.of(data)
        places = place_hunks(file, lines)
        parts = _parts(file, lines, places)
    except UnicodeEncodeError:
        raise PatchError(f"{shown(file.path)}: the diff holds a lone surrogate") from None
    if any(not part.endswith(b"\n") for part in parts[:-1]):
        raise PatchError(
            f"{shown(file.path)}: `\\ No newline at end of file` stands behind a line that is not the last",
            advice="Leave the marker out.",
        )
    return b"".join(parts)


def _parts(file: FilePatch, lines: FileLines, places: Sequence[int]) -> list[bytes]:
    """Return the new lines with their ends."""
    raw = [body + b"\n" for body in lines.bodies]
    if raw and not lines.terminated:
        raw[-1] = lines.bodies[-1]
    style = None
    if not carries_cr(file):
        style = b"\r\n" if lines.ends == {b"\r\n"} else b"\n"
    parts: list[bytes] = []
    done = 0
    for hunk, at in zip(file.hunks, places, strict=True):
        end = at + len(hunk.old)
        parts += raw[done:at]
        parts += _hunk_parts(hunk, raw[at:end], style)
        done = end
    return parts + raw[done:]


def _hunk_parts(hunk: Hunk, matched: list[bytes], style: bytes | None) -> Iterator[bytes]:
    """Yield the new lines of a hunk that stands where `matched` does; added ones end as those around them do.

    `style` is how lines of this file end where no matched line tells; None if the diff's own line ends are meant.
    """
    near = b"\n" if style is None else (_end(matched[0]) if matched else b"") or style
    rest = len(hunk.new)
    remaining = iter(matched)
    for line in hunk.lines:
        rest -= line.kind is not LineKind.REMOVED
        if line.kind is LineKind.ADDED:
            yield line.text.encode() + (near if line.newline else b"")
            continue
        stands = next(remaining)
        end = _end(stands)
        if style is not None:
            near = end or near
        if line.kind is LineKind.CONTEXT:
            # The file's last line may be the last no longer: it needs a line end then.
            yield stands if end or not rest or not line.newline else stands + near


def _end(line: bytes) -> bytes:
    if not line.endswith(b"\n"):
        return b""
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"
