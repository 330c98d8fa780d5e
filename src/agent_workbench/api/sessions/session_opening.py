"""Opening of a session, undone if a part fails, and the conditions for unattended work."""

import asyncio
import gc
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.bootstrap.commands import command_shell, held_credentials
from agent_workbench.bootstrap.repo_context import RepoContext, Say
from agent_workbench.bootstrap.stores import system_clock
from agent_workbench.core.errors import SandboxError
from agent_workbench.core.extras import needed_subject
from agent_workbench.core.plan import is_queued
from agent_workbench.core.proposals import USER
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_workbench.core.approval_rules import StoredRule
    from agent_workbench.core.events import Recorded, SessionConfigured
    from agent_workbench.core.history.summaries import SessionQuery
    from agent_workbench.core.ports.repo_files import Plans, Setup, Trust
    from agent_workbench.core.ports.stores import HeldSession
    from agent_workbench.core.settings import Settings
    from agent_workbench.engine.recorder import Recorder
    from agent_workbench.engine.runtime.intent_queue import IntentQueue
    from agent_workbench.engine.runtime.publisher import UpdatePublisher
    from agent_workbench.engine.runtime.session_context import SessionContext
    from agent_workbench.engine.session.live_session import LiveSession


UNCONFINED = "install bubblewrap, or say --unconfined to run tests and commands without a sandbox"
MOST_NAMES = 5


class AttendedRepo:
    """The repository of an attended session, which `open` opens. Implements `engine.session.preflight.Repo`."""

    def __init__(
        self, repo: RepoContext, query: "SessionQuery", events: EventFeed, *, headless: bool = False, person: str = USER
    ) -> None:
        """Prepare the opening of a session.

        `headless`: nobody can be asked in it. `person` is the `by` of the decisions of whoever attends it.
        """
        self._person = person
        self._repo = repo
        self._headless = headless
        self._query = query
        self._events = events

    @property
    def setup(self) -> "Setup":
        """The files that a repository needs before it can be worked in."""
        return self._repo.setup

    async def trust(self) -> "Trust":
        """Read what the repo would run, and whether it is trusted."""
        return await self._repo.trust()

    async def open(self, publisher: "UpdatePublisher", intents: "IntentQueue", *, trusted: bool) -> "LiveSession":
        """Open the session that takes `intents`; it lives when its `run()` is awaited."""
        from agent_workbench.engine.session.live_session import LiveSession

        session, recorder = await open_session(
            self._repo, self._query, publisher, self._events, trusted=trusted, headless=self._headless
        )
        session.person = self._person
        publisher.show_ui(session.settings.ui)
        return LiveSession(session, recorder, intents, chat=self._query.chat)


async def open_session(
    repo: RepoContext,
    query: "SessionQuery",
    publisher: "UpdatePublisher",
    events: EventFeed,
    *,
    trusted: bool,
    headless: bool = False,
    say: Say | None = None,
    held: "HeldSession | None" = None,
) -> "tuple[SessionContext, Recorder]":
    """Open the session that `query` selects, or begin one; `held` is one whose journal is given.

    `headless`: nobody can be asked in it. `say` is told what a person should know of a headless one. Raises
    `LockedError`, `JournalError`, `ConfigError`, `StorageError`, and `ShellError` for headless tasks without a sandbox.
    """
    from agent_workbench.core.events import SessionStarted
    from agent_workbench.engine.runtime.session_context import SessionContext
    from agent_workbench.engine.session.preflight import arrive, begin, session_tools

    settings = await asyncio.to_thread(lambda: repo.settings(trusted=trusted))
    async with AsyncExitStack() as stack:
        ports = await asyncio.to_thread(repo.ports, settings, publisher.show_activity)
        ports = replace(ports, withdraw=partial(_withdraw, repo, settings))
        stack.push_async_callback(ports.model.close)
        stack.push_async_callback(ports.retriever.close)
        label = await _label(query, ports.plans, repo.plans(settings))
        sandbox, target = await ports.shell.observe(), await ports.workspaces.target()
        if headless and not query.chat:
            check_confined(sandbox, repo.invocation, settings)
        if headless and not sandbox.holds and say is not None:
            say(f"tests and commands are not confined here: {sandbox.why}")
        own_rules = await ports.rules.kept() if trusted else ()
        store = await asyncio.to_thread(repo.sessions, settings)
        opened = held or await store.open(query)
        if held is None:
            stack.push_async_callback(store.discard, opened)
        config = session_config(settings, sandbox, own_rules, headless=headless)
        header = SessionStarted(opened.id, str(repo.root), target.head, __version__, label=label)
        recorder = _recorder(opened, publisher, events, headless=headless)
        ports = replace(ports, backlog=store.backlog)
        if settings.database.active or is_queued(recorder.state.plan_path):
            with needed_subject():
                from agent_workbench.subjects.queue.wiring import session_plans

            plans = await session_plans(recorder.state, ports.plans, shared=settings.database.active)
            ports = replace(ports, plans=plans)
        events.begin(recorder.state.seq, partial(store.read, opened.id, whole=True))
        resumed = await arrive(
            opened, recorder.state, ports.memory, ports.workspaces, str(repo.root), settings.workspace.link
        )
        await begin(recorder, header, config, resumed)
        stack.pop_all()
        return SessionContext(ports, settings, recorder, publisher, session_tools(ports)), recorder


