"""Tools `find_playbook`, `lint_playbook`, `scaffold_playbook` and `run_playbook`; a person approves each run.

A request is read to bounded values, none of which Ansible can read as an option or a template.
"""

import re
import shlex
from asyncio import to_thread
from collections.abc import Mapping
from pathlib import PurePosixPath

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError, ToolError, UsageError, WorkspaceError
from agent_workbench.core.events import ActionResult, PlaybookFinished
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.paths import check_path
from agent_workbench.core.patch.values import FileChange, FileContent, content_hash
from agent_workbench.core.playbooks import (
    CONFIG,
    MAX_BYTES,
    Playbook,
    PlaybookRequest,
    PlaybookRun,
    PlaybookSearch,
    checked_values,
    loaded_files,
    read_recap,
    scaffold_paths,
    summary,
)
from agent_workbench.core.ports.extensions import Playbooks
from agent_workbench.core.proposal_kinds import CommandProposal, InfrastructureProposal
from agent_workbench.core.proposals import Preimage, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.arguments import (
    Argument,
    ArgumentFault,
    ArgumentKind,
    Arguments,
    Choices,
    check_choices,
)
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, one_line, read_bounded_json
from agent_workbench.engine.runtime.budget import clip, seconds_left
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext
from agent_workbench.engine.tools.check_runs import refuse_denied
from agent_workbench.engine.tools.write_diff import WriteDiff

