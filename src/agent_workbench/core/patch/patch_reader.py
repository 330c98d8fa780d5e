"""Reader of unified diffs: `parse_patch`, checked by unidiff, `read_diff`, which repairs, and what both refuse."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.core.errors import JudgeTouched, PatchError
from agent_workbench.core.patch.diff_sections import FileSection, Mode, scan_sections
from agent_workbench.core.patch.diff_targets import NOTHING, Target, find_targets, read_header, target_of
from agent_workbench.core.patch.hunk_bodies import UNSIGNED, WrittenHunk, WrittenLine
from agent_workbench.core.patch.paths import (
    find_clash,
    find_folder_clash,
    fold_path,
    matches_glob,
    shown,
    takes_place_of,
)
from agent_workbench.core.patch.values import (
    NO_NEWLINE,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
    PatchBounds,
    hunk_ids,
)

if TYPE_CHECKING:
    from unidiff.patch import Hunk as UnidiffHunk


_DEFAULT_BOUNDS = PatchBounds()

_INDENT = re.compile(r"([ \t]+)(?:diff --git |--- \S)")
_HEADER = re.compile(r"@@(?=$|[ \t\r])|--- |\+\+\+ ")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27);")
_UNESCAPED = re.compile(r"[<>]|&(?!\w+;|#\w+;)")
_CURLY = str.maketrans("“”‘’", "\"\"''")


class DiffReading(Struct, frozen=True):
    """One interpretation of a text as a diff, with one sentence for each repair.

    `targets` are the files of `patch` with their hunks as written, in the same order. `translated`: characters were
    replaced in the whole text, so its lines must match the files exactly.
    """

    patch: Patch
    targets: tuple[Target, ...]
    repairs: tuple[str, ...] = ()
    translated: bool = False


class DiffReadings(Struct, frozen=True):
    """All interpretations of a text as a diff, the strictest first. Placement decides between them."""

    readings: tuple[DiffReading, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths whose content placement needs."""
        return tuple(dict.fromkeys(path for each in self.readings for path in each.patch.paths))


class ConstrainedDiff(Struct, frozen=True):
    """A diff that the grammar of an answer may have admitted, without the numbers and headings of its hunks."""

    text: str
    targets: tuple[Target, ...]

    @property
    def old_paths(self) -> tuple[str, ...]:
        """The paths of the files that it changes, removes or renames."""
        return tuple(each.old_path for each in self.targets if each.operation is not FileOperation.CREATE)


class _Scanned(Struct, frozen=True):
    """The sections of a text; `certain`: a lenient scan would find the same ones."""

    sections: tuple[FileSection, ...]
    repairs: tuple[str, ...] = ()
    translated: bool = False
    certain: bool = False


def parse_patch(text: str, bounds: PatchBounds = _DEFAULT_BOUNDS) -> Patch:
    """Return the patch of a diff in git's or plain form, without repairs.

    Raises `PatchError` for damage, for everything that docs/explanation/safety.md lists, and for what exceeds `bounds`.
    """
    check_text(text, bounds)
    sections = _scan_strictly(text).sections
    check_count(len(sections), bounds)
    targets = [target_of(read_header(section), section.hunks) for section in sections]
    for target in targets:
        compare_with_unidiff(target.path, target.hunks)
    return checked_patch(tuple(map(file_patch, targets)), bounds)


def read_diff(text: str, bounds: PatchBounds, existing: Collection[str]) -> DiffReadings:
    """Return the interpretations of a text that contains a diff; `existing` are all paths of the repository.

    Text around the diff, wrong counts and incomplete headers are repaired. Raises `PatchError` if there is no diff,
    for everything that docs/explanation/safety.md lists, and for what exceeds `bounds`.
    """
    check_text(text, bounds)
    found: list[DiffReading] = []
    first: PatchError | None = None
    certain = False
    for scan in (_scan_strictly, _scan_leniently, _scan_unescaped, _scan_straightened):
        if certain and scan is _scan_leniently:
            continue
        try:
            scanned = scan(text)
            if scanned is None:
                continue
            certain = certain or scanned.certain
            reading = _with_targets(scanned, bounds, existing)
        except PatchError as error:
            # The strict scan complains about text around the diff, the lenient one about the diff itself.
            first = error if first is None or scan is _scan_leniently else first
            continue
        if all(reading.targets != each.targets for each in found):
            found.append(reading)
    if not found:
        raise first or PatchError("the diff is empty", advice="Give at least one file with one hunk.")
    return DiffReadings(tuple(found))


