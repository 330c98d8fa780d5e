"""Tools `write_diff`, a change to files as a unified diff, and `rewrite`, the new text of pieces or files."""

import re
from asyncio import to_thread
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from agent_workbench.core.checks.judges import Protection, changes_runs, has_runner_settings, runner_settings
from agent_workbench.core.checks.source_tests import changed_tests
from agent_workbench.core.errors import JudgeTouched, PatchError, VainChange, WorkspaceError
from agent_workbench.core.events import FAILING_FIRST, PatchApplied
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.comparison import compare_contents
from agent_workbench.core.patch.diff_text import DIFF_BEGINS, render_patch
from agent_workbench.core.patch.file_piece import FilePiece, RewrittenFile, rewrite_file
from agent_workbench.core.patch.fit import Fit, fit_constrained_diff, fit_diff
from agent_workbench.core.patch.patch_reader import read_constrained_diff, read_diff
from agent_workbench.core.patch.paths import shown, special_paths
from agent_workbench.core.patch.rewritten_pieces import RewrittenPiece, read_rewrites
from agent_workbench.core.patch.values import FileChange, FileContent, Patch, content_hash, patch_hash
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.proposals import KEEP_CHANGES, Preimage, Proposal, with_patch
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.file_pieces import OfferedPieces, aimed, named_piece, offered_pieces
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.core.tools.spec import REWRITE
from agent_workbench.engine.prompt.repeated_lines import is_as_written
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, ToolContext

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


class Rewrite(WriteDiff, frozen=True):
    """Tool that replaces pieces by their new text. What is shown, decided and applied is the diff of that."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the diff of the rewritten pieces; raise `PatchError` if one is not complete or not offered.

        A text that is a diff is one that the user edited at the gate.
        """
        if DIFF_BEGINS.match(text):
            return await super().draft(context, arguments, text)
        pieces = await to_thread(offered_pieces, context.run)
        written, remarks = aimed(pieces, read_rewrites(text))
        files = await _rewritten(context, pieces, written)
        changed = (FileChange(path, before, file.content) for path, (before, file) in files.items())
        changes = (*changed, *await _created(context, written))
        diff = await to_thread(lambda: render_patch(compare_contents(changes)))
        if not diff.strip():
            raise VainChange(
                "the new text is the same as the old one", advice="change what is wrong in it, or do something else"
            )
        draft = await super().draft(context, arguments, diff)
        repairs = (repair for _, file in files.values() for repair in file.repairs)
        return replace(draft, text=text, repaired=(*remarks, *repairs, *draft.repaired))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Apply the shown diff. The pieces are shown as they are now, so that they can be rewritten again."""
        if proposal.edited or proposal.hunks or DIFF_BEGINS.match(proposal.text):
            return await super().run(context, proposal)
        pieces = await to_thread(offered_pieces, context.run)
        written, _ = aimed(pieces, read_rewrites(proposal.text))
        rewritten = await _rewritten(context, pieces, written)
        result = await super().run(context, proposal)
        now = tuple(_chunk(piece) for _, file in rewritten.values() for piece in file.pieces)
        (applied,) = (replace(each, shown=now) for each in result.effects if isinstance(each, PatchApplied))
        return replace(result, observation=describe_applied(applied, proposal), effects=(applied,))


async def _rewritten(
    context: ToolContext, pieces: OfferedPieces, written: Sequence[RewrittenPiece]
) -> dict[str, tuple[FileContent, RewrittenFile]]:
    """Return the files of the rewritten pieces by path, as they are and as they will be."""
    by_path: dict[str, list[tuple[FilePiece, Sequence[str]]]] = {}
    for each in written:
        if not each.path:
            piece = named_piece(pieces, each)
            by_path.setdefault(piece.path, []).append((piece, each.lines))
    files: dict[str, tuple[FileContent, RewrittenFile]] = {}
    for path, rewrites in by_path.items():
        before = await context.workspace.read(path)
        if before is None:
            raise PatchError(f"{shown(path)} does not exist any more", advice="list_files shows the files there are")
        files[path] = before, await to_thread(rewrite_file, before, rewrites)
    return files


async def _created(context: ToolContext, written: Sequence[RewrittenPiece]) -> tuple[FileChange, ...]:
    """Return the new files of an answer; raise `PatchError` for one that exists."""
    for each in written:
        if each.path and await context.workspace.read(each.path) is not None:
            raise PatchError(f"{shown(each.path)} exists", advice="read_file shows it under a number, to rewrite it")
    contents = ((each.path, "".join(f"{line}\n" for line in each.lines)) for each in written if each.path)
    return tuple(
        FileChange(path, None, FileContent(text.encode("utf-8", "surrogateescape"))) for path, text in contents
    )


def _chunk(piece: FilePiece) -> Chunk:
    last = piece.first_line + len(piece.lines) - 1
    return Chunk(piece.path, piece.first_line, last, "\n".join(piece.lines), 0.0)


REWRITE_TOOL = Rewrite(
    name=REWRITE,
    summary="give pieces of files that you were shown their whole new text",
    permission=Permission.DIFF,
    raw=True,
    fenced=True,
)

TOOLS = (WRITE_DIFF_TOOL, REWRITE_TOOL)
