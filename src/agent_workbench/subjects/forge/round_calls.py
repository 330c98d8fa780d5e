"""Rounds at the forge, at intervals: issues are queued, proposals shown, and comments decide once, by who may."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import local_inbox, system_clock
from agent_workbench.core.errors import DecisionRefused, ForgeError, UsageError, WorkbenchError, error_text
from agent_workbench.core.ids import TaskId
from agent_workbench.core.inbox import InboxChoice, Reference
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.forge.issues import (
    CommandVerb,
    CommentCommand,
    issue_definition,
    issue_of,
    issue_task_id,
    read_command,
    retry_of,
)
from agent_workbench.subjects.forge.link_calls import (
    ForgeLink,
    as_written,
    comments_about,
    needs_local_person,
    proposal_key,
    show_proposal,
    shown_proposal,
)
from agent_workbench.subjects.forge.view import answer_comment, queued_comment, refused_comment
from agent_workbench.subjects.inbox.calls import RepoInbox, WaitingSession
from agent_workbench.subjects.inbox.wiring import repo_decisions
from agent_workbench.subjects.queue.wiring import DEFAULT_PROJECT, project_queue

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.ports.forge import ForgeComment, ForgeIssue
    from agent_workbench.core.ports.stores import Inbox, SessionStore
    from agent_workbench.core.ports.task_queue import TaskQueue
    from agent_workbench.core.settings import Settings


VERDICTS = {CommandVerb.APPROVE: Verdict.APPROVE, CommandVerb.REJECT: Verdict.REJECT}
NOT_SHOWN = "no comment of the agent before this one shows that reference on this issue"

ROUND_SECONDS = 300.0
MOST_ISSUES = 100
"""Issues whose comments are read in one round."""
FROM_ELSEWHERE = frozenset({TaskOrigin.FORGE, TaskOrigin.DATABASE})
"""Origins of tasks that a comment may try again: they run nothing that no local rule names."""
UNDECIDED = frozenset({QueueState.CLAIMED, QueueState.PARKED, QueueState.FAILED})
"""States of tasks about which a comment may still say something."""

REPORT_AGAIN_SECONDS = 600.0


class CommentAnswer(Struct, frozen=True):
    """Answer to a comment of an allowed user that was meant to decide."""

    comment: int
    outcome: str
    accepted: bool = False


def answer_key(comment: int) -> str:
    """Return the key of the answer to a comment; one that has it was dealt with."""
    return f"answer:{comment}"


def new_comments(link: "ForgeLink", comments: "Sequence[ForgeComment]") -> "list[ForgeComment]":
    """Return the comments of allowed users that begin with a command and were not answered, by id.

    Nothing counts that the agent's own account or a program wrote, or that is older than the agent's first comment.
    """
    own = [each for each in comments if each.own]
    answered = {each.key for each in own}
    first = min((each.id for each in own), default=None)
    return [
        each
        for each in comments
        if first is not None
        and each.id > first
        and not each.own
        and not each.bot
        and link.settings.allows(each.author)
        and each.text.startswith("/")
        and answer_key(each.id) not in answered
    ]


class CommentDecisions:
    """Decisions about the proposals that wait, made in the comments of one issue.

    `inbox_of` gives the inbox in which a named person decides. `retry` queues the issue's failed task again for the
    comment with this id, and says so or why not.
    """

    def __init__(
        self,
        link: "ForgeLink",
        waiting: "Mapping[SessionId, WaitingSession]",
        inbox_of: "Callable[[str], RepoInbox]",
        retry: Callable[[int], Awaitable[CommentAnswer]],
    ) -> None:
        self._link = link
        self._waiting = waiting
        self._inbox_of = inbox_of
        self._retry = retry

    async def answer(self, comment: "ForgeComment", comments: "Sequence[ForgeComment]") -> CommentAnswer | None:
        """Carry out the command in a comment; None if it is an ordinary one after all.

        Raises `ForgeError` if the forge does not tell whether its author may write: the next round asks again.
        """
        refused = partial(CommentAnswer, comment.id)
        try:
            command = read_command(comment.text)
            if command is None:
                return None
            if not await self._link.forge.may_write(comment.author):
                return refused(f"{comment.author} may not write to {self._link.settings.repo}")
            if comment.edited:
                return refused("an edited comment does not decide; write a new one")
            if command.reference is None:
                return await self._retry(comment.id)
            before = [each for each in comments if each.id < comment.id]
            if not comments_about(before, f"proposal:{command.reference}"):
                return refused(NOT_SHOWN)
            objection = partial(self._objection, comment=comment, comments=comments)
            done = await self._decide(command, command.reference, comment, objection)
            return CommentAnswer(comment.id, done, accepted=True)
        except ForgeError:
            raise
        except WorkbenchError as error:
            return refused(error_text(error))

    def _objection(self, waiting: "WaitingSession", comment: "ForgeComment", comments: "Sequence[ForgeComment]") -> str:
        """Return why a comment does not decide what waits now, empty if it does."""
        if waiting.item.session not in self._waiting:
            return f"{waiting.item.id} waits in a task that is not of this issue and queue"
        if why := needs_local_person(waiting.state, self._link.all_settings):
            return why
        before = [each for each in comments if each.id < comment.id]
        whole = shown_proposal(self._link, waiting.item, waiting.state)
        if not whole.decidable or not as_written(before, proposal_key(waiting.item), whole.text):
            return "the comment that shows the proposal is not as the agent wrote it"
        return ""

    async def _decide(
        self,
        command: CommentCommand,
        reference: Reference,
        comment: "ForgeComment",
        objection: "Callable[[WaitingSession], str]",
    ) -> str:
        person = f"{comment.author} on {self._link.host} (comment {comment.id})"
        inbox = self._inbox_of(person)
        waiting = self._waiting.get(reference.session)
        kept = waiting.item.decided if waiting is not None else None
        if kept is not None and kept.made_by == person:
            return f"{kept.verdict.past} {reference.proposal}"  # the answer was lost in a crash
        try:
            receipt = await inbox.decide(reference, InboxChoice(VERDICTS[command.verb], command.reason), objection)
        except DecisionRefused as refused:
            if person in str(refused):
                return str(refused)  # recorded before a crash
            raise
        return f"{receipt.decision.verdict.past} {reference.proposal}"


async def open_rounds(invocation: Invocation, project: str = "", folder: Path | None = None) -> "ForgeRounds | None":
    """Return the rounds of the repository around `invocation`, into the queue of a project; None without a forge.

    Raises `ConfigError` if the forge's token is missing, `UsageError` for a name that is no project's.
    """
    repo, settings = await trusted_repo(invocation)
    return await repo_rounds(repo, settings, await project_queue(repo, settings, project or DEFAULT_PROJECT, folder))


async def repo_rounds(repo: "RepoContext", settings: "Settings", queue: "TaskQueue") -> "ForgeRounds | None":
    """Return the rounds of a repository, None without a forge; raise `ConfigError` if its token is missing."""
    if not settings.forge.active:
        return None
    link = await asyncio.to_thread(ForgeLink, repo, settings)
    return ForgeRounds(link, await asyncio.to_thread(repo.sessions, settings), queue)


class RoundOutcome(Struct, frozen=True):
    """Actions of a round, a line each, and the trouble that stopped it."""

    done: tuple[str, ...] = ()
    problem: WorkbenchError | None = None


class IssueTasks(Struct, frozen=True):
    """Work on one issue: its tasks in the queue, and the proposals that wait in their sessions."""

    tasks: tuple[QueuedTask, ...] = ()
    waiting: tuple[WaitingSession, ...] = ()

    @property
    def newest(self) -> QueuedTask | None:
        """The task of the last try."""
        return max(self.tasks, key=lambda task: retry_of(task.id), default=None)

    @property
    def undecided(self) -> bool:
        """True if a comment may still say something about it."""
        return bool(self.waiting) or (self.newest is not None and self.newest.state in UNDECIDED)


class ForgeRounds:
    """Looks at the forge, one at a time."""

    def __init__(self, link: ForgeLink, sessions: "SessionStore", queue: "TaskQueue") -> None:
        self._link = link
        self._sessions = sessions
        self._queue = queue
        self._decisions: Inbox | None = None

    async def round(self) -> RoundOutcome:
        """Queue new issues, show what waits, and carry out what comments say.

        Never raises for a forge that refuses or does not answer: the next round does what is left.
        """
        done: list[str] = []
        problem: WorkbenchError | None = None
        try:
            async with asyncio.timeout(ROUND_SECONDS), self._link.exclusive():
                async for line in self._steps():
                    done.append(sanitize_line(line))
        except TimeoutError:
            problem = ForgeError(f"the forge at {self._link.settings.url} took more than {ROUND_SECONDS:g} s")
        except WorkbenchError as error:
            problem = error
        return RoundOutcome(tuple(done), problem)

    async def close(self) -> None:
        """Close all connections."""
        await self._link.close()

    async def _steps(self) -> AsyncIterator[str]:
        """Do what there is to do; one issue that cannot be read or answered keeps no other from it."""
        link = self._link
        self._decisions = await asyncio.to_thread(repo_decisions, link.repo, link.all_settings, self._sessions)
        tasks = await self._queue.tasks()
        found, sessions = _by_issue(tasks), {task.session for task in tasks if task.session}
        problem: ForgeError | None = None
        try:
            new = await self._link.forge.issues(known=found)
        except ForgeError as error:
            new, problem = (), error
        for issue in new:
            if line := await self._take_or_tell(issue):
                yield line
        for waiting in await self._inbox().waiting():
            run = waiting.state.run
            number = self._link.issue_of(run.definition) if run is not None else None
            # What waits on somebody's screen is nothing for the forge.
            if number is not None and waiting.item.session in sessions:
                known = found.get(number, IssueTasks())
                found[number] = replace(known, waiting=(*known.waiting, waiting))
        active = (number for number, known in found.items() if known.undecided)
        for number in sorted(active, reverse=True)[:MOST_ISSUES]:
            try:
                async for line in self._read_issue(number, found[number]):
                    yield line
            except ForgeError as error:
                yield f"issue {number}: {error_text(error)}"
                if problem is not None:  # it is the forge, and not this issue
                    break
        if problem is not None:
            raise problem

    async def _take_or_tell(self, issue: "ForgeIssue") -> str:
        try:
            return await self._take(issue)
        except ForgeError as error:
            return f"issue {issue.number}: {error_text(error)}"

    async def _take(self, issue: "ForgeIssue") -> str:
        """Queue an issue's task with its text as it is now, or say on the issue why not."""
        settings, name = self._link.settings, issue_task_id(issue.number)
        try:
            if issue.problem:
                raise UsageError(issue.problem)
            title, text = self._link.redact(issue.title), self._link.redact(issue.text)
            definition = issue_definition(f"{settings.software}:{settings.repo}#{issue.number}", title, text)
        except UsageError as error:
            return await self._refuse(issue, error_text(error))
        key = f"queued:{issue.label_event}"
        if await self._has_said(issue, key):
            return ""  # a worker on another queue has it
        if not await self._queue.put(QueuedTask(name, definition, origin=TaskOrigin.FORGE)):
            return ""  # it was done, and its file is gone since
        frozen = queued_comment(issue.text_sha, issue.labelled_by, f"{issue.title}\n\n{issue.text}")
        await self._link.comment(issue.number, key, frozen)
        return f"{name} is queued from issue {issue.number}, which {issue.labelled_by} labelled"

    async def _refuse(self, issue: "ForgeIssue", why: str) -> str:
        """Say on the issue why it is not queued, once for each time that the label was set."""
        key = f"refused:{issue.label_event}"
        if await self._has_said(issue, key):
            return ""  # that comment changed the issue too, so by now there is another reason
        await self._link.comment(issue.number, key, refused_comment(why))
        return f"issue {issue.number} is not queued: {why}"

    async def _has_said(self, issue: "ForgeIssue", key: str) -> bool:
        comments = await self._link.forge.comments(issue.number)
        return any(each.own and each.key == key for each in comments)

    async def _read_issue(self, number: int, known: IssueTasks) -> AsyncIterator[str]:
        """Show what waits for an issue, and carry out its new comments; raise `ForgeError`."""
        link = self._link
        comments = await link.forge.comments(number)
        by_session = {each.item.session: each for each in known.waiting}
        decisions = CommentDecisions(link, by_session, self._inbox, partial(self._retry, number, known))
        for comment in new_comments(link, comments):
            answer = await decisions.answer(comment, comments)
            if answer is not None:
                text = answer_comment(comment.id, answer.outcome, accepted=answer.accepted)
                await link.comment(number, answer_key(comment.id), text)
                yield f"issue {number}, comment of {comment.author}: {answer.outcome}"
        # Behind the decisions: what is shown only now was not seen by whoever decided.
        for waiting in known.waiting:
            await show_proposal(link, number, waiting.item, waiting.state, comments)

    async def _retry(self, number: int, known: IssueTasks, comment: int) -> CommentAnswer:
        """Queue the issue's failed task again, with the text that was frozen first."""
        name, newest = issue_task_id(number, comment), known.newest
        if newest is None or newest.origin not in FROM_ELSEWHERE:
            return CommentAnswer(comment, "the task was not queued by the forge: queue it again on the machine")
        if newest.id != name:
            if newest.state is not QueueState.FAILED:
                return CommentAnswer(
                    comment, f"{newest.id} is {newest.state}; only a failed task is tried again", False
                )
            await self._queue.put(QueuedTask(name, newest.definition, origin=TaskOrigin.FORGE))
        return CommentAnswer(comment, f"{name} is queued with the same text", accepted=True)

    def _inbox(self, person: str = "") -> RepoInbox:
        """Return the inbox in which `person` decides."""
        worker = self._link.all_settings.worker
        return RepoInbox(self._sessions, self._decisions or local_inbox(), system_clock(), lambda: person, worker)


