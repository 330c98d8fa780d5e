"""Diffs as text in git's form, from file changes and from a `Patch`, and their size."""

from collections.abc import Iterable, Iterator

from agent_workbench.core.patch.identify import hunk_id
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

_CONTEXT_LINES = 3
_EXECUTABLE, _PLAIN = 0o100755, 0o100644


def render_changes(changes: Iterable[FileChange]) -> str:
    """Return the unified diff of these changes, with three lines of context; empty if none changes anything.

    A change of content that is not text (NUL, invalid UTF-8) is one line `Binary files … differ`, which `parse_patch`
    refuses; of all others `parse_patch` and `apply_patch` make the same contents again.
    """
    return "".join(_render_change(change) for change in changes if change.before != change.after)


def render_patch(patch: Patch) -> str:
    """Return the text of a patch in one canonical form; counts and new line numbers are made from its lines."""
    return "".join(line for file in patch.files for line in (*_header(file), *_body(file)))


def patch_stat(patch: Patch) -> tuple[int, int]:
    """Return how many lines a patch adds and how many it removes."""
    kinds = [line.kind for file in patch.files for hunk in file.hunks for line in hunk.lines]
    return kinds.count(LineKind.ADDED), kinds.count(LineKind.REMOVED)


def _render_change(change: FileChange) -> str:
    before, after = _text(change.before), _text(change.after)
    file = _compared(change, before or "", after or "")
    if before is not None and after is not None:
        return "".join((*_header(file), *_body(file)))
    old, new = _sides(file)
    return "".join((*_header(file), f"Binary files {old} and {new} differ\n"))


def _text(content: FileContent | None) -> str | None:
    """Return the content as text, empty if there is no file, None if it is not text."""
    data = b"" if content is None else content.data
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _compared(change: FileChange, before: str, after: str) -> FilePatch:
    operation, mode = FileOperation.MODIFY, None
    if change.before is None and change.after is not None:
        operation, mode = FileOperation.CREATE, _mode(change.after)
    elif change.after is None and change.before is not None:
        operation, mode = FileOperation.DELETE, _mode(change.before)
    elif change.before and change.after and change.before.executable != change.after.executable:
        mode = _mode(change.after)
    return FilePatch(operation, change.path, change.path, tuple(_hunks(change.path, before, after)), mode)


def _mode(content: FileContent) -> int:
    return _EXECUTABLE if content.executable else _PLAIN


def _hunks(path: str, before: str, after: str) -> Iterator[Hunk]:
    from difflib import SequenceMatcher

    old, new = before.split("\n"), after.split("\n")
    # The last element is what follows the last line feed: a line only if it is not empty, and then without its own.
    lines = [[(line, True) for line in each[:-1]] + [(each[-1], False)] * bool(each[-1]) for each in (old, new)]
    matcher = SequenceMatcher(a=lines[0], b=lines[1])
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        each: list[HunkLine] = []
        for tag, old_from, old_to, new_from, new_to in group:
            kind = LineKind.CONTEXT if tag == "equal" else LineKind.REMOVED
            each += (HunkLine(kind, *line) for line in lines[0][old_from:old_to])
            if tag != "equal":
                each += (HunkLine(LineKind.ADDED, *line) for line in lines[1][new_from:new_to])
        _, old_from, _, new_from, _ = group[0]
        has_old, has_new = group[-1][2] > old_from, group[-1][4] > new_from
        yield Hunk(hunk_id(path, each), old_from + has_old, new_from + has_new, tuple(each))


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
        # As git does: a tab ends a name with spaces, which some readers would cut at the first one.
        old, new = (name + "\t" * (" " in name) for name in _sides(file))
        yield f"--- {old}\n+++ {new}\n"
    shift = 0
    for hunk in file.hunks:
        old_count, new_count = len(hunk.old), len(hunk.new)
        # A side without lines is numbered by the line before it.
        at = hunk.old_start - bool(old_count)
        section = f" {hunk.section}" if hunk.section else ""
        new_start = max(at + shift, 0) + bool(new_count)
        yield f"@@ -{_range(hunk.old_start, old_count)} +{_range(new_start, new_count)} @@{section}\n"
        yield from map(_line, hunk.lines)
        shift += new_count - old_count


def _line(line: HunkLine) -> str:
    return f"{line.kind}{line.text}\n" + ("" if line.newline else "\\ No newline at end of file\n")


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def _sides(file: FilePatch) -> tuple[str, str]:
    old = "/dev/null" if file.operation is FileOperation.CREATE else _name(f"a/{file.old_path}")
    new = "/dev/null" if file.operation is FileOperation.DELETE else _name(f"b/{file.path}")
    return old, new


def _name(name: str) -> str:
    """Return a name as git writes it, in quotes if it would be misread without; letters beyond ASCII stay."""
    if not any(char in '"\\' or ord(char) < 32 or ord(char) == 127 for char in name):
        return name
    return '"' + "".join(_escaped(char) for char in name) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return f"\\{ord(char):03o}" if ord(char) < 32 or ord(char) == 127 else char
