"""Opening of a session: questions about set-up and trust, its first events, and the arrival from another machine."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.events import SessionConfigured, SessionResumed, SessionStarted
from agent_workbench.core.fold import fold_all
from agent_workbench.core.intents import AnswerQuestion, Intent, Leave
from agent_workbench.core.live import PreflightQuestion
from agent_workbench.core.local_models import PULL_ADVICE
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.ports.repo_files import Memory, Setup, Trust
from agent_workbench.core.ports.stores import HeldSession
from agent_workbench.core.ports.workspace import Workspaces
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.repo_setup import proposal_lines
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.intent_queue import IntentQueue
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.runtime.tool_context import Ports
from agent_workbench.engine.summary_request import COMPACT_TOOL
from agent_workbench.engine.tools.registry import ToolRegistry, builtin_tools

INIT = "init"
MODEL = "model"
TRUST = "trust"
NEW_TO_GIT = "git shows these files as new: commit them to share them, or `agent init --private` keeps them to yourself"
NOT_SET_UP = "nothing was written; `agent init` sets a repo up"


class OpenedSession(Protocol):
    """A session that is open and waits to be run."""

    async def run(self) -> SessionEnd:
        """Live until the user leaves."""


class Repo(Protocol):
    """The repository that a session is opened in."""

    @property
    def setup(self) -> Setup:
        """The files that a repository needs before it can be worked in."""

    async def trust(self) -> Trust:
        """Read what the repo would run, and whether it is trusted."""

    async def open(self, publisher: UpdatePublisher, intents: IntentQueue, *, trusted: bool) -> OpenedSession:
        """Open the session that takes `intents`; without trust, no setting that runs something counts."""


class Preflight:
    """An attended session from its first question on: it asks, opens the session, and runs it."""

    def __init__(self, find_repo: Callable[[], Awaitable[Repo]], publisher: UpdatePublisher) -> None:
        self._find_repo = find_repo
        self._publisher = publisher
        self._answers: asyncio.Queue[AnswerQuestion | Leave] = asyncio.Queue()
        self._question: PreflightQuestion | None = None
        self._opening = False
        self._intents = IntentQueue(self._answer)
        self.submit = self._intents.submit

    def _answer(self, intent: Intent) -> Outcome | None:
        """Take the answer to the question that is asked, or the wish to leave; None for an intent of the session."""
        if isinstance(intent, Leave):
            self._answers.put_nowait(intent)
            return Accepted()
        if self._opening:  # its state may be on the screen already, so the intent is meant for it
            return None
        if not isinstance(intent, AnswerQuestion):
            return Refused("the session is not open yet")
        if self._question is None or self._question.key != intent.question:
            return Refused("that is not asked any more")
        self._question = None
        self._answers.put_nowait(intent)
        return Accepted()

    async def run(self) -> SessionEnd:
        """Ask, open the session and run it; publish and raise the `WorkbenchError` that prevents it."""
        session = None
        try:
            session = await self._open()
        except WorkbenchError as error:
            self._publisher.end(error_text(error))
            raise
        except BaseException:
            self._publisher.end("the workbench could not be opened")
            raise
        finally:
            if session is None:
                self._intents.close()
        if session is None:
            return SessionEnd()
        self._intents.answer_at_once = lambda _: None
        while not self._answers.empty():  # the user may have left while the session was being opened
            self.submit(self._answers.get_nowait())
        return await session.run()

    async def _open(self) -> OpenedSession | None:
        """Return the session, None if the user left at a question."""
        self._publisher.show_activity("looking at the repo")
        repo = await self._find_repo()
        if (left := await self._set_up(repo.setup)) is not None:
            self._publisher.end(left)
            return None
        trusted = await self._is_trusted(await repo.trust())
        if trusted is None:
            self._publisher.end("")
            return None
        self._publisher.show_activity("opening the session")
        self._opening = True
        return await repo.open(self._publisher, self._intents, trusted=trusted)

    async def _set_up(self, setup: Setup) -> str | None:
        """Ask whether to write what is missing, and to use the model that was found; return the farewell of who left.

        A repository that is set up is worked in without a model, too: an answer of "no" leaves the model out.
        """
        proposal = await setup.proposal()
        if not proposal.is_question:
            if proposal.named_url and proposal.choice is not None:
                keep = f"agent init --url {shlex.quote(proposal.named_url)}"
                self._publisher.notify(f"to keep this server for all your repos: {keep}")
            elif proposal.models is not None and not proposal.named_url:
                self._publisher.notify(f"no model: {PULL_ADVICE}")
            return None
        lines = proposal_lines(proposal)
        if proposal.files:
            question = PreflightQuestion(INIT, "Set this repo up for the workbench?", lines, "write them", "leave")
        else:
            question = PreflightQuestion(MODEL, "Use this model?", lines, "use it", "go on without")
        answer = await self._ask(question)
        if answer:
            await setup.write(proposal, proposal.choice)
            if proposal.files:
                self._publisher.notify(NEW_TO_GIT)
            return None
        if proposal.files:
            return NOT_SET_UP
        return "" if answer is None else None

    async def _is_trusted(self, trust: Trust) -> bool | None:
        """Return the user's answer, None if they left instead."""
        lines = await trust.question()
        if not lines:
            return True
        question = PreflightQuestion(
            TRUST, "Trust what this repo would run?", lines, "trust exactly this", "go on without it"
        )
        answer = await self._ask(question)
        if answer:
            await trust.accept()
        return answer

    async def _ask(self, question: PreflightQuestion) -> bool | None:
        self._question = question
        self._publisher.show_question(question)
        answer = await self._answers.get()
        self._question = None
        self._publisher.show_question(None)
        return answer.yes if isinstance(answer, AnswerQuestion) else None


def session_tools(ports: Ports) -> ToolRegistry:
    """Return the tools of a new session; no source is asked yet."""
    return ToolRegistry(ports.tool_sources, ports.schemas, own=(COMPACT_TOOL,))


async def begin(recorder: Recorder, header: SessionStarted, config: SessionConfigured, resumed: SessionResumed) -> None:
    """Record the header of a new session, or that an old one is `resumed`, and its settings."""
    await asyncio.to_thread(builtin_tools)  # imports modules, which blocks
    if recorder.state.seq < 0:
        await recorder.record(header)
    else:
        await recorder.record(resumed)
    await recorder.record(config)


async def arrive(
    opened: HeldSession, state: SessionState, memory: Memory, workspaces: Workspaces, root: str, links: Sequence[str]
) -> SessionResumed:
    """Return the event of a session's resumption here; one that was away gets its notes and its worktree first.

    Changes of the notes that the user made here meanwhile are merged. Raises `WorkspaceError`, `StorageError`.
    """
    resumed = SessionResumed(opened.torn_bytes)
    if opened.away_since is None:
        return resumed
    repo = root if root != state.repo else ""
    run = state.run
    if run is None or not state.unfinished:
        return SessionResumed(opened.torn_bytes, repo, arrived=True)
    known = await asyncio.to_thread(fold_all, opened.events[: opened.away_since + 1])
    before, now = known.scratchpad(run.task), state.scratchpad(run.task)
    if before != now:
        await memory.write_scratchpad(run.task, before, now, run.fork)
    facts = run.workspace
    workspace = await workspaces.open(WorkspaceRequest(state.session, run.task, facts.branch, facts.base, tuple(links)))
    await workspace.release(keep=True)
    path = workspace.facts.path
    return SessionResumed(opened.torn_bytes, repo, path if path != facts.path else "", arrived=True)
