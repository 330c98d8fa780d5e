"""Tool `read_file`: lines of one file."""

from asyncio import to_thread
from itertools import islice

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import similar_paths
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.import_lines import IMPORTS
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.file_pieces import LEAST_LINES
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, Choices
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

MAX_CHOICES = 400
MAX_LINES = 400
MAX_CHARS = 24_000


class ReadFile(BuiltinTool, frozen=True):
    """Tool that shows lines of a file, at most `MAX_LINES` at a time."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices:
        """Return the readable files; if they are too many to list, any path may be tried."""
        longest = self.arguments[0].max_length
        readable = (path for path in await present.list_files() if len(path) <= longest and scope.may_read(path))
        paths = tuple(islice(readable, MAX_CHOICES + 1))
        return {"path": paths} if 0 < len(paths) <= MAX_CHOICES else {}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the call; raise `WorkspaceError` for a path outside the scope."""
        context.check_readable(arguments.text("path"))
        return await super().draft(context, arguments, text)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the requested lines with their numbers."""
        asked = self.read(proposal.text)
        path = asked.text("path")
        context.check_readable(path)
        content = await context.files.read(path)
        if content is None:
            readable = filter(context.may_read, await context.files.list_files())
            near = ", ".join(await to_thread(similar_paths, path, readable))
            advice = f"near it are: {near}" if near else "list_files shows those there are"
            raise WorkspaceError(f"there is no file {path!r}", advice=advice)
        if b"\0" in content.data:
            raise WorkspaceError(f"{path!r} is binary ({len(content.data)} bytes)")
        lines = content.data.decode("utf-8", "replace").split("\n")
        count = len(lines) - 1 if lines[-1] == "" else len(lines)
        first = max(1, asked.number("first_line", 1))
        last = min(count, max(asked.number("last_line", count), first), first + MAX_LINES - 1)
        if not count:
            return ToolResult(f"{path} is empty", shown=(Chunk(path, 1, 0, "", 0.0),))
        if first > count:
            raise WorkspaceError(f"{path!r} has {count} lines, line {first} was asked for")
        text = "\n".join(lines[first - 1 : last])
        shown = _whole(path, first, text[:MAX_CHARS] if len(text) > MAX_CHARS else f"{text}\n")
        if len(text) > MAX_CHARS:
            text = text[:MAX_CHARS] + "\n… the rest of these lines is cut …"
        rest = "" if last >= count else f" (ask for first_line {last + 1} to see more)"
        told = f"{path}, lines {first} to {last} of {count}{rest}:\n{text}"
        if last - first < LEAST_LINES - 1:
            return ToolResult(told, shown=shown)
        more = await context.for_prompt(shown)
        below = (f"{chunk.place}\n{chunk.text}" for chunk in more if chunk.symbol == IMPORTS)
        return ToolResult("\n\n".join((told, *below)), shown=more)


def _whole(path: str, first: int, text: str) -> tuple[Chunk, ...]:
    """Return the lines of `text` up to its last line feed; a rest may be a cut line."""
    lines = text.split("\n")[:-1]
    return (Chunk(path, first, first + len(lines) - 1, "\n".join(lines), 0.0),) if lines else ()


TOOL = ReadFile(
    name="read_file",
    summary="show lines of a file",
    arguments=(
        Argument("path", ArgumentKind.STRING, ""),
        Argument("first_line", ArgumentKind.INTEGER, "", required=False),
        Argument("last_line", ArgumentKind.INTEGER, "", required=False),
    ),
)
