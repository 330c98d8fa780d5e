"""Tool `search_code`: code search at the model's request."""

from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.retrieval import RELEVANT, CodeQuery
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_tool import latest_failures

MAX_CHUNKS = 5


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


TOOL = SearchCode(
    name="search_code",
    summary="find functions and classes by words, names, or lines of a stack trace",
    arguments=(Argument("query", ArgumentKind.STRING, "", max_length=400),),
)
