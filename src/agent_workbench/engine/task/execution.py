"""Execution of approved proposals: the start is on disk before the effect, the outcome after it."""

from asyncio import to_thread
from collections.abc import Iterable, Sequence

from agent_workbench.core.checks.language_servers import describe_diagnostics
from agent_workbench.core.errors import TargetMoved, WorkbenchError, error_text
from agent_workbench.core.events import (
    ActionFinished,
    ActionResult,
    ActionStarted,
    Author,
    CheckpointTaken,
    PatchApplied,
    PlaybookFinished,
    TroubleMet,
)
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.proposals import CHECKS, COMMIT, COMPACT, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.answer.repeated_calls import without_repeat
from agent_workbench.engine.notes import moved_note
from agent_workbench.engine.prompt.prompt_text import user_change_note
from agent_workbench.engine.proposals import propose_draft, propose_merge, replace_proposal
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.code_diagnostics import find_diagnostics
from agent_workbench.engine.runtime.publisher import TAIL_CHARS
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.stoppable import StoppedByUser
from agent_workbench.engine.runtime.tool import REFUSALS, Tool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.check_runs import named_paths
from agent_workbench.engine.tools.merge import merged_into
from agent_workbench.engine.tools.write_diff import KEEP, check_unmoved

MUST_WORK = frozenset({CHECKS, COMMIT, COMPACT})
"""Tools the task cannot continue without: their refusal is shown to the user as trouble, not to the model."""

_RULES = ".gitignore"


async def execute_proposal(session: SessionContext, proposal: Proposal) -> None:
    """Execute an approved proposal; if a file changed since it was shown, put it before the gate again."""
    context = await session.tool_context()
    if moved := await _moved(context, proposal):
        await _ask_again(session, proposal, moved)
        return
    session.publisher.show_activity(proposal.activity)
    if proposal.runs_commands:
        await checkpoint_unapproved(session)
    await session.record(ActionStarted(proposal.id))
    session.ports.shell.used()  # by what was no action
    base = session.run.tree
    started = session.ports.clock.monotonic_seconds()
    refusal: WorkbenchError | None = None
    try:
        outcome = await run_tool(session, context, proposal)
        if proposal.kind is Permission.READ and outcome.result is ActionResult.OK and not outcome.effects:
            outcome = without_repeat(session.run, proposal, outcome)
    except REFUSALS as error:
        refusal, outcome = error, ToolResult(error_text(error), ActionResult.REFUSED)
    except StoppedByUser:
        outcome = stopped_result(context, session.ports.clock.monotonic_seconds() - started)
    kept, told = await _take_changes(session, context) if proposal.runs_programs else (None, "")
    for effect in outcome.effects:
        await session.record(effect)
    # What a playbook did is in no commit: its checkpoint proves who approved it.
    if any(isinstance(effect, PatchApplied | PlaybookFinished) for effect in outcome.effects):
        await take_checkpoint(session)
    seconds = session.ports.clock.monotonic_seconds() - started
    diagnostics = await find_diagnostics(session, base, outcome)
    said = describe_diagnostics(diagnostics)
    observation = user_change_note(proposal) + outcome.observation + told + (f"\n\n{said}" if said else "")
    await session.record(
        ActionFinished(
            proposal.id,
            outcome.result,
            observation,
            round(seconds, 3),
            outcome.output,
            outcome.cut_bytes,
            outcome.shown,
            session.ports.shell.used(),
            diagnostics,
        )
    )
    if refusal is not None and proposal.tool in MUST_WORK:
        await session.record(TroubleMet(proposal.tool, str(refusal), refusal.advice))
    elif refusal is not None and proposal.kind is Permission.MERGE:
        session.publisher.notify(error_text(refusal))  # the steps that show it may be scrolled away
        if isinstance(refusal, TargetMoved):
            await _show_merge_again(session)
    if kept is not None:
        await propose_draft(session, KEEP, kept)
    elif outcome.follow is not None:
        await propose_following(session, context, outcome.follow)


async def propose_following(session: SessionContext, context: ToolContext, tool: Tool) -> None:
    """Propose what a call needs before it goes on."""
    session.tools.follow(tool)
    await propose_draft(session, tool, await tool.draft(context, Arguments({}), ""))


async def run_tool(session: SessionContext, context: ToolContext, proposal: Proposal) -> ToolResult:
    """Return the result of the tool; raise one of `REFUSALS`, or `StoppedByUser`."""
    tool = await session.tools.tool(proposal.tool)
    with session.stoppable.begin(proposal.id):
        running = tool.run(context, proposal)
        # Checks and commands stop their own processes, and restore the files after it.
        whole = proposal.stoppable and not proposal.stops_itself
        return await (session.stoppable.run(running) if whole else running)


