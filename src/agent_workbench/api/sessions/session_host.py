"""Session host of this process: it opens sessions, keeps what they share, and waits for their ends."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.api.screen_services import tell_parked
from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.api.sessions.session_opening import AttendedRepo, open_session, replayed_session
from agent_workbench.api.trusted_repo import require_trust, trusted_repo
from agent_workbench.bootstrap.repo_context import RepoContext, Say, find_repo
from agent_workbench.bootstrap.shared_resources import SharedResources
from agent_workbench.core.events import Recorded
from agent_workbench.core.extras import needed_subject
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId, session_id
from agent_workbench.core.inbox import InboxChoice, InboxFilter, InboxItem, InboxReceipt, Reference
from agent_workbench.core.intents import Leave
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest, TaskOutcome
from agent_workbench.core.task_routing import RoutingDecision, bounded

if TYPE_CHECKING:
    from agent_workbench.subjects.inbox.calls import RepoInbox

Note = Callable[[SessionId], Awaitable[None]]


class LocalSessionHost:
    """Implements `core.ports.session_host.SessionHost` for the repository around `invocation`.

    Sessions begin to run when `ready` is set: a screen sets it after its first frame, which loading the adapters
    would delay. `say` is told what an unattended session waits for.
    """

    def __init__(self, invocation: Invocation, *, ready: asyncio.Event | None = None, say: Say | None = None) -> None:
        self.invocation = invocation
        self.ready = ready if ready is not None else asyncio.Event()
        if ready is None:
            self.ready.set()
        self._say = say
        self._shared = SharedResources()
        self._open: set[LocalSession] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException | None] = []

    async def __aenter__(self) -> "LocalSessionHost":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def repo(self) -> RepoContext:
        """Return the repository, with its settings as they are now; raise `RepoError`."""
        return await find_repo(self.invocation, self._shared)

    async def open(self, request: SessionRequest) -> LocalSession:
        """Open a session. For one that is not attended, an error that prevents its opening is raised here."""
        if request.chat:
            return await self._open_attended(await _chat_query(self.invocation, request), request)
        if request.unattended is not None:
            query = SessionQuery(request.session, request.mode is OpenMode.NEW, request.unattended.tasks)
            return await self.open_unattended(await self.repo(), query)
        match request.mode:
            case OpenMode.REPLAY:
                return self._start(await _replay(self.invocation, request))
            case OpenMode.FOLLOW:
                from agent_workbench.api.sessions.followed_session import followed_session

                return self._start(await followed_session(self.invocation, request.session, self._shared))
            case OpenMode.FORK:
                from agent_workbench.api.session_fork import fork_session

                child, _ = await fork_session(self.invocation, request.session, request.at)
                return self._attend(SessionQuery(child), request.person)
            case OpenMode.NEW:
                return await self._open_attended(SessionQuery(fresh=True, new_id=_new_id(request)), request)
            case OpenMode.RESUME:
                return await self._open_attended(SessionQuery(request.session, plans=True), request)

    async def _open_attended(self, query: SessionQuery, request: SessionRequest) -> LocalSession:
        if request.preflight:
            return self._attend(query, request.person)
        return await self._attend_now(query, request.person, headless=request.unattended is not None)

    async def open_unattended(
        self,
        repo: RepoContext,
        query: SessionQuery,
        before: Sequence[TaskOutcome] = (),
        elsewhere: Collection[TaskId] = (),
        noted: Note | None = None,
        routed: RoutingDecision | None = None,
    ) -> LocalSession:
        """Open a session that works on the tasks of `query`; raise `TrustError` for a repository without trust.

        `before` are the outcomes of earlier sessions of the same run. Tasks in `elsewhere` are not started. `noted`
        gets the session's name before anything is done in it; if it fails, nothing is. `routed` is recorded then.
        """
        from agent_workbench.core.events import TaskRouted
        from agent_workbench.engine.runtime.publisher import UpdatePublisher
        from agent_workbench.engine.session.unattended import UnattendedSession

        await require_trust(repo)
        updates, events = UpdateFeed(self._say), EventFeed()
        publisher = UpdatePublisher(updates.publish)
        session, recorder = await open_session(
            repo, query, publisher, events, trusted=True, headless=True, say=self._say
        )
        try:
            if noted is not None:
                await noted(session.state.session)
            if routed is not None:
                await recorder.record(TaskRouted(bounded(routed)))
        except BaseException:
            await session.close()
            await recorder.close()
            raise
        driver = UnattendedSession(session, recorder, query.tasks, tuple(before), elsewhere)
        tell = tell_parked(session.settings, self.invocation.environ)
        return self._start(LocalSession(driver, updates, events, tell))

    async def follow(self, session: SessionId, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield the events of a session that any process writes, then each new one, until the caller stops."""
        repo, settings = await trusted_repo(self.invocation)
        store = await asyncio.to_thread(repo.sessions, settings)
        async with aclosing(store.follow(session, after_seq)) as events:
            async for recorded in events:
                yield recorded

    async def inbox(self, wanted: InboxFilter) -> tuple[InboxItem, ...]:
        """Return the proposals that wait in all sessions of the repository, oldest first."""
        return await (await self._inbox()).items(wanted)

    async def decide(self, reference: Reference, choice: InboxChoice) -> InboxReceipt:
        """Decide a proposal that waits in any session.

        Raises `DecisionRefused` for a stale reference, `TrustError` in a process that a command of the agent started.
        """
        return await (await self._inbox()).decide(reference, choice)

    async def _inbox(self) -> "RepoInbox":
        with needed_subject():
            from agent_workbench.subjects.inbox.calls import repo_inbox

        return await repo_inbox(self.invocation, self._shared)

    @property
    def has_sessions(self) -> bool:
        """True while a session runs or waits for `ready`."""
        return bool(self._open)

    def leave(self, reason: str) -> None:
        """Have every session left."""
        self.ready.set()
        for session in tuple(self._open):
            session.submit(Leave(reason))

    async def join(self) -> None:
        """Wait until every session has ended; raise a defect that ended one."""
        while self._open:
            await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.result()

    async def close(self) -> None:
        """Have every session left and wait for their ends."""
        self.leave("the host was closed")
        try:
            await self.join()
        finally:
            await self._shared.close()

    def raise_if_none_opened(self) -> None:
        """Raise the error of the first session if none could be opened; the screen has shown the errors of others."""
        first = self._failures[0] if self._failures else None
        if first is not None and None not in self._failures:
            raise first

    def _attend(self, query: SessionQuery, person: str) -> LocalSession:
        from agent_workbench.engine.runtime.publisher import UpdatePublisher
        from agent_workbench.engine.session.preflight import Preflight

        updates, events = UpdateFeed(), EventFeed()

        async def repo() -> AttendedRepo:
            return AttendedRepo(await find_repo(self.invocation, self._shared), query, events, person=person)

        return self._start(LocalSession(Preflight(repo, UpdatePublisher(updates.publish)), updates, events))

    async def _attend_now(self, query: SessionQuery, person: str, *, headless: bool = False) -> LocalSession:
        """Open an attended session without questions; raise what prevents it."""
        from agent_workbench.engine.runtime.intent_queue import IntentQueue
        from agent_workbench.engine.runtime.publisher import UpdatePublisher

        updates, events = UpdateFeed(), EventFeed()
        repo = await self.repo()
        trusted = await asyncio.to_thread((await repo.trust()).is_trusted)
        opened = AttendedRepo(repo, query, events, headless=headless, person=person)
        session = await opened.open(UpdatePublisher(updates.publish), IntentQueue(), trusted=trusted)
        return self._start(LocalSession(session, updates, events))

    def _start(self, session: LocalSession) -> LocalSession:
        self._open.add(session)
        task = asyncio.create_task(self._run(session))
        self._tasks.add(task)
        task.add_done_callback(self._drop_ended)
        return session

    def _drop_ended(self, task: "asyncio.Task[None]") -> None:
        """Forget a session's task; `join` needs those that a defect ended."""
        if not task.cancelled() and task.exception() is None:
            self._tasks.discard(task)

    async def _run(self, session: LocalSession) -> None:
        try:
            await self.ready.wait()
            await session.run()
        finally:
            self._open.discard(session)
            # Nothing else of the session is kept: a long one is large, and the frames of a traceback hold it.
            self._failures.append(session.failure and session.failure.with_traceback(None))