def _by_issue(tasks: Sequence[QueuedTask]) -> dict[int, IssueTasks]:
    """Return the queue's tasks by the issue that their id names."""
    found: dict[int, IssueTasks] = {}
    for task in tasks:
        number = issue_of(Task(TaskId(task.id), task.id), "")
        if number is not None:
            found[number] = IssueTasks((*found.get(number, IssueTasks()).tasks, task))
    return found


class ForgeWatch:
    """Rounds at the forge every `poll_seconds`.

    Where one ends well, reports that failed are sent again now and then.
    """

    def __init__(
        self,
        rounds: "ForgeRounds",
        poll_seconds: float,
        note: Callable[[str], None],
        caution: Callable[[str], None],
        report_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._rounds = rounds
        self._poll_seconds = poll_seconds
        self._note = note
        self._caution = caution
        self._report_again = report_again

    async def run(self) -> None:
        """Look until this is cancelled; what stops a round is told once, until another one ends well."""
        told = ""
        noted: tuple[str, ...] = ()
        due = 0.0
        try:
            while True:
                outcome = await self._rounds.round()
                for line in outcome.done:
                    if line not in noted:  # an issue that cannot be read says so each time
                        self._note(line)
                noted = outcome.done
                problem = error_text(outcome.problem) if outcome.problem is not None else ""
                if problem and problem != told:
                    self._caution(problem)
                told = problem
                now = asyncio.get_running_loop().time()
                if not problem and now >= due:
                    due = now + REPORT_AGAIN_SECONDS
                    await self._report_again()
                await asyncio.sleep(self._poll_seconds)
        finally:
            await self._rounds.close()


async def beside(watch: ForgeWatch | None, work: Coroutine[None, None, None]) -> None:
    """Work while the watch goes on; a defect of either ends both."""
    working = asyncio.ensure_future(work)
    both = [working] if watch is None else [working, asyncio.ensure_future(watch.run())]
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