def stopped_result(context: ToolContext, seconds: float) -> ToolResult:
    """Return the result of a call that the user stopped: how long it ran, and the end of its output."""
    tail = clip(context.on_output.text.strip(), TAIL_CHARS)
    said = f"\nThe end of its output until then:\n{tail}" if tail else ""
    return ToolResult(
        f"The user stopped this after {seconds:.0f} s.{said}", ActionResult.STOPPED, output=context.on_output.text
    )


async def _show_merge_again(session: SessionContext) -> None:
    try:
        await propose_merge(session)
    except REFUSALS as refusal:
        session.publisher.notify(error_text(refusal))


async def take_checkpoint(session: SessionContext) -> None:
    """Keep the workspace's content under a checkpoint ref, whose message names the journal's head as a proof of it."""
    state = session.state
    message = (
        f"step {session.run.step} of {session.run.task}\n\nAgent-Journal: {state.session}:{state.seq}:{state.hash}\n"
    )
    workspace = await session.workspace()
    checkpoint = await workspace.checkpoint(state.session, state.seq, message)
    await session.record(CheckpointTaken(session.run.step, checkpoint))


async def checkpoint_unapproved(session: SessionContext) -> None:
    """Take a checkpoint if the workspace has unapproved changes: they may be the user's, and are about to be reset."""
    workspace = await session.workspace()
    if await workspace.unapproved_changes(session.run.tree):
        await take_checkpoint(session)


async def _moved(context: ToolContext, proposal: Proposal) -> str:
    """Return the path or branch that changed since the proposal was shown, empty if none did."""
    if proposal.kind is Permission.SUMMARY:
        return ""  # the scratchpad is outside the workspace, and checked when it is written
    if proposal.kind is Permission.KNOWLEDGE:
        return await moved_note(context.ports.knowledge, proposal)
    if proposal.kind is not Permission.MERGE:
        return await check_unmoved(context, proposal)
    now = await merged_into(context)
    return "" if now == proposal.preimages else f"the branch to merge into ({now[0].path})"


async def _ask_again(session: SessionContext, proposal: Proposal, moved: str) -> None:
    reason = f"{moved} changed after this was shown"
    ours = proposal.kind is Permission.MERGE and not proposal.edited  # a generated message names the branch
    text = proposal.diff if proposal.hunks and proposal.kind is Permission.DIFF else proposal.text
    try:
        await replace_proposal(session, proposal, "" if ours else text, reason, Author.WORKBENCH)
    except REFUSALS as refusal:
        observation = f"{reason}, and the diff no longer fits: {error_text(refusal)}"
        await session.record(ActionFinished(proposal.id, ActionResult.REFUSED, observation))


async def _take_changes(session: SessionContext, context: ToolContext) -> tuple[Proposal | None, str]:
    """Reset the files that a command changed; return them as a draft that keeps them, and a text about the others."""
    unapproved = await context.workspace.unapproved_changes(context.run.tree)
    reset = await context.workspace.reset(context.run.tree)
    caches = _caches(unapproved)
    files = [each for each in unapproved if each.before or (each.after and not each.path.startswith(caches))]
    keepable = tuple(change for change in files if _is_text(change))
    binary = ", ".join(named_paths(change.path for change in files if change not in keepable))
    told = f"\nThese files are not text and were put back: {binary}" if binary else ""
    others = ", ".join(named_paths(path for path in reset.removed if not _holds(path, files)))
    told += f"\nThese cannot be kept and were removed: {others}" if others else ""
    if not keepable:
        return None, told
    try:
        diff = await to_thread(render_changes, keepable)
        return await KEEP.draft(context, Arguments({}), diff), told
    except REFUSALS as refusal:
        return None, f"{told}\nWhat it changed was put back: {error_text(refusal)}"


def _caches(unapproved: Sequence[FileChange]) -> tuple[str, ...]:
    """Return the new folders (with a slash) whose own `.gitignore` ignores everything, as caches have it."""
    rules = (each for each in unapproved if each.path.endswith(f"/{_RULES}") and each.before is None)
    return tuple(each.path.removesuffix(_RULES) for each in rules if each.after and b"*" in each.after.data.split())


def _holds(path: str, files: Iterable[FileChange]) -> bool:
    """Return True if one of the files is `path`, or lies in it if it is a folder."""
    return any(each.path == path or (path.endswith("/") and each.path.startswith(path)) for each in files)


def _is_text(change: FileChange) -> bool:
    contents = [content.data for content in (change.before, change.after) if content is not None]
    return all(b"\0" not in data and _decodes(data) for data in contents)


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