def new_session_id() -> SessionId:
    """Return the id for a session that a front end names before it is opened."""
    from agent_workbench.bootstrap import stores

    return stores.new_session_id()


async def _replay(invocation: Invocation, request: SessionRequest) -> LocalSession:
    from agent_workbench.api.session_queries import replayed_events

    at = request.at or 0
    return await replayed_session(await replayed_events(invocation, request.session, at), at=at)


async def _chat_query(invocation: Invocation, request: SessionRequest) -> SessionQuery:
    """Return the query of a new chat or of an earlier one; raise `UsageError` for a session that is none."""
    if request.mode is not OpenMode.RESUME:
        return SessionQuery(fresh=True, chat=True, new_id=_new_id(request))
    from agent_workbench.api.session_queries import named_chat

    return SessionQuery(await named_chat(invocation, request.session), chat=True)


def _new_id(request: SessionRequest) -> SessionId:
    return session_id(request.session) if request.session else NO_SESSION


def open_host(
    folder: Path | str = ".",
    *,
    settings: Mapping[str, str] | None = None,
    policy: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    unconfined: bool = False,
    say: Say | None = None,
) -> LocalSessionHost:
    """Return the host of the repository around `folder`; `async with` leaves its sessions at the end.

    `settings` are keys of `.agent.yml` with dots (`approvals.diff`) and count more than the file. `policy` is a YAML
    file with approvals and limits. `unconfined`: an unattended session runs commands even if no sandbox holds. `say` is
    told what an unattended session waits for. Nothing is read before a session is opened.
    """
    invocation = Invocation(
        Path(folder).absolute(),
        dict(os.environ if environ is None else environ),
        dict(settings or {}),
        policy=None if policy is None else Path(policy),
        unconfined=unconfined,
    )
    return LocalSessionHost(invocation, say=say)
