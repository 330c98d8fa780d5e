"""End of a task without changes, which needs its own approval because there is no commit to approve."""

from agent_workbench.core.errors import UsageError
from agent_workbench.core.proposal_kinds import FinishProposal
from agent_workbench.core.proposals import END_UNCHANGED, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin.finish import finish_summary
from agent_workbench.engine.tools.builtin_tool import BuiltinTool


class EndUnchanged(BuiltinTool, frozen=True):
    """Tool of the workbench that ends a task as done without a commit."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the model's reason; raise `UsageError` for an edited one, because nothing uses it."""
        if text:
            raise UsageError("the end of a task cannot be edited", advice="approve it, or reject it with a reason")
        return FinishProposal(text=finish_summary(context.run))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the observation; the end is recorded when the task is closed."""
        return ToolResult("the task ends with nothing changed")


TOOL = EndUnchanged(name=END_UNCHANGED, summary="end the task with nothing changed", permission=Permission.FINISH)
