"""Tool `grep`: search for lines that contain a text.

The text is literal: a model's pattern could keep Python's `re` busy for hours, and nothing can stop it.
"""

import asyncio
from collections.abc import Iterator

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

MAX_HITS = 60
MAX_FILES = 20_000
MAX_BYTES = 1_000_000
LINE_CHARS = 240


class Grep(BuiltinTool, frozen=True):
    """Tool that searches text files line by line, ignoring case."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return matches as `path:line: text`, with the indentation that a diff needs."""
        asked = self.read(proposal.text)
        words, glob = asked.text("text"), asked.text("glob", "**")
        if not words.strip():
            raise WorkspaceError("grep needs a text to look for")
        hits: list[Chunk] = []
        for path in (await context.files.list_files())[:MAX_FILES]:
            if context.may_read(path) and matches_glob(path, glob):
                hits += await self._search(context, path, words)
            if len(hits) >= MAX_HITS:
                break
        if not hits:
            return ToolResult(f"nothing holds {words!r} in {glob!r}")
        cut = f"\n… stopped at {MAX_HITS} hits …" if len(hits) >= MAX_HITS else ""
        told = "\n".join(f"{hit.path}:{hit.first_line}: {hit.text[:LINE_CHARS]}" for hit in hits[:MAX_HITS])
        return ToolResult(told + cut, shown=tuple(hit for hit in hits[:MAX_HITS] if len(hit.text) <= LINE_CHARS))

    async def _search(self, context: ToolContext, path: str, words: str) -> list[Chunk]:
        try:
            content = await context.files.read(path)
        except WorkspaceError:
            return []
        if content is None or len(content.data) > MAX_BYTES or b"\0" in content.data:
            return []
        return await asyncio.to_thread(lambda: list(_hits(path, content.data, words)))


def _hits(path: str, data: bytes, words: str) -> Iterator[Chunk]:
    wanted = words.casefold()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
        if wanted in line.casefold():
            yield Chunk(path, number, number, line.rstrip("\r"), 0.0)


TOOL = Grep(
    name="grep",
    summary="find lines that hold a text, taken literally, upper and lower case alike",
    arguments=(
        Argument("text", ArgumentKind.STRING, ""),
        Argument("glob", ArgumentKind.STRING, "", required=False),
    ),
)
