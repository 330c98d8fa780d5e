"""Tool `rewrite`: the whole new text of pieces that the prompt shows, or of new files. The diff follows from it."""

from asyncio import to_thread
from collections.abc import Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError, VainChange
from agent_workbench.core.events import PatchApplied
from agent_workbench.core.patch.comparison import compare_contents
from agent_workbench.core.patch.diff_text import DIFF_BEGINS, render_patch
from agent_workbench.core.patch.file_piece import FilePiece, RewrittenFile, rewrite_file
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.rewritten_pieces import RewrittenPiece, read_rewrites
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.file_pieces import OfferedPieces, aimed, named_piece, offered_pieces
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.core.tools.spec import REWRITE
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.write_diff import WriteDiff, describe_applied


class Rewrite(WriteDiff, frozen=True):
    """Tool that replaces pieces by their new text. What is shown, decided and applied is the diff of that."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the diff of the rewritten pieces; raise `PatchError` if one is not complete or not offered.

        A text that is a diff is one that the user edited at the gate.
        """
        if DIFF_BEGINS.match(text):
            return await super().draft(context, arguments, text)
        pieces = await to_thread(offered_pieces, context.run)
        written, remarks = aimed(pieces, read_rewrites(text))
        files = await _rewritten(context, pieces, written)
        changed = (FileChange(path, before, file.content) for path, (before, file) in files.items())
        changes = (*changed, *await _created(context, written))
        diff = await to_thread(lambda: render_patch(compare_contents(changes)))
        if not diff.strip():
            raise VainChange(
                "the new text is the same as the old one", advice="change what is wrong in it, or do something else"
            )
        draft = await super().draft(context, arguments, diff)
        repairs = (repair for _, file in files.values() for repair in file.repairs)
        return replace(draft, text=text, repaired=(*remarks, *repairs, *draft.repaired))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Apply the shown diff. The pieces are shown as they are now, so that they can be rewritten again."""
        if proposal.edited or proposal.hunks or DIFF_BEGINS.match(proposal.text):
            return await super().run(context, proposal)
        pieces = await to_thread(offered_pieces, context.run)
        written, _ = aimed(pieces, read_rewrites(proposal.text))
        rewritten = await _rewritten(context, pieces, written)
        result = await super().run(context, proposal)
        now = tuple(_chunk(piece) for _, file in rewritten.values() for piece in file.pieces)
        (applied,) = (replace(each, shown=now) for each in result.effects if isinstance(each, PatchApplied))
        return replace(result, observation=describe_applied(applied, proposal), effects=(applied,))


async def _rewritten(
    context: ToolContext, pieces: OfferedPieces, written: Sequence[RewrittenPiece]
) -> dict[str, tuple[FileContent, RewrittenFile]]:
    """Return the files of the rewritten pieces by path, as they are and as they will be."""
    by_path: dict[str, list[tuple[FilePiece, Sequence[str]]]] = {}
    for each in written:
        if not each.path:
            piece = named_piece(pieces, each)
            by_path.setdefault(piece.path, []).append((piece, each.lines))
    files: dict[str, tuple[FileContent, RewrittenFile]] = {}
    for path, rewrites in by_path.items():
        before = await context.workspace.read(path)
        if before is None:
            raise PatchError(f"{shown(path)} does not exist any more", advice="list_files shows the files there are")
        files[path] = before, await to_thread(rewrite_file, before, rewrites)
    return files


async def _created(context: ToolContext, written: Sequence[RewrittenPiece]) -> tuple[FileChange, ...]:
    """Return the new files of an answer; raise `PatchError` for one that exists."""
    for each in written:
        if each.path and await context.workspace.read(each.path) is not None:
            raise PatchError(f"{shown(each.path)} exists", advice="read_file shows it under a number, to rewrite it")
    contents = ((each.path, "".join(f"{line}\n" for line in each.lines)) for each in written if each.path)
    return tuple(
        FileChange(path, None, FileContent(text.encode("utf-8", "surrogateescape"))) for path, text in contents
    )


def _chunk(piece: FilePiece) -> Chunk:
    last = piece.first_line + len(piece.lines) - 1
    return Chunk(piece.path, piece.first_line, last, "\n".join(piece.lines), 0.0)


REWRITE_TOOL = Rewrite(
    name=REWRITE,
    summary="give pieces of files that you were shown their whole new text",
    permission=Permission.DIFF,
    raw=True,
    fenced=True,
)

TOOLS = (REWRITE_TOOL,)
