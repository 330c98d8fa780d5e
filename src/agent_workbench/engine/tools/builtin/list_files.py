"""Tool `list_files`: list of the workspace's files."""

from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

MAX_FILES = 300


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


TOOL = ListFiles(
    name="list_files",
    summary="list files whose path matches a glob (** for any folders)",
    arguments=(Argument("glob", ArgumentKind.STRING, "such as src/**/*.py", required=False),),
)
