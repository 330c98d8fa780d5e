"""Tool `query_knowledge`: search of the notes at the model's request."""

from agent_workbench.core.proposals import Proposal
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.knowledge.search import find_knowledge, note_text
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

MAX_TOKENS = 1_500


class QueryKnowledge(BuiltinTool, frozen=True):
    """Tool that finds notes for a question."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the best notes with their paths."""
        query = self.read(proposal.text).text("query")
        memory = context.settings.memory.dir
        found = await find_knowledge(
            context.ports.knowledge, memory, query, limit=5, max_tokens=MAX_TOKENS, least_words=1
        )
        problem = f" ({found.problem})" if found.problem else ""
        if not found.notes:
            return ToolResult(f"no note was found for {query!r}{problem}")
        return ToolResult("\n\n".join(f"{note.place}\n{note_text(note)}" for note in found.notes))


TOOL = QueryKnowledge(
    name="query_knowledge",
    summary="find notes of earlier tasks by words",
    arguments=(Argument("query", ArgumentKind.STRING, "", max_length=400),),
)
