"""Diffs as text in git's form, from file changes and from a `Patch`, and their size."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from agent_workbench.core.patch.alignment import Block, shared_blocks
from agent_workbench.core.patch.hashes import hunk_id
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
    old, new = _lines(before), _lines(after)
    for group in _groups(shared_blocks(old, new), len(old), len(new)):
        lines: list[HunkLine] = []
        for block, following in pairwise(group):
            lines += (HunkLine(LineKind.CONTEXT, *line) for line in old[block.old : block.old + block.size])
            lines += (HunkLine(LineKind.REMOVED, *line) for line in old[block.old + block.size : following.old])
            lines += (HunkLine(LineKind.ADDED, *line) for line in new[block.new + block.size : following.new])
        lines += (HunkLine(LineKind.CONTEXT, *line) for line in old[group[-1].old : group[-1].old + group[-1].size])
        has_old = any(line.kind is not LineKind.ADDED for line in lines)
        has_new = any(line.kind is not LineKind.REMOVED for line in lines)
        yield Hunk(hunk_id(path, lines), group[0].old + has_old, group[0].new + has_new, tuple(lines))


def _lines(text: str) -> list[tuple[str, bool]]:
    *lines, last = text.split("\n")
    # What follows the last line feed is a line only if it is not empty, and then without a line feed of its own.
    return [(line, True) for line in lines] + [(last, False)] * bool(last)


def _groups(blocks: list[Block], old_size: int, new_size: int) -> Iterator[list[Block]]:
    """Yield what belongs in one hunk: blocks of context with a change between each and the next.

    The outer ones are cut to the lines of context that are shown, and may be empty.
    """
    start, end = Block(0, 0, 0), Block(old_size, new_size, 0)
    if not blocks or blocks[0][:2] != (0, 0):
        blocks = [start, *blocks]
    if blocks[-1].old + blocks[-1].size != old_size or blocks[-1].new + blocks[-1].size != new_size:
        blocks = [*blocks, end]
    group = [_last_of(blocks[0])]
    for block in blocks[1:-1]:
        if block.size > 2 * _CONTEXT_LINES:
            yield [*group, _first_of(block)]
            group = [_last_of(block)]
        else:
            group.append(block)
    if len(blocks) > 1:
        yield [*group, _first_of(blocks[-1])]


def _first_of(block: Block) -> Block:
    return block._replace(size=min(block.size, _CONTEXT_LINES))


def _last_of(block: Block) -> Block:
    cut = max(block.size - _CONTEXT_LINES, 0)
    return Block(block.old + cut, block.new + cut, block.size - cut)


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
