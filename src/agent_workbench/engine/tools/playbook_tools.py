"""Tools `find_playbook`, `lint_playbook`, `scaffold_playbook` and `run_playbook`; a person approves each run."""

import shlex
from asyncio import to_thread

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.playbooks import Playbook, PlaybookSearch, checked_values, scaffold_paths
from agent_workbench.core.proposal_kinds import CommandProposal
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
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_runs import refuse_denied
from agent_workbench.engine.tools.playbook_requests import MAX_CHARS, MAX_EXTRA_VARS, checked_request
from agent_workbench.engine.tools.playbook_runs import draft_run, playbooks_of, run_playbook
from agent_workbench.engine.tools.write_diff import WriteDiff

PROGRAM = "ansible-lint"
OBSERVED_CHARS = 12_000

CHECK, APPLY = "check", "apply"


class FindPlaybook(BuiltinTool, frozen=True):
    """Tool that finds a playbook by its name, its words or its meaning."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the playbook; it is a failure if none fits."""
        words = self.read(proposal.text).text("words")
        found = await playbooks_of(context).search(context.workspace, words)
        return ToolResult(describe_search(found, words), ActionResult.OK if found.found else ActionResult.FAILED)


def describe_search(search: PlaybookSearch, words: str) -> str:
    """Return the answer of a search for the model."""
    if search.found is not None:
        return f"{_line(search.found)}\nfound by {search.reason}"
    near = [
        f"{_line(each)}{f' (similarity {alike:.2f})' if alike is not None else ''}" for each, alike in search.nearest
    ]
    told = ["The nearest, none of which fits for certain:", *near] if near else ["The repository has no playbooks."]
    return "\n".join([f"no playbook fits {words!r}", *told])


def _line(playbook: Playbook) -> str:
    about = "; ".join((*(f"service {each}" for each in playbook.services), *playbook.plays[:3]))
    return f"{playbook.path}{f': {about}' if about else ''}"


FIND_PLAYBOOK_TOOL = FindPlaybook(
    name="find_playbook",
    summary="find the Ansible playbook for a service or a purpose",
    arguments=(Argument("words", ArgumentKind.STRING, "such as deploy kuma", max_length=200),),
)


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


LINT_PLAYBOOK_TOOL = LintPlaybook(
    name="lint_playbook",
    summary="lint an Ansible playbook and the roles that it uses",
    permission=Permission.COMMAND,
    arguments=(Argument("playbook", ArgumentKind.STRING, "its path", max_length=MAX_CHARS),),
)


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


RUN_PLAYBOOK_TOOL = RunPlaybook(
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


SCAFFOLD_PLAYBOOK_TOOL = ScaffoldPlaybook(
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

TOOLS = (FIND_PLAYBOOK_TOOL, LINT_PLAYBOOK_TOOL, RUN_PLAYBOOK_TOOL, SCAFFOLD_PLAYBOOK_TOOL)
