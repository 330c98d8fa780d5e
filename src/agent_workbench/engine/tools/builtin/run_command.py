"""Tool `run_command`: one shell command, which a final `&` leaves running."""

from agent_workbench.core.errors import ShellError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.proposal_kinds import CommandProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.rules.command_lines import left_running
from agent_workbench.core.settings import RUN_COMMAND, Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_runs import command_of, refuse_denied, run_command

OBSERVED_CHARS = 6_000


class RunCommand(BuiltinTool, frozen=True):
    """Tool that runs a command in the workspace. Denied patterns prevent accidents; the sandbox is the protection."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the command; the proposal's text is the bare command line, so that it can be edited."""
        line = (arguments.text("command") or text).strip()
        if not line:
            raise ShellError("the command is empty")
        refuse_denied(context.task, (line,))
        if left_running(line):
            context.background.check_free()
            sandbox = await context.ports.shell.observe()
            if sandbox.kind != "bwrap":
                raise ShellError(
                    "no command can be left running here: without a sandbox it could change files while checks run",
                    advice="run it without the final `&`, with a limit of its own",
                )
        return CommandProposal(text=line, commands=(line,))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Run it and return its exit code and output; one that is left running is not waited for."""
        if line := left_running(proposal.text):
            return await self._leave_running(context, line)
        outcome = await run_command(context, proposal.text, joins=True)
        ended = outcome.reason or f"exit code {outcome.exit_code}"
        return ToolResult(
            f"{ended}\n{clip(outcome.output.strip(), OBSERVED_CHARS)}{await context.background.news()}",
            result=ActionResult.OK if outcome.exit_code == 0 else ActionResult.FAILED,
            output=outcome.output,
            cut_bytes=outcome.cut_bytes,
        )

    async def _leave_running(self, context: ToolContext, line: str) -> ToolResult:
        refuse_denied(context.task, (line,))
        command = await command_of(context, line)
        told = await context.stoppable.run(context.background.start(context.ports.shell, command))
        runs = context.background.runs
        return ToolResult(told, ActionResult.OK if runs else ActionResult.FAILED, output=told)


TOOL = RunCommand(
    name=RUN_COMMAND,
    summary="run a shell command in the workspace; a final & leaves it running, such as a server",
    permission=Permission.COMMAND,
    arguments=(Argument("command", ArgumentKind.STRING, "", max_length=500),),
)
