"""Pull request of a finished task, asked for by its user: preview, and the push and request as they were shown."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.merge import unmerged_commit
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import ConfigError, JournalError, TargetMoved, UsageError
from agent_workbench.core.history.journal_proof import read_trailers
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.forge import ShownPullRequest
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.forge.link_calls import ForgeLink
from agent_workbench.subjects.forge.report_calls import request_texts

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.settings import Settings


class RepoPullRequests:
    """`core.ports.forge.PullRequests` of the repository in which the command was started."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    async def preview(self, task: TaskId) -> ShownPullRequest:
        """Return the pull request of a task's newest commit as it would be opened; nothing is sent.

        Raises `WorkspaceError` if the task has no unmerged commit, `ConfigError` without a forge or its token.
        """
        from agent_workbench.engine.tools.merge import merge_draft

        task, commit = await unmerged_commit(self._invocation, task)
        link = await _link(self._invocation)
        try:
            preview = await link.repo.repository.merge_preview(commit)
            draft = await merge_draft(preview, str(task))
            branch, title, text = await _texts(link, task, commit)
        finally:
            await link.close()
        settings = link.settings
        where = f"{settings.url.rstrip('/')}/{settings.repo}"
        said, commits = (branch, title, text), preview.commits
        return ShownPullRequest(task, commit, *said, commits, draft.diff, where, settings.token_variable)

    async def open(self, shown: ShownPullRequest) -> str:
        """Push the branch and open its pull request, or update the open one; return its address.

        Raises `TargetMoved` if it would be another one now, `ForgeError`, and `ConfigError` without a token.
        """
        if await self.preview(shown.task) != shown:
            raise TargetMoved(f"nothing was pushed: {shown.task} or its forge is not as it was shown")
        link = await _link(self._invocation)
        try:
            async with link.exclusive():
                await link.remote.push(shown.branch, shown.commit, None)
                address = await link.forge.request_merge(shown.branch, shown.title, shown.text, again=True)
        finally:
            await link.close()
        return sanitize_line(address)


async def _link(invocation: Invocation) -> ForgeLink:
    """Return the link to the forge of the settings, else to the one that the git remote names."""
    repo, settings = await trusted_repo(invocation)
    return await asyncio.to_thread(ForgeLink, repo, await _with_forge(repo, settings))


async def _with_forge(repo: "RepoContext", settings: "Settings") -> "Settings":
    if settings.forge.active:
        return settings
    remote = settings.database.remote or "origin"
    forge = settings.forge.at_remote(await repo.repository.remote_url(remote))
    if not forge.active:
        raise ConfigError(
            f"no forge is known: forge.url and forge.repo are not set, and the git remote {remote} is not at GitHub",
            advice="set both in .agent.yml, or forge.kind if the remote is a forge, and trust it (`agent trust`)",
        )
    return replace(settings, forge=forge)


async def _texts(link: ForgeLink, task: TaskId, commit: CommitId) -> tuple[str, str, str]:
    """Return branch, title and text: those of the session that made the commit, else of the commit's message."""
    facts = await link.repo.repository.stored_commits().commit(commit)
    message = facts.message if facts is not None else b""
    anchors = read_trailers(commit, message).anchors
    if anchors:
        try:
            session = anchors[-1].session
            run = (await link.state(session)).run_of(task)
            if run is not None:
                title, text = await request_texts(link, run.definition, session, task)
                return run.workspace.branch, title, text
        except (UsageError, JournalError):
            pass  # the journal is on another machine, or removed
    subject = sanitize_line(message.decode("utf-8", "replace").partition("\n")[0])
    title, text = await request_texts(link, Task(task, subject))
    return f"agent/{task}", title, text
