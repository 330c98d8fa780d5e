"""Patches changed by hunks: some hunks or lines left out, or one hunk edited as text."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_text import hunk_line_text, render_patch
from agent_workbench.core.patch.hashes import file_id, hunk_ids, selectable_ids
from agent_workbench.core.patch.reader.hunk_bodies import read_lines
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


def hunk_text(patch: Patch, hunk_id: str) -> str:
    """Return the lines of a hunk with their signs; raise `PatchError` if the patch has no such hunk."""
    return "".join(map(hunk_line_text, _hunk(patch, hunk_id).lines))


def with_hunk_text(patch: Patch, hunk_id: str, text: str) -> str:
    """Return the text of the whole diff with these lines for the hunk; without a change in them the hunk drops out.

    Raises `PatchError` for a line without a sign, and if the patch has no such hunk.
    """
    lines = _lines(text)
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


def _lines(text: str) -> tuple[HunkLine, ...]:
    body = text.removesuffix("\n").split("\n") if text else []
    for number, raw in enumerate(body, start=1):
        if raw not in {"", "\r"} and raw[0] not in (" +-\\" if number > 1 else " +-"):
            raise PatchError(
                f"line {number} of the hunk begins with {raw[0]!r}",
                advice="Each line begins with a space (it stays), + (it comes) or - (it goes).",
            )
    return tuple(line.as_hunk_line() for line in read_lines(body))