def read_constrained_diff(text: str) -> ConstrainedDiff | None:
    """Return the diff of an answer if it has the form that the grammar admits, else None."""
    try:
        sections = scan_sections(text.removesuffix("\n").split("\n"), Mode.CONSTRAINED).sections
        if not all(map(_is_admitted, sections)):
            return None
        return ConstrainedDiff(text, tuple(target_of(read_header(each), each.hunks) for each in sections))
    except PatchError:
        return None


def file_patch(target: Target) -> FilePatch:
    """Return the change of one file as part of a patch; raise `PatchError` for hunks that make no sense."""
    bodies = [tuple(_hunk_line(line, target.operation) for line in hunk.lines) for hunk in target.hunks]
    hunks = []
    for hunk, lines, name in zip(target.hunks, bodies, hunk_ids(target.path, bodies), strict=True):
        numbers = hunk.numbers
        start, new = (numbers.old_start, numbers.new_start) if numbers is not None else (0, 0)
        hunks.append(Hunk(name, start, new, lines, hunk.section))
    file = FilePatch(target.operation, target.path, target.old_path, tuple(hunks), target.mode)
    check_hunks(file)
    return file


def _hunk_line(line: WrittenLine, operation: FileOperation) -> HunkLine:
    """Return a line as part of a patch; in a new file an empty line without a sign is an added one."""
    if operation is FileOperation.CREATE and line.is_context and not line.text.strip():
        return HunkLine(LineKind.ADDED, "", line.newline)
    return line.as_hunk_line()


def _scan_strictly(text: str) -> _Scanned:
    lines = strict_lines(text)
    scanned = scan_sections(lines, Mode.STRICT)
    # A lenient scan may remove carriage returns that the strict one kept.
    same_lines = "\r" not in text or lenient_lines(text).lines == lines
    return _Scanned(scanned.sections, certain=same_lines and not scanned.ambiguous)


def _scan_leniently(text: str, *more: str) -> _Scanned:
    source = lenient_lines(text)
    scanned = scan_sections(source.lines, Mode.LENIENT)
    around = ("what stood around the diff was left out",) if scanned.skipped else ()
    return _Scanned(scanned.sections, (*source.repairs, *around, *more), translated=bool(more))


def _scan_unescaped(text: str) -> _Scanned | None:
    plain = unescaped(text)
    repair = "characters written as HTML entities were read as what they stand for"
    return None if plain is None else _scan_leniently(plain, repair)


def _scan_straightened(text: str) -> _Scanned | None:
    plain = with_straight_quotes(text)
    return None if plain is None else _scan_leniently(plain, "curly quotes were read as straight ones")


def _with_targets(scanned: _Scanned, bounds: PatchBounds, existing: Collection[str]) -> DiffReading:
    """Return the interpretation of scanned sections, with the files that they are for."""
    targets = find_targets(scanned.sections, existing)
    patch = checked_patch(tuple(map(file_patch, targets)), bounds)
    repairs = dict.fromkeys((*scanned.repairs, *(repair for target in targets for repair in target.repairs)))
    return DiffReading(patch, targets, tuple(repairs), scanned.translated)


def _is_admitted(section: FileSection) -> bool:
    """Return True if a section has one of the forms of the grammar: change, creation, deletion or rename."""
    lines = [line for hunk in section.hunks for line in hunk.body]
    if any(line.startswith("\\") and line != NO_NEWLINE for line in lines):
        return False
    if any(line.sign == UNSIGNED or line.text.endswith("\r") for hunk in section.hunks for line in hunk.lines):
        return False
    if section.extended:
        names = section.extended.get("rename from"), section.extended.get("rename to")
        return len(section.extended) == 2 and None not in names and names[0] != names[1] and section.old is None
    old, new = section.old or "", section.new or ""
    if old == NOTHING:
        return new.startswith("b/")
    return bool(section.hunks) and old.startswith("a/") and new in {NOTHING, f"b/{old[2:]}"}


