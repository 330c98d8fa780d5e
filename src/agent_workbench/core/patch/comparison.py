"""Comparison of file contents: the patch that makes one of the other."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.alignment import SharedBlock, shared_blocks
from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import (
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
    hunk_ids,
)

CONTEXT_LINES = 3
"""Unchanged lines on either side of a change."""
_EXECUTABLE, _PLAIN = 0o100755, 0o100644


def compare_contents(changes: Iterable[FileChange]) -> Patch:
    """Return the patch of these changes, with three lines of context. `parse_patch` reads the same from its text.

    Raises `PatchError` for a content that is not UTF-8 text.
    """
    real = [change for change in changes if change.before != change.after]
    binary = next((change for change in real if not is_text_change(change)), None)
    if binary is not None:
        raise PatchError(
            f"{shown(binary.path)} is not UTF-8 text, so no diff can show its change",
            advice="Change it with a command, or leave it as it is.",
        )
    return Patch(tuple(map(compare_content, real)))


def compare_content(change: FileChange) -> FilePatch:
    """Return the change of one file as part of a patch; a content that is not text counts as empty."""
    operation, mode = FileOperation.MODIFY, None
    if change.before is None and change.after is not None:
        operation, mode = FileOperation.CREATE, _mode(change.after)
    elif change.after is None and change.before is not None:
        operation, mode = FileOperation.DELETE, _mode(change.before)
    elif change.before and change.after and change.before.executable != change.after.executable:
        mode = _mode(change.after)
    hunks = tuple(_hunks(change.path, _lines(change.before), _lines(change.after)))
    return FilePatch(operation, change.path, change.path, hunks, mode)


def is_text_change(change: FileChange) -> bool:
    """Return True if the file is UTF-8 text without NUL, before and after the change."""
    return all(_is_text(content) for content in (change.before, change.after) if content is not None)


def _is_text(content: FileContent) -> bool:
    try:
        content.data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content.data


def _lines(content: FileContent | None) -> list[tuple[str, bool]]:
    return FileLines(content.data).pairs if content is not None and _is_text(content) else []


def _mode(content: FileContent) -> int:
    return _EXECUTABLE if content.executable else _PLAIN


def _hunks(path: str, old: list[tuple[str, bool]], new: list[tuple[str, bool]]) -> Iterator[Hunk]:
    groups = list(_groups(shared_blocks(old, new), len(old), len(new)))
    bodies = [tuple(_body(group, old, new)) for group in groups]
    for group, lines, name in zip(groups, bodies, hunk_ids(path, bodies), strict=True):
        has_old = any(line.kind is not LineKind.ADDED for line in lines)
        has_new = any(line.kind is not LineKind.REMOVED for line in lines)
        yield Hunk(name, group[0].old + has_old, group[0].new + has_new, lines)


def _body(group: list[SharedBlock], old: list[tuple[str, bool]], new: list[tuple[str, bool]]) -> Iterator[HunkLine]:
    for block, following in pairwise(group):
        end = block.old + block.size
        yield from (HunkLine(LineKind.CONTEXT, *line) for line in old[block.old : end])
        yield from (HunkLine(LineKind.REMOVED, *line) for line in old[end : following.old])
        yield from (HunkLine(LineKind.ADDED, *line) for line in new[block.new + block.size : following.new])
    last = group[-1]
    yield from (HunkLine(LineKind.CONTEXT, *line) for line in old[last.old : last.old + last.size])


def _groups(blocks: list[SharedBlock], old_size: int, new_size: int) -> Iterator[list[SharedBlock]]:
    """Yield the blocks of each hunk: context, with a change between each block and the next.

    The outer blocks are cut to the lines of context, and may be empty.
    """
    start, end = SharedBlock(0, 0, 0), SharedBlock(old_size, new_size, 0)
    if not blocks or blocks[0][:2] != (0, 0):
        blocks = [start, *blocks]
    if blocks[-1].old + blocks[-1].size != old_size or blocks[-1].new + blocks[-1].size != new_size:
        blocks = [*blocks, end]
    group = [_last_of(blocks[0])]
    for block in blocks[1:-1]:
        if block.size > 2 * CONTEXT_LINES:
            yield [*group, _first_of(block)]
            group = [_last_of(block)]
        else:
            group.append(block)
    if len(blocks) > 1:
        yield [*group, _first_of(blocks[-1])]


def _first_of(block: SharedBlock) -> SharedBlock:
    return block._replace(size=min(block.size, CONTEXT_LINES))


def _last_of(block: SharedBlock) -> SharedBlock:
    cut = max(block.size - CONTEXT_LINES, 0)
    return SharedBlock(block.old + cut, block.new + cut, block.size - cut)
