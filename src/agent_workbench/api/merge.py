"""Merge of a finished task into the user's branch: preview, and the merge exactly as it was shown."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.core.errors import PlanError, StorageError, TargetMoved, WorkspaceError
from agent_workbench.core.ids import CommitId, ProposalId, TaskId
from agent_workbench.core.proposal_kinds import MergeProposal
from agent_workbench.core.proposals import MERGE
from agent_workbench.core.repo.workspace import MergeMethod, MergeOutcome, MergeTarget
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded when it is needed
    from agent_workbench.adapters.git.repository import Repository


class ShownMerge(Struct, frozen=True):
    """A merge as it was shown. An approval is valid for this commit, this branch and the branch's commit only."""

    task: TaskId
    commit: CommitId
    target: MergeTarget
    proposal: MergeProposal


async def preview_merge(invocation: Invocation, task: TaskId, method: MergeMethod | None = None) -> ShownMerge:
    """Return the preview of the merge of a task's newest commit; None is git's own choice of the method.

    Raises `WorkspaceError` if the task has no unmerged commit, or something prevents the merge.
    """
    from agent_workbench.engine.tools.merge import merge_draft

    task, commit = await unmerged_commit(invocation, task)
    repo = (await find_repo(invocation)).repository
    preview = await repo.merge_preview(commit, method)
    if preview.obstacles:
        raise WorkspaceError(f"{task} cannot be merged: {'; '.join(preview.obstacles)}")
    draft = await merge_draft(preview, str(task))
    return ShownMerge(task, commit, preview.target, replace(draft, id=ProposalId(MERGE), tool=MERGE))


async def unmerged_commit(invocation: Invocation, task: TaskId) -> tuple[TaskId, CommitId]:
    """Return a task's newest commit that is not merged, and the id under which it was done; raise `WorkspaceError`."""
    repo = await _repository(invocation)
    commit = await repo.task_commit(task)
    if commit is None and (queued := await _queued_as(invocation, task)):
        task, commit = queued, await repo.task_commit(queued)
    if commit is None:
        advice = "`agent plan show` shows the tasks and how far each is"
        raise WorkspaceError(f"{task} has no commit that is not merged yet", advice=advice)
    return task, commit


async def _queued_as(invocation: Invocation, task: TaskId) -> TaskId | None:
    """Return the id under which a worker did a task of the plan, None if none did."""
    found, settings = await trusted_repo(invocation)
    try:
        plan = await found.plans(settings).read()
    except (PlanError, StorageError):
        return None
    return next((each.commit_id for each in plan.tasks if each.id == task and each.queued_as), None)


async def _repository(invocation: Invocation) -> "Repository":
    """Return the repository, which also finds what other machines did."""
    from agent_workbench.bootstrap.database import share_tasks

    repo, settings = await trusted_repo(invocation)
    if settings.database.active:
        share_tasks(repo, settings, await asyncio.to_thread(repo.sessions, settings))
    return repo.repository


async def merge_shown(invocation: Invocation, shown: ShownMerge, tell: Callable[[MergeOutcome], None]) -> None:
    """Merge exactly what was shown and pass the outcome to `tell`; a cancellation takes effect only after that.

    Raises `TargetMoved` if it would be another merge now, `WorkspaceError` if something prevents it.
    """
    from agent_workbench.core.background import uninterrupted

    async def merge() -> None:
        repo = (await find_repo(invocation)).repository
        commit = await repo.task_commit(shown.task)
        if commit != shown.commit:
            now = f"is at {commit[:10]} now" if commit is not None else "has no commit to merge any more"
            raise TargetMoved(f"nothing was merged: {shown.task} was shown at {shown.commit[:10]} and {now}")
        tell(await repo.merge(shown.commit, shown.proposal.text, shown.target, shown.proposal.method))

    await uninterrupted(merge())
