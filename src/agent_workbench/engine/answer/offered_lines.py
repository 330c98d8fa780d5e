"""Lines that the grammar lets a diff quote: those that the prompt shows and the files still have."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import ContextCompacted, Recorded
from agent_workbench.core.patch.alignment import shared_blocks
from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.patch.grammar.diff_grammar import EditScope
from agent_workbench.core.patch.grammar.hunk_rules import EditableFile, editable, text_lines
from agent_workbench.core.patch.paths import fold_path, takes_place_of
from agent_workbench.core.patch.rewrite.file_piece import FilePiece, locate
from agent_workbench.core.patch.values import PatchBounds
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.event_chunks import sent_chunks
from agent_workbench.core.state.file_pieces import offered_pieces
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles

MAX_OFFERED_LINES = 600
MAX_OFFERED_BYTES = 60_000
MAX_FILES = 12
"""Limits of the cost of a grammar; the lines that were shown longest ago are left out first."""
WHOLE_LINES = 1_000
"""Moved chunks are aligned with the whole file if it has at most so many lines."""


def shown_chunks(history: Sequence[Recorded]) -> tuple[Chunk, ...]:
    """Return the chunks of files in a prompt made of these events, the newest first."""
    compacted = next((each for each in reversed(history) if isinstance(each.event, ContextCompacted)), None)
    through = compacted.event.through_seq if compacted and isinstance(compacted.event, ContextCompacted) else -1
    found: list[Chunk] = []
    for recorded, chunks in reversed(tuple(sent_chunks(history))):
        if recorded.seq > through:
            found += chunks
    return tuple(found)


def offered_lines(lines: Sequence[str], chunks: Iterable[Chunk]) -> Iterator[int]:
    """Yield the indices of those `lines` of a file that were shown, in the order of `chunks`.

    A chunk is looked up at its own line numbers, then aligned by its content. Alignment may find another line with the
    same text, so every index is of a line that the file has now.
    """
    standing: dict[str, int] | None = None
    for chunk in chunks:
        shown = [line.removesuffix("\r") for line in chunk.text.split("\n")]
        first = chunk.first_line - 1
        if shown[-1] == "" and len(shown) > max(1, chunk.last_line - first):
            shown.pop()
        if lines[first : first + len(shown)] == tuple(shown):
            yield from range(first, first + len(shown))
            continue
        if standing is None:
            standing = _standing_once(lines)
        yield from _moved(lines, shown, standing)


def _standing_once(lines: Sequence[str]) -> dict[str, int]:
    """Return the index of each line that occurs once."""
    counts = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}


def _moved(lines: Sequence[str], shown: Sequence[str], standing: Mapping[str, int]) -> Iterator[int]:
    """Yield the indices of shown lines that moved; of a large file only the relevant part is aligned."""
    low, high = 0, len(lines)
    if len(lines) > WHOLE_LINES:
        found = [standing[line] for line in shown if line in standing]
        if not found:
            return
        low, high = max(0, min(found) - len(shown)), max(found) + len(shown) + 1
    old, new = [(line, True) for line in shown], [(line, True) for line in lines[low:high]]
    for block in shared_blocks(old, new):
        yield from range(low + block.new, low + block.new + block.size)


async def edit_scope(scope: TaskBounds, present: TaskFiles) -> EditScope:
    """Return the files that the next diff may change: those that the prompt shows, and new ones."""
    chunks: dict[str, list[Chunk]] = {}
    for chunk in shown_chunks(scope.run.history):
        chunks.setdefault(chunk.path, []).append(chunk)
    bounds = scope.patch_bounds()
    lines_left, bytes_left = MAX_OFFERED_LINES, MAX_OFFERED_BYTES
    files: list[EditableFile] = []
    for path, shown in chunks.items():
        if len(files) >= MAX_FILES:
            break
        lines = await _lines(present, path) if _may_be_changed(scope, bounds, path) else None
        if lines is None:
            continue
        sizes = await asyncio.to_thread(_within, lines.bare, shown, lines_left, bytes_left)
        lines_left, bytes_left = lines_left - len(sizes), bytes_left - sum(sizes.values())
        if sizes or not len(lines):
            files.append(editable(path, lines, sizes))
    existing = await present.list_files()
    return EditScope(tuple(files), existing, bounds, scope.task.constraints.max_files_changed)


async def standing_pieces(scope: TaskBounds, present: TaskFiles) -> tuple[FilePiece, ...]:
    """Return the pieces that the prompt offers and that the files still have, those shown last first."""
    bounds = scope.patch_bounds()
    files: dict[str, FileLines | None] = {}
    standing: list[FilePiece] = []
    for piece in reversed((await asyncio.to_thread(offered_pieces, scope.run)).pieces):
        if piece.path not in files:
            files[piece.path] = (
                await _lines(present, piece.path) if _may_be_changed(scope, bounds, piece.path) else None
            )
        lines = files[piece.path]
        found = await asyncio.to_thread(locate, piece, lines.bare) if lines is not None else None
        if lines is not None and found is not None:
            standing.append(replace(piece, whole=len(found) == len(lines)))
    return tuple(standing)


def _within(lines: Sequence[str], chunks: Iterable[Chunk], most_lines: int, most_bytes: int) -> dict[int, int]:
    """Return the indices of the offered lines within the limits, with the size of each in bytes."""
    sizes: dict[int, int] = {}
    if most_lines <= 0:
        return sizes
    for at in offered_lines(lines, chunks):
        if at in sizes:
            continue
        size = len(lines[at].encode("utf-8", "surrogatepass")) + 1
        if size <= most_bytes:
            sizes[at] = size
            most_bytes -= size
        if len(sizes) >= most_lines or most_bytes <= 0:
            break
    return sizes


def _may_be_changed(scope: TaskBounds, bounds: PatchBounds, path: str) -> bool:
    folded = fold_path(path)
    return (
        path.isprintable()
        and scope.may_read(path)
        and any(matches_glob(path, glob) for glob in bounds.write_globs)
        and not any(matches_glob(folded, fold_path(glob)) for glob in bounds.protected_globs)
        and not any(takes_place_of(path, judge) for judge in bounds.judges)
    )


async def text_of(present: TaskFiles, path: str) -> str | None:
    """Return the text of a file with line feeds alone as line ends; None if there is none, or it is no text."""
    lines = await _lines(present, path)
    return None if lines is None else "\n".join(lines.bare)


async def _lines(present: TaskFiles, path: str) -> FileLines | None:
    try:
        content = await present.read(path)
    except WorkspaceError:
        return None
    return None if content is None else text_lines(content)
