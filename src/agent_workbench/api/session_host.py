"""The sessions of one window: each begun when it is asked for, all living side by side."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.records import replay_session
from agent_workbench.api.runs import terminal_session
from agent_workbench.bootstrap.shared_resources import SharedResources
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.invocation import Place

if TYPE_CHECKING:  # what a session is made of is loaded behind the first frame
    from agent_workbench.core.history.summaries import Onward
    from agent_workbench.core.ports.services import Session
    from agent_workbench.engine.session.preflight import Preflight


class Lives:
    """The sessions of one window that live; each begins to when the window `stands`, which who shows them says."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.stands = asyncio.Event()
        self._house = SharedResources()
        self._failures: list[WorkbenchError | None] = []
        self._living: set[asyncio.Task[None]] = set()

    def begin(self, place: Place) -> "Session":
        """Return the session that `place` asks for."""
        session = terminal_session(place, self._house)
        self._living.add(asyncio.create_task(self._live(session)))
        return session

    async def open(self, onward: "Onward") -> "Session":
        """Return a session to be shown beside the others; raise `WorkbenchError` where there is no such recording."""
        # What was asked for once, a new session or the welcome, is not asked for again.
        place = replace(self.place, session=onward.session, fresh=not onward.session)
        if not onward.replayed:
            return self.begin(place)
        return await replay_session(place)

    @property
    def any(self) -> bool:
        """Whether a session lives."""
        return any(not life.done() for life in self._living)

    async def ended(self) -> None:
        """Return when no session lives any more; raise what a defect of the workbench raised in one."""
        while self.any:
            await asyncio.wait(self._living)
        for life in self._living:
            life.result()

    def check(self) -> None:
        """Raise what kept the sessions from being opened, where none was: of one among others was told on screen."""
        first = self._failures[0] if self._failures else None
        if first is not None and None not in self._failures:
            raise first

    async def _live(self, session: "Preflight") -> None:
        """Let a session live when the screen stands: loading the adapters before would hold the first screen up."""
        await self.stands.wait()
        await session.run()
        self._failures.append(session.failure)  # and nothing else of one that was left: a long one is large
