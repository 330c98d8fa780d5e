"""From a diff's text to a `Patch` that is known to be well-formed and within its bounds."""

from collections import Counter
from typing import TYPE_CHECKING

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.patch.hashes import hunk_ids
from agent_workbench.core.patch.paths import find_clash, find_folder_clash, fold_path, shown
from agent_workbench.core.patch.reader.headers import read_header
from agent_workbench.core.patch.reader.sections import RawHunk, Section, read_sections
from agent_workbench.core.patch.values import (
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
    PatchBounds,
)

if TYPE_CHECKING:
    from unidiff.patch import Hunk as UnidiffHunk
    from unidiff.patch import PatchedFile

_DEFAULT_BOUNDS = PatchBounds()
_MARKER = "\\ No newline at end of file"


def parse_patch(text: str, bounds: PatchBounds = _DEFAULT_BOUNDS) -> Patch:
    """Return what a unified diff says, with every name and mode checked and every hunk as long as its header says.

    Takes git's diffs and plain ones, with the prefixes `a/` and `b/` or none. Raises `PatchError` that names the cause
    and the path for whatever docs/safety.md lists, and for what is outside `bounds`.
    """
    check_text(text, bounds)
    sections = read_sections(text)
    if not sections:
        raise PatchError("the diff is empty", advice="Give at least one file with one hunk.")
    _check_count(len(sections), bounds)
    return check_patch(tuple(_file(section) for section in sections), bounds)


def check_patch(files: tuple[FilePatch, ...], bounds: PatchBounds) -> Patch:
    """Return the patch of these files; raise `PatchError` for names that collide, and for what is out of bounds."""
    _check_count(len(files), bounds)
    _check_names(files)
    patch = Patch(files)
    for path in patch.paths:
        _check_scope(path, bounds)
    return patch


def _check_count(files: int, bounds: PatchBounds) -> None:
    if files > bounds.max_files:
        raise PatchError(
            f"the diff changes {files} files; the limit is {bounds.max_files}",
            advice="Split the change into smaller diffs.",
        )


def check_text(text: str, bounds: PatchBounds) -> None:
    """Raise `PatchError` for a text that is too long, or not made of the characters that a diff may hold."""
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


def _file(section: Section) -> FilePatch:
    header = read_header(section)
    hunks = _hunks(section, header.path)
    file = FilePatch(header.operation, header.path, header.old_path, hunks, header.mode)
    check_hunks(file)
    return file


def _hunks(section: Section, path: str) -> tuple[Hunk, ...]:
    if not section.hunks:
        return ()
    bodies = [_lines(read) for read in _read_bodies(section.hunks, path)]
    return tuple(
        Hunk(name, raw.old_start, raw.new_start, lines, raw.section)
        for raw, lines, name in zip(section.hunks, bodies, hunk_ids(path, bodies), strict=True)
    )


def _read_bodies(hunks: tuple[RawHunk, ...], path: str) -> "PatchedFile":
    """Let unidiff read the hunks of one file.

    It gets lines that end at line feeds alone and constant names: it would split strings at other characters too, and
    leaves quoted names, copies and unknown headers as they are.
    """
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    lines = ["--- a\n", "+++ b\n"]
    for hunk in hunks:
        lines.append(f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@\n")
        lines += (f"{_uniform(line)}\n" for line in hunk.body)
    try:
        (file,) = PatchSet(lines)
    except (UnidiffParseError, ValueError) as error:
        raise PatchError(f"{shown(path)}: {shown(str(error))}") from error
    return file


def _uniform(line: str) -> str:
    if line.startswith("\\"):
        return _MARKER
    return line if line[:1] in {" ", "-", "+"} else f" {line}"


def _lines(hunk: "UnidiffHunk") -> tuple[HunkLine, ...]:
    lines: list[HunkLine] = []
    for line in hunk:
        if line.line_type == "\\":
            lines[-1] = HunkLine(lines[-1].kind, lines[-1].text, newline=False)
        else:
            lines.append(HunkLine(LineKind(line.line_type), line.value.removesuffix("\n")))
    return tuple(lines)


def check_hunks(file: FilePatch) -> None:
    """Raise `PatchError` for hunks that change nothing or contradict what is done with their file."""
    path = shown(file.path)
    if not file.hunks and file.operation is FileOperation.MODIFY and file.mode is None:
        raise PatchError(f"{path}: the diff changes nothing in it")
    for hunk in file.hunks:
        if all(line.kind is LineKind.CONTEXT for line in hunk.lines):
            raise PatchError(f"{path}: the hunk at line {hunk.old_start} changes nothing")
        if not all(line.newline for side in (hunk.old, hunk.new) for line in side[:-1]):
            raise PatchError(f"{path}: `{_MARKER}` stands before the last line of the hunk at line {hunk.old_start}")
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