MAX_CHARS = 400
MAX_EXTRA_VARS = 8_000
_HOSTS = re.compile(r"[A-Za-z0-9_.:\[\]-]+(?:,[A-Za-z0-9_.:\[\]-]+)*,", re.ASCII)
_LIMIT = re.compile(r"(?![-@])[A-Za-z0-9_.:,&!*?\[\]~-]+", re.ASCII)
_TAGS = re.compile(r"(?!-)[A-Za-z0-9_.,:-]+", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")

PROGRAM = "ansible-lint"
OBSERVED_CHARS = 12_000

CHECK, APPLY = "check", "apply"

RUN_CHARS, LINT_CHARS = 6_000, 4_000
KEPT_CHARS = 200_000
LINT_SECONDS = 90.0


def checked_request(
    playbook: str, inventory: str = "", limit: str = "", tags: str = "", extra_vars: str = "", *, check: bool = True
) -> PlaybookRequest:
    """Return the request with normal forms; raise `UsageError` for a value that is not accepted."""
    playbook, inventory, limit, tags = (each.strip() for each in (playbook, inventory, limit, tags))
    for name, value in (("playbook", playbook), ("inventory", inventory), ("limit", limit), ("tags", tags)):
        if len(value) > MAX_CHARS or not value.isprintable():
            raise UsageError(f"{name}: {quoted(value[:80])} is too long or not printable", advice="use a plain value")
    if PurePosixPath(playbook).suffix not in {".yml", ".yaml"}:
        raise UsageError(f"playbook: {quoted(playbook)} is no .yml or .yaml file", advice="find_playbook names them")
    _check_inside("playbook", playbook)
    if inventory.endswith(",") and not _HOSTS.fullmatch(inventory):
        raise UsageError(f"inventory: {quoted(inventory)} is no list of hosts", advice="use names joined by commas")
    if inventory and not inventory.endswith(","):
        _check_inside("inventory", inventory)
    if limit and not _LIMIT.fullmatch(limit):
        raise UsageError(
            f"limit: {quoted(limit)} is no pattern of hosts", advice="use names, groups, `:`, `,`, `&`, `!`"
        )
    if tags and not _TAGS.fullmatch(tags):
        raise UsageError(f"tags: {quoted(tags)} is no list of tags", advice="use names joined by commas")
    return PlaybookRequest(playbook, inventory, limit, tags, _checked_variables(extra_vars), check)


def _check_inside(name: str, path: str) -> None:
    try:
        check_path(path)
    except PatchError as error:
        raise UsageError(f"{name}: {quoted(path)}: {error}", advice="name a file of the repository") from error
    if path.startswith("-"):
        raise UsageError(f"{name}: {quoted(path)} would be read as an option", advice="rename the file")


def _checked_variables(text: str) -> str:
    """Return extra variables as one line of JSON; empty if there are none."""
    if not text.strip():
        return ""
    if len(text) > MAX_EXTRA_VARS:
        raise UsageError(f"extra_vars: {len(text):,} characters, at most {MAX_EXTRA_VARS:,}", advice="use a vars file")
    try:
        value = read_bounded_json(text)
    except JsonError as error:
        raise UsageError(
            f"extra_vars: {quoted(text[:80])} is no JSON: {error}",
            advice='write one JSON object, such as {"version": "1.2"}',
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"extra_vars: {quoted(text[:80])} is no JSON object", advice='write it as {"name": value}')
    _check_names(value)
    line = one_line(value)
    if _TEMPLATE.search(line):
        raise UsageError(
            "extra_vars: a value holds a template, which Ansible would evaluate", advice="write plain values"
        )
    return line if value else ""


def _check_names(variables: Mapping[str, JsonValue]) -> None:
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(f"extra_vars: {quoted(name[:80])} is no name of a variable", advice="use letters and `_`")
        if name.lower().startswith("ansible_"):
            raise UsageError(
                f"extra_vars: {name} would decide how hosts are reached",
                advice="set it in the inventory; passwords and keys are named in your own settings",
            )


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


def playbooks_of(context: ToolContext) -> Playbooks:
    """Return the port; raise `ToolError` where the workbench has none."""
    if context.ports.playbooks is None:
        raise ToolError("no playbooks can be used here")
    return context.ports.playbooks


async def draft_run(context: ToolContext, request: PlaybookRequest, text: str) -> Proposal:
    """Return the run as a gate shows it; raise `UsageError` unless a run in check mode came before it."""
    playbooks = playbooks_of(context)
    refuse_denied(context.task, (f"ansible-playbook {request.playbook}",))
    content = await _text(context, "playbook", request.playbook)
    if request.inventory_path:
        await _check_inventory(context, request.inventory_path)
    checked = None if request.check else _checked_before(context, request)
    if problem := await playbooks.obstacle():
        raise ToolError(problem)
    listed = await context.workspace.list_files()
    run = PlaybookRun(
        request=request,
        text=content,
        access=playbooks.access,
        loaded=loaded_files(listed),
        checked=checked.hosts if checked is not None else (),
        check_failed=checked is not None and checked.failed,
    )
    paths = (request.playbook, *filter(None, (request.inventory_path, CONFIG if CONFIG in listed else "")))
    preimages = [Preimage(path, content_hash(await context.workspace.read(path))) for path in paths if path in listed]
    return InfrastructureProposal(text=text, preimages=tuple(preimages), playbook=run)


async def run_playbook(context: ToolContext, proposal: Proposal) -> ToolResult:
    """Run what was approved on the approved files alone; lint it if it fails."""
    if not isinstance(proposal, InfrastructureProposal) or proposal.playbook is None:
        raise ToolError("the proposal holds no run of a playbook")
    await context.workspace.reset(context.run.tree)
    for preimage in proposal.preimages:
        if content_hash(await context.workspace.read(preimage.path)) != preimage.sha:
            raise WorkspaceError(f"{preimage.path} is not as it was shown", advice="propose the run again")
    playbooks, request = playbooks_of(context), proposal.playbook.request
    folder, left = context.workspace.facts.path, seconds_left(context.run)
    most = context.settings.infrastructure.run_seconds
    done = await playbooks.run(request, folder, most if left is None else min(most, left), context.on_output)
    hosts = read_recap(done.output)
    finished = PlaybookFinished(proposal.id, request, context.run.tree, done.exit_code, hosts, round(done.seconds, 3))
    parts = [done.reason or f"exit code {done.exit_code}", summary(hosts), *(host.text for host in hosts[:50])]
    parts.append(clip(done.output.strip(), RUN_CHARS))
    if finished.failed:
        report = await playbooks.lint(request.playbook, folder, LINT_SECONDS)
        finished = replace(finished, lint=report)
        parts += ["What ansible-lint finds, the most severe first:", clip(report.text, LINT_CHARS)]
    elif request.check:
        parts.append("Nothing was changed. The same call with mode `apply` asks for the real run.")
    return ToolResult(
        "\n".join(filter(None, parts)),
        ActionResult.FAILED if finished.failed else ActionResult.OK,
        effects=(finished,),
        output=done.output[-KEPT_CHARS:],
        cut_bytes=done.cut_bytes + len(done.output[:-KEPT_CHARS].encode()),
    )


def _checked_before(context: ToolContext, request: PlaybookRequest) -> PlaybookFinished:
    """Return the newest run of this request in check mode on the same content; raise `UsageError` if there is none."""
    for recorded in reversed(context.run.history):
        event = recorded.event
        if not isinstance(event, PlaybookFinished) or not event.request.check or event.exit_code is None:
            continue
        if event.tree == context.run.tree and event.request == replace(request, check=True):
            return event
    raise UsageError(
        "this run was not made in check mode on these files yet", advice="call it with mode `check` and the same values"
    )


async def _text(context: ToolContext, what: str, path: str) -> str:
    context.check_readable(path)
    content = await context.workspace.read(path)
    if content is None:
        raise UsageError(f"{what}: there is no file {quoted(path)}", advice="find_playbook names those there are")
    if len(content.data) > MAX_BYTES:
        raise UsageError(f"{what}: {path} has more than {MAX_BYTES:,} bytes, too many to be shown")
    try:
        return content.data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: {path} is not UTF-8 text", advice="only what can be shown is run") from error


async def _check_inventory(context: ToolContext, path: str) -> None:
    context.check_readable(path)
    listed = await context.workspace.list_files()
    if path not in listed and not any(each.startswith(f"{path.rstrip('/')}/") for each in listed):
        raise UsageError(f"inventory: there is no file or folder {quoted(path)}", advice="name one of the repository")
