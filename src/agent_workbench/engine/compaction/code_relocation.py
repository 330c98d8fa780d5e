"""Relocation of a chunk of code that was shown earlier: its current lines and text."""

from difflib import SequenceMatcher

from msgspec.structs import replace

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.repo.retrieval import Chunk


async def relocate_chunk(workspace: Workspace, chunk: Chunk) -> Chunk | None:
    """Return the chunk at its current position, None if its file is gone or holds nothing of it."""
    try:
        content = await workspace.read(chunk.path)
    except WorkspaceError:
        return None
    if content is None:
        return None
    lines = content.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    first, last = locate_lines(chunk.text.split("\n"), lines, chunk.first_line - 1)
    if first >= last:
        return None
    return replace(chunk, first_line=first + 1, last_line=last, text="\n".join(lines[first:last]))


def locate_lines(wanted: list[str], lines: list[str], was_at: int) -> tuple[int, int]:
    """Return the range (from 0, end exclusive) of the wanted lines, possibly with changed lines between.

    `was_at` is their former first line. It decides between equal matches, and is used if nothing matches.
    """
    if lines[was_at : was_at + len(wanted)] == wanted:
        return was_at, was_at + len(wanted)
    same = [place for place in range(len(lines)) if lines[place : place + len(wanted)] == wanted]
    if same:
        nearest = min(same, key=lambda place: abs(place - was_at))
        return nearest, nearest + len(wanted)
    blocks = SequenceMatcher(None, wanted, lines, autojunk=False).get_matching_blocks()[:-1]
    if not any(line.strip() for block in blocks for line in wanted[block.a : block.a + block.size]):
        return min(was_at, len(lines)), min(was_at + len(wanted), len(lines))
    first = max(0, blocks[0].b - blocks[0].a)
    last = min(len(lines), blocks[-1].b + len(wanted) - blocks[-1].a)
    if last - first <= 2 * len(wanted):
        return first, last
    longest = max(blocks, key=lambda block: block.size)
    first = max(0, longest.b - longest.a)
    return first, min(len(lines), first + len(wanted))
