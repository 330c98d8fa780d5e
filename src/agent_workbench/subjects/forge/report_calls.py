"""Reports of queued tasks to the forge's issue that they belong to."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent_workbench.core.errors import ConfigError, ForgeError, JournalError, UsageError, WorkbenchError, error_text
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.settings.worker import ReportPart
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.forge.issues import tag_name
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
    from agent_workbench.subjects.forge.link_calls import ForgeLink

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
