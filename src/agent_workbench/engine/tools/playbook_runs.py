"""Runs of playbooks: what a gate shows of one, the run on the approved files, and its outcome for the model."""

from msgspec.structs import replace

from agent_workbench.core.errors import ToolError, UsageError, WorkspaceError
from agent_workbench.core.events import ActionResult, PlaybookFinished
from agent_workbench.core.patch.values import content_hash
from agent_workbench.core.playbooks import (
    CONFIG,
    MAX_BYTES,
    PlaybookRequest,
    PlaybookRun,
    loaded_files,
    read_recap,
    summary,
)
from agent_workbench.core.ports.extensions import Playbooks
from agent_workbench.core.proposal_kinds import InfrastructureProposal
from agent_workbench.core.proposals import Preimage, Proposal
from agent_workbench.core.text.amounts import quoted
from agent_workbench.engine.runtime.budget import seconds_left
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.check_runs import refuse_denied

OBSERVED_CHARS, LINT_CHARS = 6_000, 4_000
KEPT_CHARS = 200_000
LINT_SECONDS = 90.0


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
    parts.append(clip(done.output.strip(), OBSERVED_CHARS))
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
