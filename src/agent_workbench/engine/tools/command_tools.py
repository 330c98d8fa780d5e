"""Tools that run something: `run_command`, `background` for what it left running, `run_tests` and `static_analyze`."""

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.command_lines import left_running
from agent_workbench.core.errors import ConfigError, ShellError, UsageError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.proposal_kinds import CheckProposal, CommandProposal, ReadProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import BACKGROUND, RUN_COMMAND, Permission
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, Choices
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext
from agent_workbench.engine.tools.check_runs import Checks, command_of, refuse_denied, run_command

OBSERVED_CHARS = 6_000

READ, STOP = "read", "stop"


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


RUN_COMMAND_TOOL = RunCommand(
    name=RUN_COMMAND,
    summary="run a shell command in the workspace; a final & leaves it running, such as a server",
    permission=Permission.COMMAND,
    arguments=(Argument("command", ArgumentKind.STRING, "", max_length=500),),
)


class RunTests(Checks, frozen=True):
    """Tool that proposes the acceptance commands and the repo's tests."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return no choices; None if there is nothing to run."""
        return {} if tuple(line for line in scope.run.checks if line != scope.settings.lint_command) else None

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the commands that would run."""
        commands = tuple(line for line in context.run.checks if line != context.settings.lint_command)
        if not commands:
            raise ConfigError("this task has no tests", advice="the user sets test_command in .agent.yml")
        return CheckProposal(text=text, commands=commands, purpose=CheckPurpose.ASKED)


RUN_TESTS_TOOL = RunTests(name="run_tests", summary="run the task's tests", permission=Permission.CHECK)


class StaticAnalyze(Checks, frozen=True):
    """Tool that proposes the lint command."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return no choices; None if there is nothing to run."""
        return {} if scope.settings.lint_command else None

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the command that would run."""
        if not context.settings.lint_command:
            raise ConfigError("this repo has no lint command", advice="the user sets lint_command in .agent.yml")
        return CheckProposal(text=text, commands=(context.settings.lint_command,), purpose=CheckPurpose.ASKED)


STATIC_ANALYZE_TOOL = StaticAnalyze(
    name="static_analyze", summary="run the repo's lint command", permission=Permission.CHECK
)


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


BACKGROUND_TOOL = Background(
    name=BACKGROUND,
    summary="the command left running: its last lines, or its end",
    arguments=(Argument("action", ArgumentKind.STRING, f"{READ} or {STOP}", max_length=10),),
)

TOOLS = (RUN_COMMAND_TOOL, RUN_TESTS_TOOL, STATIC_ANALYZE_TOOL, BACKGROUND_TOOL)
