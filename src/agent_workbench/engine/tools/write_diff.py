"""Tool `write_diff`: a change to files, as a unified diff."""

import re
from asyncio import to_thread
from collections.abc import Collection

from msgspec.structs import replace

from agent_workbench.core.checks.judges import Protection, changes_runs, has_runner_settings, runner_settings
from agent_workbench.core.checks.source_tests import changed_tests
from agent_workbench.core.errors import JudgeTouched, PatchError, WorkspaceError
from agent_workbench.core.events import FAILING_FIRST, PatchApplied
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.comparison import compare_contents
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.fit import Fit, fit_constrained_diff, fit_diff
from agent_workbench.core.patch.patch_reader import read_constrained_diff, read_diff
from agent_workbench.core.patch.special import special_paths
from agent_workbench.core.patch.values import FileChange, FileContent, Patch, content_hash, patch_hash
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.proposals import KEEP_CHANGES, Preimage, Proposal, with_patch
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.core.tools.spec import REWRITE
from agent_workbench.engine.prompt.repeated_lines import is_as_written
from agent_workbench.engine.runtime.scope import TaskBounds
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

STAND_IN = re.compile("«redacted:[^«»\\s]+»".encode())
SHOWN_CONTEXT = 3
SHOWN_LINES = 60


class WriteDiff(BuiltinTool, frozen=True):
    """Tool that applies an approved diff: all of it, exactly where its headers say, or nothing."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the fitted diff; raise `PatchError` if it does not fit or is not allowed."""
        existing = await context.workspace.list_files()
        fit = await _fit(context, text, existing)
        paths = fit.patch.paths
        _check_no_stand_in(fit.changes)
        opened = await to_thread(opened_judges, context.scope, fit.changes)
        await context.check_file_count(paths)
        patch, diff = await to_thread(_compared, await _against_approved(context, fit.changes))
        drafted = DiffProposal(
            text=text,
            diff=diff,
            paths=paths,
            special=special_paths(fit.patch, opened),
            preimages=tuple(Preimage(change.path, content_hash(change.before)) for change in fit.changes),
            repaired=fit.repairs,
        )
        return with_patch(drafted, patch)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Apply the shown diff to the approved files."""
        unapproved = {change.path for change in await context.workspace.unapproved_changes(context.run.tree)}
        await context.workspace.put_back(context.run.tree, unapproved.intersection(proposal.paths))
        patch = await to_thread(lambda: proposal.patch)
        contents, existing = await _contents(context, patch.paths), await context.workspace.list_files()
        # The shown diff was rendered from these contents: it applies exactly where it says, or not at all.
        changes = await to_thread(apply_patch, patch, contents, existing)
        _check_no_stand_in(changes)
        tree = await context.workspace.write(changes, context.run.tree)
        shown = await to_thread(lambda: tuple(chunk for change in changes for chunk in _now(change)))
        applied = PatchApplied(proposal.id, proposal.paths, patch_hash(proposal.diff), tree, shown)
        return ToolResult(describe_applied(applied, proposal), effects=(applied,), changes=changes)


def describe_applied(applied: PatchApplied, proposal: Proposal) -> str:
    """Return the observation of a change: its location, the repairs, and the lines as they are now.

    Lines that stand in the model's own diff are not sent again.
    """
    mended = [f"Repaired in your diff: {'; '.join(proposal.repaired)}."] if proposal.repaired else []
    if is_as_written(proposal):
        places = ", ".join(chunk.place for chunk in applied.shown)
        written = "pieces are as you wrote them" if proposal.tool == REWRITE else "lines are as in your diff"
        now = [f"The {written}: {places}."] if places else []
        return "\n".join([f"Applied to {', '.join(applied.paths)}.", *mended, *now])
    pieces = [f"{chunk.place} now reads:\n{chunk.text}" for chunk in applied.shown]
    return "\n\n".join(["\n".join([f"Applied to {', '.join(applied.paths)}.", *mended]), *pieces])


def _check_no_stand_in(changes: tuple[FileChange, ...]) -> None:
    """Raise `PatchError` if a change adds a placeholder that the workbench shows in place of a secret."""
    for change in changes:
        before, after = (content.data if content else b"" for content in (change.before, change.after))
        for found in dict.fromkeys(STAND_IN.findall(after)):
            if after.count(found) > before.count(found):
                raise PatchError(
                    f"{found.decode()} would be written into {change.path}",
                    advice="it stands for the value of a secret, which nobody is shown; leave such lines as they are",
                )


def opened_judges(scope: TaskBounds, changes: tuple[FileChange, ...]) -> tuple[str, ...]:
    """Return the paths of a change that decide about the task, so that a person has to approve exactly that.

    These are judges that the task's words name, and new files that change how its tests run. Raises `JudgeTouched` for
    a change of what a file of a project says about tests, and of tests inside a source file.
    """
    run = scope.run
    if run.wording < FAILING_FIRST or not run.checks:
        return ()
    judges, found = run.judges, list[str]()
    for change in changes:
        before, after = (_text(content) for content in (change.before, change.after))
        settings = runner_settings(change.path, before) != runner_settings(change.path, after)
        new = change.before is None and changes_runs(change.path)
        protection = judges.of_named(change.path) if settings or new else judges.protection(change.path)
        if settings and change.before is not None and protection is Protection.READ_ONLY:
            raise JudgeTouched((change.path,), "what it says about tests in ")
        if protection is not None and (settings or new or not has_runner_settings(change.path)):
            found.append(change.path)
        for name in changed_tests(change.path, before, after):
            protection = judges.of_source_test(change.path, name)
            if protection in scope.read_only:
                raise JudgeTouched((change.path,), f"{name} in ")
            if protection is not None and change.path not in found:
                found.append(change.path)
    return tuple(found)


def _text(content: FileContent | None) -> str | None:
    return content.data.decode("utf-8", "replace") if content is not None else None


async def _fit(context: ToolContext, text: str, existing: Collection[str]) -> Fit:
    """Return the fit of a diff; only the lines of one that a grammar constrained decide where it applies."""
    read = read_constrained_diff(text) if _is_constrained(context, text) else None
    if read is not None:
        contents = await _contents(context, read.old_paths)
        fit = await to_thread(fit_constrained_diff, read, context.patch_bounds(), contents, existing)
        if fit is not None:
            return fit
    # In threads: large files take time, and the screen must not wait.
    readings = await to_thread(read_diff, text, context.patch_bounds(), existing)
    return await to_thread(fit_diff, readings, await _contents(context, readings.paths), existing)


def _is_constrained(context: ToolContext, text: str) -> bool:
    """Return True if this is the diff of the last answer, and a grammar constrained that."""
    prompt, answer = context.state.prompt, context.run.answer
    if prompt is None or answer is None or not prompt.grammar_sha or prompt.endpoint in context.state.ungrammatical:
        return False
    return answer.text.rstrip("\n").endswith(text.rstrip("\n"))


async def _contents(context: ToolContext, paths: tuple[str, ...]) -> dict[str, FileContent | None]:
    return {path: await context.workspace.read(path) for path in paths}


def _compared(changes: tuple[FileChange, ...]) -> tuple[Patch, str]:
    """Return the patch of these changes, and its text."""
    patch = compare_contents(changes)
    return patch, render_patch(patch)


async def _against_approved(context: ToolContext, changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Return the changes relative to the approved tree, which include unapproved changes of the same files."""
    unapproved = {each.path: each.before for each in await context.workspace.unapproved_changes(context.run.tree)}
    whole = [replace(change, before=unapproved.get(change.path, change.before)) for change in changes]
    left = tuple(change for change in whole if change.before != change.after)
    if not left:
        raise PatchError("the diff only brings back what was approved before")
    return left


