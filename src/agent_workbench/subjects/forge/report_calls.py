"""Reports of queued tasks to their issue at the forge, and pull requests that a user asks for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.merge import unmerged_commit
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import (
    ConfigError,
    ForgeError,
    JournalError,
    TargetMoved,
    UsageError,
    WorkbenchError,
    error_text,
)
from agent_workbench.core.history.journal_proof import read_trailers
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.ports.forge import ShownPullRequest
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings.worker import ReportPart
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.forge.issues import tag_name
from agent_workbench.subjects.forge.link_calls import ForgeLink
from agent_workbench.subjects.forge.view import (
    MAX_COMMENT_CHARS,
    ended_comment,
    result_comment,
    waiting_comment,
    working_comment,
)

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.inbox import InboxItem
    from agent_workbench.core.ports.forge import AnnotatedTag
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.task_result import TaskResult


REPORT_SECONDS = 240.0
STATUS_CONTEXT = "agent-workbench"
TITLE_CHARS = 200


def repo_reports(repo: "RepoContext", settings: "Settings") -> "Reports":
    """Return the reports of a repository with the settings that count in it; no request is sent. Blocks."""
    from agent_workbench.subjects.forge.link_calls import ForgeLink

    if not settings.forge.active:
        return Reports()
    try:
        return Reports(ForgeLink(repo, settings))
    except ConfigError as error:
        return Reports(problem=error_text(error))


class Reports:
    """Reports of one repository's tasks; without a forge they do nothing.

    No method raises: each returns a sentence about what failed, empty if nothing did. Each may be repeated after a
    crash and then changes nothing. A task without an issue is not reported.
    """

    def __init__(self, link: "ForgeLink | None" = None, problem: str = "") -> None:
        """Report over `link`; `problem` says why there is none although a forge is set."""
        self._link = link
        self._problem = problem

    async def started(self, task: Task, session: "SessionId") -> str:
        """Report that a session works on the task."""

        async def report(link: "ForgeLink", issue: int) -> str:
            await link.comment(issue, progress_key(task.id), working_comment(task.id, session))
            return ""

        return await self._report(task, report)

    async def parked(self, task: Task, session: "SessionId", item: "InboxItem") -> str:
        """Report a proposal that waits for a person, in full, with the reference that decides it."""

        async def report(link: "ForgeLink", issue: int) -> str:
            from agent_workbench.subjects.forge.link_calls import show_proposal

            state = await link.state(session)
            # What was decided or replaced meanwhile must not be shown under this reference.
            if state.waiting == item.proposal:
                await show_proposal(link, issue, item, state, await link.forge.comments(issue))
            await link.comment(issue, progress_key(task.id), waiting_comment(task.id, session))
            return ""

        return await self._report(task, report)

    async def ended(self, result: "TaskResult") -> str:
        """Report the result: branch, tag, state of the commit and pull request, and at last the comment."""
        task = Task(TaskId(result.task), result.task, source=result.source)
        if self._link is not None and result.session:
            try:
                run = (await self._link.state(result.session)).run_of(task.id)
                task = run.definition if run is not None else task
            except (UsageError, JournalError):
                pass  # the task may have failed because its session is gone or broken: the result names the issue too
            except WorkbenchError as error:
                return error_text(error)
        return await self._report(task, lambda link, issue: _report_end(link, issue, task, result))

    async def close(self) -> None:
        """Close all connections."""
        if self._link is not None:
            await self._link.close()

    async def _report(self, task: Task, report: "Callable[[ForgeLink, int], Awaitable[str]]") -> str:
        link = self._link
        if link is None:
            return self._problem
        issue = link.issue_of(task)
        if issue is None:
            return ""
        try:
            async with asyncio.timeout(REPORT_SECONDS), link.exclusive():
                return await report(link, issue)
        except TimeoutError:
            return f"issue {issue} was not reported to within {REPORT_SECONDS:g} s"
        except WorkbenchError as error:
            return f"issue {issue} was not reported to: {error_text(error)}"


def progress_key(task: str) -> str:
    """Return the key of the comment about a task's progress."""
    return f"progress:{task}"


