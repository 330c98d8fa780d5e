"""Tool `static_analyze`: the repo's lint command."""

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.proposal_kinds import CheckProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments, Choices
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.check_tool import Checks


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


TOOL = StaticAnalyze(name="static_analyze", summary="run the repo's lint command", permission=Permission.CHECK)
