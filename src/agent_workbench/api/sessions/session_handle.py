"""Handle of a session in this process: its driver, its feeds, and the task it lives in."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from agent_workbench.api.sessions.event_feed import EventFeed, UpdateFeed
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import Intent
from agent_workbench.core.outcomes import Outcome
from agent_workbench.core.session_request import SessionEnd


class Driver(Protocol):
    """The code that runs a session: attended, unattended, or a playback."""

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Queue an intent and return its outcome."""

    async def run(self) -> SessionEnd:
        """Run to the end; raise the `WorkbenchError` that kept the session from being opened."""


class LocalSession:
    """Implements `core.ports.session_host.SessionHandle`."""

    def __init__(
        self,
        driver: Driver,
        updates: UpdateFeed,
        events: EventFeed,
        tell_parked: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """Handle the session of `driver`; `tell_parked` gets the reason if it ends because it waits for a person."""
        self._driver: Driver = driver
        self._tell_parked = tell_parked
        self._updates = updates
        self._events = events
        self._ended = asyncio.Event()
        self._end: SessionEnd | None = None
        self._failure: BaseException | None = None
        self.submit = driver.submit
        self.events = events.events
        self.live = updates.updates

    @property
    def session(self) -> SessionId:
        """The session's name, `NO_SESSION` until its journal is open."""
        return self._updates.newest.state.session

    @property
    def opened_seq(self) -> int:
        """Number of the last event that was recorded before the session was opened here (-1: it is new)."""
        return self._events.opened_seq

    async def wait(self) -> SessionEnd:
        """Wait for the end and return it; raise the error that prevented its opening or ended it."""
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure
        return self._end or SessionEnd()

    async def run(self) -> None:
        """Run the session to its end. The host awaits this; a defect is raised here too."""
        telling = in_background(self._updates.tell_progress())
        try:
            self._end = await self._driver.run()
            if self._tell_parked is not None and self._end.exit_code is ExitCode.PARKED:
                await self._tell_parked(self._end.reason)
        except WorkbenchError as error:
            self._failure = error
        except BaseException as defect:
            self._failure = defect
            raise
        finally:
            telling.cancel()
            self._events.end()
            self._ended.set()

    @property
    def failure(self) -> BaseException | None:
        """The error that prevented the session from opening or ended it, None if there was none."""
        return self._failure
