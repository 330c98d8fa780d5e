"""Tool `lint_playbook`: what ansible-lint finds in a playbook, with a category and a reason for each finding."""

import shlex

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.proposal_kinds import CommandProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_runs import refuse_denied
from agent_workbench.engine.tools.playbook_requests import MAX_CHARS, checked_request
from agent_workbench.engine.tools.playbook_runs import playbooks_of

PROGRAM = "ansible-lint"
OBSERVED_CHARS = 12_000


class LintPlaybook(BuiltinTool, frozen=True):
    """Tool that runs ansible-lint in the sandbox, as a command at the gate: it loads plugins of the repository."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the command line; raise `UsageError` for a path that is not accepted."""
        playbook = checked_request(arguments.text("playbook") or _playbook(text)).playbook
        context.check_readable(playbook)
        if await context.workspace.read(playbook) is None:
            raise UsageError(f"there is no file {playbook}", advice="find_playbook names those there are")
        line = shlex.join((PROGRAM, playbook))
        refuse_denied(context.task, (line,))
        return CommandProposal(text=line, commands=(line,))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the findings."""
        folder, seconds = context.workspace.facts.path, context.command_seconds()
        linting = playbooks_of(context).lint(_playbook(proposal.text), folder, seconds)
        report = await context.stoppable.run(linting)
        result = ActionResult.FAILED if report.problem else ActionResult.OK
        return ToolResult(clip(report.text, OBSERVED_CHARS), result, output=report.text)


def _playbook(line: str) -> str:
    """Return the playbook of a command line of this tool; raise `UsageError` for any other line."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    if len(words) != 2 or words[0] != PROGRAM:
        raise UsageError(f"{line[:200]!r} is not `{PROGRAM} PLAYBOOK`", advice="change nothing but the playbook")
    return words[1]


TOOL = LintPlaybook(
    name="lint_playbook",
    summary="lint an Ansible playbook and the roles that it uses",
    permission=Permission.COMMAND,
    arguments=(Argument("playbook", ArgumentKind.STRING, "its path", max_length=MAX_CHARS),),
)