class SourceLines(Struct, frozen=True):
    """The lines of a diff without line feeds, and one sentence for each repair."""

    lines: list[str]
    repairs: tuple[str, ...] = ()


def strict_lines(text: str) -> list[str]:
    """Return the lines of a text that is a diff and nothing else. Lines end at line feeds only."""
    lines = _split(text)
    # No tool ends its headers with CRLF: the text was converted on the way, content lines included.
    if lines and all(line.endswith("\r") for line in lines):
        return [line[:-1] for line in lines]
    return lines


def lenient_lines(text: str) -> SourceLines:
    """Return the lines of a text that contains a diff, without the indent and the carriage returns of all its lines."""
    lines, repairs = _split(text), list[str]()
    if indent := _common_indent(lines):
        repairs.append("the whole diff was indented")
        lines = [line.removeprefix(indent) for line in lines]
    headers = [line for line in lines if _HEADER.match(line)]
    if headers and all(line.endswith("\r") for line in headers):
        repairs.append("the diff's own lines ended with CRLF")
        lines = [line.removesuffix("\r") for line in lines]
    return SourceLines(lines, tuple(repairs))


def unescaped(text: str) -> str | None:
    """Return the text with HTML entities replaced, None unless all of it is escaped.

    An escaped text contains entities, but no angle bracket and no bare ampersand.
    """
    if not _ENTITY.search(text) or _UNESCAPED.search(text):
        return None
    from html import unescape  # a table of all entities, which few diffs need

    return unescape(text)


def with_straight_quotes(text: str) -> str | None:
    """Return the text with straight quotes, None unless all its quotes are curly."""
    is_curly = re.search("[“”‘’]", text) and '"' not in text and "'" not in text
    return text.translate(_CURLY) if is_curly else None


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _common_indent(lines: list[str]) -> str:
    """Return the indent of a diff in a list or a quotation; empty if its headers are not indented."""
    if any(line.startswith(("diff --git ", "--- ")) for line in lines):
        return ""
    return next((match[1] for match in map(_INDENT.match, lines) if match), "")


def compare_with_unidiff(path: str, hunks: Sequence[WrittenHunk]) -> None:
    """Raise `PatchError` unless unidiff reads the same lines in the hunks of one file."""
    if not hunks:
        return
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        (file,) = PatchSet(list(_plain_diff(hunks)))
    except (UnidiffParseError, ValueError) as error:
        raise PatchError(f"{shown(path)}: {shown(str(error))}") from error
    for written, read in zip(hunks, file, strict=True):
        if _lines(read) != list(written.lines):
            raise PatchError(f"{shown(path)}: the hunk at line {read.source_start} can be read in two ways")


def _plain_diff(hunks: Sequence[WrittenHunk]) -> Iterator[str]:
    """Yield the hunks as lines that end at line feeds only, under constant names.

    unidiff splits strings at other characters too, and does not decode quoted names.
    """
    yield from ("--- a\n", "+++ b\n")
    for hunk in hunks:
        if hunk.numbers is not None:
            old, new = hunk.numbers.old_start, hunk.numbers.new_start
            yield f"@@ -{old},{hunk.numbers.old_count} +{new},{hunk.numbers.new_count} @@\n"
        yield from (f"{_uniform(line)}\n" for line in hunk.body)


def _uniform(line: str) -> str:
    if line.startswith("\\"):
        return NO_NEWLINE
    return line if line[:1] in {" ", "-", "+"} else f" {line}"


def _lines(hunk: "UnidiffHunk") -> list[WrittenLine]:
    lines: list[WrittenLine] = []
    for line in hunk:
        if line.line_type == "\\":
            lines[-1] = WrittenLine(lines[-1].sign, lines[-1].text, newline=False)
        else:
            lines.append(WrittenLine(line.line_type, line.value.removesuffix("\n")))
    return lines


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
