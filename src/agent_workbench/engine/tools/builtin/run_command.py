"""Tool `run_command`: one shell command."""

from agent_workbench.core.errors import ShellError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool import Draft, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_runs import refuse_denied, run_command

OBSERVED_CHARS = 6_000


class RunCommand(BuiltinTool, frozen=True):
    """Tool that runs a command in the workspace. Denied patterns prevent accidents; the sandbox is the protection."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Draft:
        """Return the command; the proposal's text is the bare command line, so that it can be edited."""
        line = (arguments.text("command") or text).strip()
        if not line:
            raise ShellError("the command is empty")
        refuse_denied(context.task, (line,))
        return Draft(text=line, commands=(line,))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Run it and return its exit code and output."""
        outcome = await run_command(context, proposal.text)
        ended = outcome.reason or f"exit code {outcome.exit_code}"
        return ToolResult(
            f"{ended}\n{clip(outcome.output.strip(), OBSERVED_CHARS)}",
            result=ActionResult.OK if outcome.exit_code == 0 else ActionResult.FAILED,
            output=outcome.output,
            cut_bytes=outcome.cut_bytes,
        )


TOOL = RunCommand(
    name="run_command",
    summary="run a shell command in the workspace",
    permission=Permission.COMMAND,
    arguments=(Argument("command", ArgumentKind.STRING, "", max_length=500),),
)
