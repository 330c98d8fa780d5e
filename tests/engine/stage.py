"""A stage for the engine: a real repo, worktree, journal and scratchpad, a model that says what it is told to."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.adapters.memory import ScratchpadFolder
from agent_workbench.adapters.schema_checker import SchemaChecker
from agent_workbench.api.sessions.session_handle import UpdateFeed
from agent_workbench.bootstrap.user_extensions import custom_prompts
from agent_workbench.core.approval_rules import StoredRule
from agent_workbench.core.events import Event, Recorded, SessionConfigured, SessionResumed, SessionStarted
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.plan import Plan, Task
from agent_workbench.core.ports.extensions import Hooks
from agent_workbench.core.ports.model import Model
from agent_workbench.core.ports.search import Knowledge, Retriever
from agent_workbench.core.ports.tools import LanguageServers, ToolSource
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.settings import DEFAULT_TOOLS, Approval, Approvals, Settings
from agent_workbench.core.settings.extensions import configured
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import Ports
from agent_workbench.engine.session.preflight import begin, session_tools
from tests.adapters.git.user import User, make_repo
from tests.fakes.hooks import ScriptedHooks
from tests.fakes.ports import (
    GivenChunks,
    GivenSkills,
    HeldPlan,
    HeldRules,
    OneModel,
    PlainShell,
    Saying,
    SayingModel,
    TickingClock,
)
from tests.fakes.stores import MemoryInbox, MemoryKnowledge

SESSION = SessionId("20260102T030405-abc234")
T1 = TaskId("T-1")
ANSWER = "answer.txt"
ACCEPT = "grep -q right answer.txt"
WRONG_ANSWER = {ANSWER: "wrong\n", "README.md": "# Hello\n"}
OPEN = Approvals(
    diff=Approval.AUTO, check=Approval.AUTO, command=Approval.AUTO, commit=Approval.AUTO, merge=Approval.AUTO
)


def task(name: str = "T-1", *, accept: tuple[str, ...] = (ACCEPT,)) -> Task:
    """Return a task whose check wants `right` in `answer.txt`. It has a goal, so the model says when it is done."""
    return Task(TaskId(name), f"Make the answer right ({name})", "The answer is right.", accept_tests=accept)


def call(tool: str, arguments: str = "{}", thought: str = "so it is") -> str:
    """Return a step as a model writes it."""
    return f"Thought: {thought}\nAction: {tool}\n{arguments}"


def diff(before: str, after: str, path: str = ANSWER) -> str:
    """Return a diff that changes the first line of a file of one line."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{before}\n+{after}\n"


def change(before: str, after: str, path: str = ANSWER) -> str:
    """Return the step that makes this change."""
    return call("write_diff", diff(before, after, path))


WRITES_DIFFS = Settings(tools_allowed=tuple(name for name in DEFAULT_TOOLS if name != "rewrite"))
"""Settings of a model that writes diffs: its prompts have the long rules, with their example."""
# One for all tests, so that it checks each schema once.
SCHEMAS = SchemaChecker(os.environ)
FINISH = call("finish", '{"summary": "the answer is right"}')


def reflexion(text: str = "I was wrong") -> str:
    """Return a reflexion as a model writes it."""
    return f"Reflexion: {text}"


