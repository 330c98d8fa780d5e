"""Tool `scaffold_playbook`: a new role and its playbook for a service, as one diff at the gate."""

from asyncio import to_thread

from agent_workbench.core.errors import UsageError
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.playbooks import checked_values, scaffold_paths
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin.write_diff import WriteDiff
from agent_workbench.engine.tools.playbook_runs import playbooks_of


class ScaffoldPlaybook(WriteDiff, frozen=True):
    """Tool that proposes six new files; nothing is written unless the diff is approved."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the diff of the new files, or that of a text which is edited or shown again.

        Raises `UsageError` for values that are not accepted, and for files that exist.
        """
        if not arguments.values:
            return await super().draft(context, arguments, text)
        names = ("service", "about", "hosts", "package", "unit")
        values = checked_values(**{name: arguments.text(name) for name in names})
        listed = await context.workspace.list_files()
        paths = scaffold_paths(values, listed)
        if taken := [path for path in paths.values() if path in listed]:
            raise UsageError(f"these files exist already: {', '.join(taken)}", advice="change them with write_diff")
        rendered = await playbooks_of(context).render({**values, "playbook": paths["playbook.yml"]})
        changes = [FileChange(path, None, FileContent(rendered[name].encode())) for name, path in paths.items()]
        return await super().draft(context, Arguments({}), await to_thread(render_changes, changes))


TOOL = ScaffoldPlaybook(
    name="scaffold_playbook",
    summary="propose a new role with its playbook for a service, as one diff",
    permission=Permission.DIFF,
    arguments=(
        Argument("service", ArgumentKind.STRING, "such as my-app", max_length=100),
        Argument("about", ArgumentKind.STRING, "what the playbook does, in a sentence", False),
        Argument("hosts", ArgumentKind.STRING, "hosts or group of the play (all)", False),
        Argument("package", ArgumentKind.STRING, "package to install", False),
        Argument("unit", ArgumentKind.STRING, "system service to start", False),
    ),
)
