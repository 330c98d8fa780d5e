"""Partial patches: a patch without some of its hunks or lines."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.hashes import file_id, hunk_ids, selectable_ids
from agent_workbench.core.patch.values import FileOperation, FilePatch, Hunk, HunkLine, LeftOut, LineKind, Patch


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
