"""Text of a patch in git's form, and its size."""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from agent_workbench.core.patch.comparison import compare_content, is_text_change
from agent_workbench.core.patch.values import (
    NO_NEWLINE,
    FileChange,
    FileOperation,
    FilePatch,
    HunkLine,
    LineKind,
    Patch,
    hunk_ids,
)

DIFF_BEGINS = re.compile(r"^(diff --git |--- \S[^\n]*\n\+\+\+ )", re.MULTILINE)
"""The beginning of a diff with headers."""
_EXECUTABLE, _PLAIN = 0o100755, 0o100644


def render_patch(patch: Patch) -> str:
    """Return the text of a patch in its canonical form; line counts and new line numbers follow from its lines."""
    return "".join(line for file in patch.files for line in (*_header(file), *_body(file)))


def canonical_patch(patch: Patch) -> Patch:
    """Return the patch with the ids and new line numbers that `parse_patch` reads from its text."""
    return Patch(tuple(map(_canonical, patch.files)))


def render_changes(changes: Iterable[FileChange]) -> str:
    """Return the unified diff of these changes, with three lines of context; empty if nothing changes.

    The change of a content that is not UTF-8 text becomes a line `Binary files … differ`; `parse_patch` refuses it.
    """
    return "".join(_render_change(change) for change in changes if change.before != change.after)


def patch_stat(patch: Patch) -> tuple[int, int]:
    """Return the numbers of added and of removed lines."""
    kinds = [line.kind for file in patch.files for hunk in file.hunks for line in hunk.lines]
    return kinds.count(LineKind.ADDED), kinds.count(LineKind.REMOVED)


def hunk_line_text(line: HunkLine) -> str:
    """Return a line of a hunk as a diff writes it, with its line feed and the marker of a missing one."""
    return f"{line.kind}{line.text}\n" + ("" if line.newline else f"{NO_NEWLINE}\n")


def _canonical(file: FilePatch) -> FilePatch:
    names = hunk_ids(file.path, (hunk.lines for hunk in file.hunks))
    each = zip(file.hunks, names, _new_starts(file), strict=True)
    return replace(file, hunks=tuple(replace(hunk, id=name, new_start=start) for hunk, name, start in each))


def _render_change(change: FileChange) -> str:
    file = compare_content(change)
    if is_text_change(change):
        return "".join((*_header(file), *_body(file)))
    old, new = _sides(file)
    return "".join((*_header(file), f"Binary files {old} and {new} differ\n"))


def _header(file: FilePatch) -> Iterator[str]:
    yield f"diff --git {_name(f'a/{file.old_path}')} {_name(f'b/{file.path}')}\n"
    mode = file.mode
    match file.operation:
        case FileOperation.CREATE:
            yield f"new file mode {mode or _PLAIN:o}\n"
        case FileOperation.DELETE:
            yield f"deleted file mode {mode or _PLAIN:o}\n"
        case FileOperation.MODIFY | FileOperation.RENAME if mode is not None:
            yield f"old mode {_PLAIN if mode == _EXECUTABLE else _EXECUTABLE:o}\nnew mode {mode:o}\n"
    if file.operation is FileOperation.RENAME:
        yield f"rename from {_name(file.old_path)}\nrename to {_name(file.path)}\n"


def _body(file: FilePatch) -> Iterator[str]:
    if file.hunks:
        # Like git: a tab ends a name with spaces, which some readers would cut at the first space.
        old, new = (name + "\t" * (" " in name) for name in _sides(file))
        yield f"--- {old}\n+++ {new}\n"
    for hunk, new_start in zip(file.hunks, _new_starts(file), strict=True):
        section = f" {hunk.section}" if hunk.section else ""
        old, new = _range(hunk.old_start, len(hunk.old)), _range(new_start, len(hunk.new))
        yield f"@@ -{old} +{new} @@{section}\n"
        yield from map(hunk_line_text, hunk.lines)


def _new_starts(file: FilePatch) -> Iterator[int]:
    """Yield the first new line of each hunk. A side without lines has the number of the line before it."""
    shift = 0
    for hunk in file.hunks:
        old_count, new_count = len(hunk.old), len(hunk.new)
        yield max(hunk.old_start - bool(old_count) + shift, 0) + bool(new_count)
        shift += new_count - old_count


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def _sides(file: FilePatch) -> tuple[str, str]:
    old = "/dev/null" if file.operation is FileOperation.CREATE else _name(f"a/{file.old_path}")
    new = "/dev/null" if file.operation is FileOperation.DELETE else _name(f"b/{file.path}")
    return old, new


def _name(name: str) -> str:
    """Return a name as git writes it: quoted if necessary, with non-ASCII letters as they are."""
    if not any(char in '"\\' or ord(char) < 32 or ord(char) == 127 for char in name):
        return name
    return '"' + "".join(_escaped(char) for char in name) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return f"\\{ord(char):03o}" if ord(char) < 32 or ord(char) == 127 else char
