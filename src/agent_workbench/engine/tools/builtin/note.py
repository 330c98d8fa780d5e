"""Tool `note`: a line in the task's scratchpad."""

from agent_workbench.core.events import Author
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.prompt.scratchpad import notes_changed
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool


class NoteTool(BuiltinTool, frozen=True):
    """Tool that appends to the notes that the model and the user share."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Append the note."""
        text = self.read(proposal.text).text("text").strip()
        memory, task, fork = context.ports.memory, context.task.id, context.run.fork
        before = await memory.read_scratchpad(task, fork)
        gap = "" if not before or before.endswith("\n") else "\n"
        after = await memory.write_scratchpad(task, before, f"{before}{gap}- {text}\n", fork)
        return ToolResult("noted", effects=(notes_changed(context.settings, task, after, Author.MODEL),))


TOOL = NoteTool(
    name="note",
    summary="keep a line in the task's scratchpad",
    arguments=(Argument("text", ArgumentKind.STRING, "", max_length=600),),
)
