"""Tool `run_playbook`: one run of a playbook, in check mode first. A person approves each run."""

from agent_workbench.core.errors import UsageError
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import (
    Argument,
    ArgumentFault,
    ArgumentKind,
    Arguments,
    Choices,
    check_choices,
)
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.playbook_requests import MAX_CHARS, MAX_EXTRA_VARS, checked_request
from agent_workbench.engine.tools.playbook_runs import draft_run, run_playbook

CHECK, APPLY = "check", "apply"


class RunPlaybook(BuiltinTool, frozen=True):
    """Tool that runs a playbook with network and the keys that the user named."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return the two modes."""
        return {"mode": (CHECK, APPLY)}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the run with all that a person has to see; raise `UsageError` for values that are not accepted."""
        try:
            check_choices(arguments, await self.choices(context.scope, context.files) or {})
        except ArgumentFault as fault:
            raise UsageError(str(fault)) from fault
        values = {name: arguments.text(name) for name in ("playbook", "inventory", "limit", "tags", "extra_vars")}
        request = checked_request(**values, check=arguments.text("mode", CHECK) != APPLY)
        return await draft_run(context, request, text)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Run it and return the recap, and the findings of ansible-lint if it failed."""
        return await run_playbook(context, proposal)


TOOL = RunPlaybook(
    name="run_playbook",
    summary="run an Ansible playbook, with mode check first; a person approves each run",
    permission=Permission.INFRASTRUCTURE,
    arguments=(
        Argument("playbook", ArgumentKind.STRING, "its path", max_length=MAX_CHARS),
        Argument("mode", ArgumentKind.STRING, "check: changes nothing; apply: after a check with the same values"),
        Argument("inventory", ArgumentKind.STRING, "its path, or hosts with a comma at the end", False, MAX_CHARS),
        Argument("limit", ArgumentKind.STRING, "hosts or groups", False, MAX_CHARS),
        Argument("tags", ArgumentKind.STRING, "", False, MAX_CHARS),
        Argument("extra_vars", ArgumentKind.STRING, "one JSON object of plain values", False, MAX_EXTRA_VARS),
    ),
)
