"""Tool `background`: the last lines of the command that was left running, and its stop."""

from agent_workbench.core.errors import UsageError
from agent_workbench.core.proposal_kinds import ReadProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.rules.command_lines import left_running
from agent_workbench.core.settings import BACKGROUND, RUN_COMMAND
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, Choices
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

READ, STOP = "read", "stop"


class Background(BuiltinTool, frozen=True):
    """Tool that reads from, or stops, what `run_command` has left running. Neither needs an approval of its own."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return the two actions; None as long as the task has left no command running."""
        steps = newest_steps(scope.run.history)
        left = any(step.proposal.tool == RUN_COMMAND and left_running(step.proposal.text) for step in steps)
        return {"action": (READ, STOP)} if left else None

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the call as requested; raise `UsageError` for another action."""
        if (action := arguments.text("action")) not in {READ, STOP}:
            raise UsageError(f"action is {action!r}", advice=f"it is {READ} or {STOP}")
        return ReadProposal(text=text)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the last lines; after a stop with how it ended."""
        stops = self.read(proposal.text).text("action") == STOP
        told = await context.background.stop() if stops else context.background.last_lines()
        return ToolResult(told, output=told)


TOOL = Background(
    name=BACKGROUND,
    summary="the command left running: its last lines, or its end",
    arguments=(Argument("action", ArgumentKind.STRING, f"{READ} or {STOP}", max_length=10),),
)