async def check_unmoved(context: ToolContext, proposal: Proposal) -> str:
    """Return the path of the first file that changed after the proposal was shown, empty if none did."""
    for preimage in proposal.preimages:
        try:
            content = await context.workspace.read(preimage.path)
        except WorkspaceError:
            return preimage.path
        if content_hash(content) != preimage.sha:
            return preimage.path
    return ""


def _now(change: FileChange) -> tuple[Chunk, ...]:
    if change.after is None:
        return ()
    lines = change.after.data.decode("utf-8", "replace").split("\n")
    before = change.before.data.decode("utf-8", "replace").split("\n") if change.before else []
    head = 0
    while head < min(len(lines), len(before)) and lines[head] == before[head]:
        head += 1
    tail = 0
    while tail < min(len(lines), len(before)) - head and lines[-1 - tail] == before[-1 - tail]:
        tail += 1
    first = max(0, head - SHOWN_CONTEXT)
    last = min(len(lines), len(lines) - tail + SHOWN_CONTEXT, first + SHOWN_LINES)
    return (Chunk(change.path, first + 1, last, "\n".join(lines[first:last]), 0.0),)


WRITE_DIFF_TOOL = WriteDiff(
    name="write_diff",
    summary="change files with a unified diff (--- a/path, +++ b/path, @@ hunks); no fence; a new file has "
    "--- /dev/null, a removed one +++ /dev/null, a renamed one begins with `rename from`, `rename to`",
    permission=Permission.DIFF,
    raw=True,
)
KEEP = WriteDiff(name=KEEP_CHANGES, summary="keep what a command changed", permission=Permission.DIFF, raw=True)
"""The changes that a command left behind: kept if the user approves, restored if not."""

TOOLS = (WRITE_DIFF_TOOL,)
