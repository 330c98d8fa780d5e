"""Tools that read the workspace: `read_file`, `list_files`, `grep` and `search_code`.

The text is literal: a model's pattern could keep Python's `re` busy for hours, and nothing can stop it.
"""

import asyncio
from asyncio import to_thread
from collections.abc import Iterator
from itertools import islice

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import matches_glob, similar_paths
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.retrieval import IMPORTS, RELEVANT, Chunk, CodeQuery
from agent_workbench.core.state.file_pieces import LEAST_LINES
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, Choices
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext
from agent_workbench.engine.tools.check_runs import latest_failures

MAX_CHOICES = 400
MAX_LINES = 400
MAX_CHARS = 24_000

MAX_FILES = 300

MAX_HITS = 60
MAX_SEARCHED_FILES = 20_000
MAX_BYTES = 1_000_000
LINE_CHARS = 240

MAX_CHUNKS = 5


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
            raise WorkspaceError(f"{path!r} has {counted_text(count, 'line')}, line {first} was asked for")
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


READ_FILE_TOOL = ReadFile(
    name="read_file",
    summary="show lines of a file",
    arguments=(
        Argument("path", ArgumentKind.STRING, ""),
        Argument("first_line", ArgumentKind.INTEGER, "", required=False),
        Argument("last_line", ArgumentKind.INTEGER, "", required=False),
    ),
)


class ListFiles(BuiltinTool, frozen=True):
    """Tool that lists the workspace's files without those that git ignores."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the matching paths, one per line."""
        glob = self.read(proposal.text).text("glob", "**")
        files = await context.files.list_files()
        found = [path for path in files if matches_glob(path, glob) and context.may_read(path)]
        if not found:
            return ToolResult(f"no file matches {glob!r}")
        cut = f"\n… {len(found) - MAX_FILES} more …" if len(found) > MAX_FILES else ""
        return ToolResult(f"{len(found)} files match {glob!r}:\n" + "\n".join(found[:MAX_FILES]) + cut)


LIST_FILES_TOOL = ListFiles(
    name="list_files",
    summary="list files whose path matches a glob (** for any folders)",
    arguments=(Argument("glob", ArgumentKind.STRING, "such as src/**/*.py", required=False),),
)


class Grep(BuiltinTool, frozen=True):
    """Tool that searches text files line by line, ignoring case."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return matches as `path:line: text`, with the indentation that a diff needs."""
        asked = self.read(proposal.text)
        words, glob = asked.text("text"), asked.text("glob", "**")
        if not words.strip():
            raise WorkspaceError("grep needs a text to look for")
        hits: list[Chunk] = []
        for path in (await context.files.list_files())[:MAX_SEARCHED_FILES]:
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


GREP_TOOL = Grep(
    name="grep",
    summary="find lines that hold a text, taken literally, upper and lower case alike",
    arguments=(
        Argument("text", ArgumentKind.STRING, ""),
        Argument("glob", ArgumentKind.STRING, "", required=False),
    ),
)


class SearchCode(BuiltinTool, frozen=True):
    """Tool that finds code for a question."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the best chunks with their locations."""
        query = self.read(proposal.text).text("query")
        run = context.state.run
        failures = latest_failures(run) if run is not None else ""
        chunks = await context.ports.retriever.search(
            context.files, CodeQuery(query, failures, floor=RELEVANT), MAX_CHUNKS
        )
        readable = [chunk for chunk in chunks if context.may_read(chunk.path)]
        if not readable:
            return ToolResult(f"nothing was found for {query!r}")
        told = await context.for_prompt(readable)
        return ToolResult("\n\n".join(chunk.shown for chunk in told), shown=told)


SEARCH_CODE_TOOL = SearchCode(
    name="search_code",
    summary="find functions and classes by words, names, or lines of a stack trace",
    arguments=(Argument("query", ArgumentKind.STRING, "", max_length=400),),
)

TOOLS = (READ_FILE_TOOL, LIST_FILES_TOOL, GREP_TOOL, SEARCH_CODE_TOOL)