def session_config(
    settings: "Settings", sandbox: "SandboxFacts", own_rules: "tuple[StoredRule, ...]", *, headless: bool
) -> "SessionConfigured":
    """Return the settings that a session opened now goes by; `headless`: nobody can be asked in it."""
    from agent_workbench.core.events import SessionConfigured
    from agent_workbench.core.settings import ApprovalMode
    from agent_workbench.core.settings.extensions import configured

    return SessionConfigured(
        approvals=settings.approvals,
        limits=settings.limits,
        tools=settings.tools_allowed,
        test_command=settings.test_command,
        lint_command=settings.lint_command,
        answer_tokens=settings.model.answer_tokens,
        answer_seconds=settings.model.answer_seconds,
        sandbox=sandbox,
        headless=headless,
        own_rules=own_rules,
        review_context=settings.ui.review_context and not headless,
        mode=ApprovalMode.ASK if headless else settings.ui.mode,
        hooks=tuple(configured(name, hook) for name, hook in settings.hooks),
    )


async def _withdraw(repo: RepoContext, settings: "Settings", names: "Sequence[str]", reason: str) -> "Sequence[str]":
    with needed_subject():
        from agent_workbench.subjects.queue.wiring import withdraw_tasks

    return await withdraw_tasks(repo, settings, names, reason)


async def _label(query: "SessionQuery", tasks: "Plans", plan: "Plans") -> str:
    """Return the label of a session: of a queued task the path of its file. Raises `PlanError` for its id."""
    if not is_queued(tasks.path):
        return query.label
    if not query.name:
        with needed_subject():
            from agent_workbench.subjects.queue.wiring import check_unplanned

        await check_unplanned((await tasks.read()).tasks, plan)
    return tasks.path


def _recorder(opened: "HeldSession", publisher: "UpdatePublisher", events: EventFeed, *, headless: bool) -> "Recorder":
    """Return the recorder behind the events of the journal; every state is published, every event handed on."""
    from agent_workbench.core.fold import fold_all
    from agent_workbench.engine.recorder import Recorder

    state = fold_all(opened.events)
    # Modules and recorded events are kept to the end. A full collection that goes through them blocks the screen, for
    # 0.1 s while a model streams and 0.5 s after a long journal was read. Where there is no screen, the next session
    # would keep all that the one before it used.
    if not headless:
        gc.freeze()
    publisher.show_state(state)
    recorder = Recorder(opened.journal, system_clock(), state, publisher.show_state)
    recorder.listeners.append(events.add)
    return recorder


async def replayed_session(recorded: "Sequence[Recorded]", *, at: int = 0) -> LocalSession:
    """Return a replay that begins at event `at`."""
    from agent_workbench.engine.playback import Playback
    from agent_workbench.engine.runtime.publisher import UpdatePublisher

    updates, events = UpdateFeed(), EventFeed()
    playback = await asyncio.to_thread(Playback, recorded, UpdatePublisher(updates.publish), at=at)

    async def read() -> "Sequence[Recorded]":
        return recorded

    events.begin(len(recorded) - 1, read)
    events.end()
    return LocalSession(playback, updates, events)


def check_confined(sandbox: SandboxFacts, invocation: Invocation, settings: "Settings") -> None:
    """Raise `SandboxError` if no sandbox holds and neither flag nor setting says to go on without one."""
    if not (sandbox.holds or invocation.unconfined or settings.sandbox.unconfined):
        raise SandboxError(f"nobody watches and nothing confines commands here: {sandbox.why}", advice=UNCONFINED)


async def check_run_start(repo: "RepoContext", settings: "Settings") -> None:
    """Raise `SandboxError` where no unattended task may run; `settings` are those with trust."""
    shell = await asyncio.to_thread(command_shell, repo.root, settings, repo.invocation)
    check_confined(await shell.observe(), repo.invocation, settings)


async def check_worker_start(repo: "RepoContext", settings: "Settings", jobs: int = 1) -> SandboxFacts:
    """Return the confinement of a worker's commands; `settings` are those with trust.

    Raises `SandboxError` where a worker must not start: without a sandbox and without being told so, or where its
    commands run as its own user while it holds credentials, which they could read in `/proc`. Where they run as another
    user, also for more `jobs` than one at the same time: that user could change the files of each of them.
    """
    shell = await asyncio.to_thread(command_shell, repo.root, settings, repo.invocation)
    sandbox = await shell.observe()
    if settings.sandbox.user and not (sandbox.holds or sandbox.kind == "user"):
        raise SandboxError(f"sandbox.user is {settings.sandbox.user}, but {sandbox.why}", advice=UNCONFINED)
    check_confined(sandbox, repo.invocation, settings)
    held = await asyncio.to_thread(held_credentials, settings, repo.invocation) if sandbox.kind == "none" else ()
    if held:
        more = len(held) - MOST_NAMES
        named = ", ".join(held[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        raise SandboxError(
            f"this worker holds credentials that its unconfined commands could read in /proc: {named}",
            advice="make a sandbox work; or start it as root with AGENT_SANDBOX__USER=NAME, another user for commands; "
            "or start it without them (`agent worker pull` as another user holds the forge's token)",
        )
    if sandbox.kind == "user" and jobs > 1:
        raise SandboxError(
            f"{jobs} tasks at the same time would share the user {settings.sandbox.user}, and their files",
            advice="say --jobs 1, and start a further worker with a user of its own",
        )
    return sandbox