def result_key(task: str, session: str) -> str:
    """Return the key of the comment about a task's result; another try has one of its own."""
    return f"result:{task}:{session}"


async def _report_end(link: "ForgeLink", issue: int, task: Task, result: "TaskResult") -> str:
    wanted = frozenset(link.settings.report)
    done = result.status is TaskStatus.DONE and bool(result.commit and result.branch)
    troubles: list[str] = []

    async def part(name: ReportPart, send: Callable[[], Awaitable[str]], *, after: bool = True) -> str:
        """Do a part of the report if it is wanted; one that fails does not stop the others."""
        if name not in wanted or not after:
            return ""
        try:
            return await send()
        except ForgeError as error:
            troubles.append(f"{name.replace('_', ' ')}: {error_text(error)}")
            return ""

    pushed = await part(ReportPart.PUSH, lambda: _push(link, task, result), after=done)
    await part(ReportPart.STATUS, lambda: _set_state(link, result), after=bool(pushed))
    address = await part(ReportPart.PULL_REQUEST, lambda: _request_merge(link, task, result), after=bool(pushed))
    tag = tag_name(result.task) if pushed and ReportPart.TAG in wanted else ""
    shown = address if address.startswith(link.settings.url) and address.isprintable() and " " not in address else ""
    text = result_comment(result, tag, shown, tuple(troubles))
    await link.comment(issue, result_key(result.task, result.session), text)
    progress = progress_key(result.task)
    if any(each.own and each.key == progress for each in await link.forge.comments(issue)):
        await link.comment(issue, progress, ended_comment(result.task, result.session))
    return "; ".join(troubles)


async def _push(link: "ForgeLink", task: Task, result: "TaskResult") -> str:
    """Push the branch with its tag; return the branch."""
    await link.remote.push(result.branch, CommitId(result.commit), _tag(link, task, result))
    return result.branch


def _tag(link: "ForgeLink", task: Task, result: "TaskResult") -> "AnnotatedTag | None":
    from agent_workbench.core.ports.forge import AnnotatedTag

    if ReportPart.TAG not in link.settings.report:
        return None
    goal = sanitize_line(task.goal or task.description, TITLE_CHARS)
    return AnnotatedTag(tag_name(result.task), link.redact(f"Completed: {goal}"), result.finished)


async def _set_state(link: "ForgeLink", result: "TaskResult") -> str:
    from agent_workbench.core.ports.forge import BuildState

    passed = sum(check.exit_code == 0 for check in result.checks)
    state = BuildState.SUCCESS if passed == len(result.checks) else BuildState.FAILURE
    text = f"{passed} of {len(result.checks)} checks passed" if result.checks else "no checks"
    await link.forge.set_state(CommitId(result.commit), STATUS_CONTEXT, state, text)
    return text


async def _request_merge(link: "ForgeLink", task: Task, result: "TaskResult") -> str:
    """Open the pull request with the session's report; return its address."""
    title, text = await request_texts(link, task, result.session)
    return await link.forge.request_merge(result.branch, title, text)


async def request_texts(link: "ForgeLink", task: Task, session: str = "", only: str = "") -> tuple[str, str]:
    """Return title and text of a task's pull request, without secrets of the environment.

    The text is the report of a session, or of the task `only` in it; it closes the task's issue, which a part of the
    issue does not.
    """
    from agent_workbench.api.session_export import ExportFormat, export_session

    title = sanitize_line(f"{task.id}: {task.description}", TITLE_CHARS)
    issue = link.issue_of(task)
    parts = [f"{'For' if task.subtask else 'Closes'} #{issue}"] if issue is not None else []
    if session:
        report = await export_session(link.repo.invocation, session, ExportFormat.MARKDOWN, only)
        parts.append(link.redact(report)[:MAX_COMMENT_CHARS])
    return link.redact(title), "\n\n".join(parts)


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