class Stage(Struct):
    """Everything of one session; `reopened` gives the same place to the next process."""

    user: User
    sessions: Path
    ports: Ports
    model: SayingModel
    shell: PlainShell
    plan: HeldPlan
    settings: Settings
    headless: bool
    updates: UpdateFeed
    recorder: Recorder
    session: SessionContext

    @property
    def state(self) -> SessionState:
        return self.recorder.state

    @property
    def events(self) -> list[Event]:
        """What the journal on the disk holds."""
        return [each.event for each in self.journal()]

    def journal(self) -> tuple[Recorded, ...]:
        """Read the journal back."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(read_journal, self.sessions / (self.state.session or SESSION)).result().events

    def read_back(self) -> SessionState:
        """Fold the journal on the disk."""
        return fold_all(self.journal())

    def git(self, *arguments: str) -> str:
        return self.user.git(*arguments)


@asynccontextmanager
async def a_stage(
    folder: Path,
    sayings: Iterable[Saying] = (),
    *,
    tasks: tuple[Task, ...] = (),
    settings: Settings | None = None,
    approvals: Approvals | None = None,
    headless: bool = False,
    holds: bool = True,
    secrets: Mapping[str, str] | None = None,
    retriever: Retriever | None = None,
    skills: Mapping[str, str] | None = None,
    model: Model | None = None,
    start: Mapping[str, str] = WRONG_ANSWER,
    tool_sources: tuple[ToolSource, ...] = (),
    knowledge: Knowledge | None = None,
    past_speed: float = 0.0,
    hooks: Hooks | None = None,
    language_servers: LanguageServers | None = None,
    rules: tuple[StoredRule, ...] = (),
) -> AsyncIterator[Stage]:
    """Open a session over a new repo of the files `start` in `folder`; it is closed again unless something else did."""
    user = make_repo(folder / "repo", start)
    wanted = settings or Settings()
    wanted = replace(wanted, approvals=approvals or replace(wanted.approvals, check=_each_time(wanted.approvals.check)))
    saying = SayingModel(sayings)
    shell, plan = PlainShell(holds=holds), HeldPlan(Plan(tasks or (task(),)))

    redactor = Redactor((secrets or {}).items())

    async def environment_for(_: str) -> Mapping[str, str]:
        # Bytecode is told apart by seconds and sizes: two changes within a second would be one to a test run.
        return {"PYTHONDONTWRITEBYTECODE": "1"}

    async def earlier_speed(_: ModelFacts) -> float:
        return past_speed

    ports = Ports(
        workspaces=Repository(user.root, folder / "state"),
        shell=shell,
        retriever=retriever or GivenChunks(),
        plans=plan,
        memory=ScratchpadFolder(user.root),
        knowledge=knowledge or MemoryKnowledge(),
        skills=GivenSkills(skills or {}),
        prompts=custom_prompts(user.root, "memory", lambda _: True),
        rules=HeldRules(rules),
        hooks=hooks or ScriptedHooks(),
        model=model or saying,
        endpoints=OneModel(model or saying),
        clock=TickingClock(),
        inbox=MemoryInbox(),
        environment_for=environment_for,
        redacted=redactor.redact,
        past_speed=earlier_speed,
        schemas=SCHEMAS,
        tool_sources=tool_sources,
        language_servers=language_servers,
    )
    writer = await asyncio.to_thread(JournalWriter.open_new, folder / "sessions" / SESSION, redactor)
    stage = await _opened(
        user, folder / "sessions", ports, saying, shell, plan, wanted, headless, writer, SessionState()
    )
    try:
        yield stage
    finally:
        await stage.session.close()
        await stage.recorder.close()


def hold_worktrees(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let the making of a worktree never end, until `open` is set back; the event tells that it has begun."""
    making = asyncio.Event()

    async def for_ever(_: WorkspaceRequest) -> Workspace:
        making.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(stage.ports.workspaces, "open", for_ever)
    return making


def _each_time(check: Approval) -> Approval:
    """Return `ask` instead of `once`: a scenario names each of its gates, unless it passes its own approvals."""
    return Approval.ASK if check is Approval.ONCE else check


@asynccontextmanager
async def reopened(
    stage: Stage, sayings: Iterable[Saying] = (), *, model: Model | None = None, session: SessionId = SESSION
) -> AsyncIterator[Stage]:
    """Open the session, or a fork of it, as the next process would, from its journal; the first must have let go."""
    opened = await asyncio.to_thread(JournalWriter.open_existing, stage.sessions / session, Redactor({}))
    saying = SayingModel(sayings)
    endpoints = OneModel(model or saying)
    ports = replace(stage.ports, model=model or saying, endpoints=endpoints, retriever=GivenChunks())
    again = await _opened(
        stage.user,
        stage.sessions,
        ports,
        saying,
        stage.shell,
        stage.plan,
        stage.settings,
        stage.headless,
        opened.writer,
        fold_all(opened.events),
    )
    try:
        yield again
    finally:
        await again.session.close()
        await again.recorder.close()


async def _opened(  # noqa: PLR0917 - one caller for each way in
    user: User,
    sessions: Path,
    ports: Ports,
    model: SayingModel,
    shell: PlainShell,
    plan: HeldPlan,
    settings: Settings,
    headless: bool,
    writer: JournalWriter,
    state: SessionState,
) -> Stage:
    updates = UpdateFeed()
    publisher = UpdatePublisher(updates.publish, state)
    recorder = Recorder(writer, ports.clock, state, publisher.show_state)
    config = SessionConfigured(
        approvals=settings.approvals,
        limits=settings.limits,
        tools=settings.tools_allowed,
        test_command=settings.test_command,
        lint_command=settings.lint_command,
        answer_tokens=settings.model.answer_tokens,
        answer_seconds=settings.model.answer_seconds,
        sandbox=await shell.observe(),
        headless=headless,
        own_rules=await ports.rules.kept(),
        hooks=tuple(configured(name, hook) for name, hook in settings.hooks),
    )
    await begin(recorder, SessionStarted(SESSION, str(user.root), user.head(), "0"), config, SessionResumed())
    session = SessionContext(ports, settings, recorder, publisher, session_tools(ports))
    return Stage(user, sessions, ports, model, shell, plan, settings, headless, updates, recorder, session)


def kinds(events: Iterable[Event]) -> list[str]:
    """Return the names of the events' classes."""
    return [type(event).__name__ for event in events]


def only(events: Iterable[Event], wanted: Callable[[Event], bool]) -> Event:
    """Return the one event of which `wanted` is true."""
    (found,) = [event for event in events if wanted(event)]
    return found
