"""Merge of a task's commit into the user's branch: the only action that changes the user's checkout."""

from asyncio import to_thread
from collections.abc import Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import UsageError, WorkspaceError
from agent_workbench.core.events import TaskMerged
from agent_workbench.core.history.journal_proof import without_anchors
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.proposal_kinds import MergeProposal
from agent_workbench.core.proposals import MERGE, TRAILER, Preimage, Proposal
from agent_workbench.core.repo.workspace import MergeMethod, MergePreview, MergeTarget
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.commit import approval_trailer, commit_approved_by_user, reviewed_paths

DETACHED = "HEAD"
METHOD = "method"


class Merge(BuiltinTool, frozen=True):
    """Tool of the workbench that merges the task's commit into the user's branch."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the merge as it would be made now, with its obstacles; the argument `method` may name its method."""
        if text != without_anchors(text):
            raise UsageError(
                f"a line of the message begins with {TRAILER}", advice="remove it; the merge keeps its own"
            )
        commit = _commit(context)
        wanted = arguments.text(METHOD)
        preview = await context.ports.workspaces.merge_preview(commit, MergeMethod(wanted) if wanted else None)
        committed = await context.workspace.changes(context.run.tree)
        if not preview.changes:
            preview = replace(preview, changes=committed)
        draft = await merge_draft(preview, f"{context.workspace.facts.branch} ({commit[:10]})", text)
        return replace(draft, reviewed=await to_thread(_reviewed, context, committed, preview.changes))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Merge, or raise with nothing changed."""
        (shown,) = proposal.preimages
        method = proposal.method if isinstance(proposal, MergeProposal) else None
        target = MergeTarget("" if shown.path == DETACHED else shown.path, CommitId(shown.sha))
        message = proposal.text
        if method is MergeMethod.SQUASH:
            message = f"{message.strip()}\n\n{approval_trailer(context)}\n"
        outcome = await context.ports.workspaces.merge(_commit(context), message, target, method)
        done = f"{outcome.into} is at {outcome.commit[:10]} ({outcome.how})"
        return ToolResult(done, effects=(TaskMerged(context.task.id, outcome),))


async def merge_draft(preview: MergePreview, what: str, text: str = "") -> MergeProposal:
    """Return the draft of a merge: message, diff, commits, target branch and obstacles."""
    return MergeProposal(
        text=text or preview.message or _generated(preview, what),
        diff=await to_thread(render_changes, preview.changes),
        paths=tuple(change.path for change in preview.changes),
        brings=preview.commits,
        special=preview.obstacles,
        preimages=(_start(preview.target),),
        method=preview.method,
        methods=preview.methods,
        left_out=_left_out(preview),
    )


def _left_out(preview: MergePreview) -> str:
    """Return what the user's own git would do at the merge, with the command that does it."""
    said = preview.own_git.left_out
    if not said or not preview.commits:
        return ""
    commit = preview.commits[0].split(" ")[0]
    return f"{said} To have it, merge by your own git: git merge --no-ff --no-commit {commit} && git commit"


def method_arguments(method: MergeMethod | None) -> Arguments:
    """Return the arguments of a draft of a merge by this method."""
    return Arguments({} if method is None else {METHOD: method.value})


def _generated(preview: MergePreview, what: str) -> str:
    """Return the message of a merge commit; for a rebase, which makes none, what it does."""
    branch = preview.target.branch or "a detached HEAD"
    rebases = preview.method is MergeMethod.REBASE
    return f"Rebase {what} onto {branch}" if rebases else f"Merge {what} into {branch}"


async def merged_into(context: ToolContext) -> tuple[Preimage, ...]:
    """Return the target of a merge: the user's branch (`HEAD` when detached) and its commit."""
    return (_start(await context.ports.workspaces.target()),)


def _reviewed(context: ToolContext, committed: Sequence[FileChange], merged: Sequence[FileChange]) -> tuple[str, ...]:
    """Return the paths that the merge changes exactly as the commit does, if the user has seen that change."""
    history = context.run.history
    seen = [each.path for each in committed] if commit_approved_by_user(history) else reviewed_paths(history, committed)
    same = {each.path: each for each in committed if each.path in seen}
    return tuple(each.path for each in merged if same.get(each.path) == each)


def _start(target: MergeTarget) -> Preimage:
    return Preimage(target.branch or DETACHED, target.head)


def _commit(context: ToolContext) -> CommitId:
    if context.run.commit is None:
        raise WorkspaceError(f"task {context.task.id} has no commit to merge")
    return context.run.commit


TOOL = Merge(name=MERGE, summary="merge the task into the user's branch", permission=Permission.MERGE)
