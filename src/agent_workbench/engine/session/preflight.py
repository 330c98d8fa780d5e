"""What stands before a session: a repo that is not set up, or not trusted; asked in the same front end, then gone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from msgspec.structs import replace

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.intents import AnswerQuestion, Intent, Leave
from agent_workbench.core.live import Live, PreflightQuestion, SessionUpdate
from agent_workbench.core.ports.services import Setup, Trust
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.approval.proposals import spoken
from agent_workbench.engine.runtime.publisher import UpdatePublisher

INIT = "init"
TRUST = "trust"


class LiveSessionPort(Protocol):
    """A session with a life of its own."""

    async def submit(self, intent: Intent) -> None:
        """Take an intent."""

    async def run(self) -> None:
        """Live until it is left."""


class PreflightSteps(Protocol):
    """What can be asked before the session, made ready in the background so that the first screen need not wait."""

    @property
    def setup(self) -> Setup:
        """Whether the repo is set up."""

    async def trust(self) -> Trust:
        """Read what the repo would run, and whether it is trusted."""

    async def open(self, publisher: UpdatePublisher, *, trusted: bool) -> LiveSessionPort:
        """Open the session; one that is not trusted obeys nothing of the repo."""


class Preflight:
    """Implements `core.ports.Session`: asks what has to be asked, then is the session itself."""

    def __init__(self, find_preflight_steps: Callable[[], Awaitable[PreflightSteps]]) -> None:
        self._find_doors = find_preflight_steps
        self._publisher = UpdatePublisher(SessionState())
        self._answers: asyncio.Queue[AnswerQuestion | Leave] = asyncio.Queue()
        self._session: LiveSessionPort | None = None
        self.failure: WorkbenchError | None = None

    async def submit(self, intent: Intent) -> None:
        """Answer a question, leave, or pass the intent on to the session that stands behind."""
        if self._session is not None:
            await self._session.submit(intent)
        elif isinstance(intent, AnswerQuestion | Leave):
            await self._answers.put(intent)

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update whenever there is one."""
        return self._publisher.updates()

    async def run(self) -> None:
        """Ask, open the session, and live its life. What makes that impossible is kept in `failure` and ends it."""
        try:
            self._publisher.show_activity("looking at the repo")
            doors = await self._find_doors()
            if not await self._is_set_up(doors.setup):
                self._publisher.end("nothing was written; `agent init` sets a repo up")
                return
            trusted = await self._is_trusted(await doors.trust())
            if trusted is None:
                self._publisher.end("")
                return
            self._publisher.show_activity("opening the session")
            session = await doors.open(self._publisher, trusted=trusted)
        except WorkbenchError as error:
            self.failure = error
            self._publisher.end(spoken(error))
            return
        except BaseException:
            self._publisher.end("the workbench could not be opened")
            raise
        self._session = session
        while not self._answers.empty():  # what came between the last question and the session
            await session.submit(self._answers.get_nowait())
        await session.run()

    async def _is_set_up(self, setup: Setup) -> bool:
        missing = await setup.missing()
        if not missing:
            return True
        lines = ("It will write these files, and change nothing that is there:", "", *(f"  {path}" for path in missing))
        question = PreflightQuestion(INIT, "Set this repo up for the workbench?", lines, "write them", "leave")
        if await self._ask(question) is not True:
            return False
        await setup.write()
        return True

    async def _is_trusted(self, trust: Trust) -> bool | None:
        """Return the user's answer, None when they left instead."""
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
        self._show(Live(question=question))
        while True:
            answer = await self._answers.get()
            if isinstance(answer, Leave):
                return None
            if answer.question == question.key:
                self._show(replace(self._publisher.live, question=None))
                return answer.yes

    def _show(self, live: Live) -> None:
        self._publisher.show_live(live)
