"""Tool `run_tests`: the task's tests, at the model's request."""

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.proposal_kinds import CheckProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments, Choices
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.check_tool import Checks


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


TOOL = RunTests(name="run_tests", summary="run the task's tests", permission=Permission.CHECK)
