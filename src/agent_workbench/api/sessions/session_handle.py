"""Handle of a session in this process: its driver, the feeds of its events and updates, and what it waits for."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, JournalError, WorkbenchError
from agent_workbench.core.events import Recorded
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Outcome
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.gate.gate_bar import progress_text

KEPT_EVENTS = 200
"""Events kept in memory for readers that follow closely; others read the journal."""

ReadJournal = Callable[[], Awaitable[Sequence[Recorded]]]

TELL_SECONDS = 10.0
"""Time between two lines of progress: a task of a small model on a slow machine takes minutes."""


class EventFeed:
    """Wakes readers when an event is recorded. Memory is bounded: a reader that falls behind reads the journal."""

    def __init__(self) -> None:
        self._recent: deque[Recorded] = deque(maxlen=KEPT_EVENTS)
        self._read_journal: ReadJournal | None = None
        self._last_seq = -1
        self.opened_seq = -1
        self._ended = False
        self._news = asyncio.Event()

    def begin(self, last_seq: int, read_journal: ReadJournal) -> None:
        """Open the feed of a journal whose last event has the number `last_seq` (-1: it has none yet)."""
        self._last_seq = self.opened_seq = last_seq
        self._read_journal = read_journal
        self._wake()

    def add(self, recorded: Recorded) -> None:
        """Hand on an event that is in the journal now."""
        self._recent.append(recorded)
        self._last_seq = recorded.seq
        self._wake()

    def end(self) -> None:
        """Let the readers end after the last event."""
        self._ended = True
        self._wake()

    async def events(self, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield every event behind `after_seq` in order, those that are recorded later too.

        Raises `JournalError` where the journal lacks one.
        """
        seq = after_seq
        while True:
            news = self._news
            if seq < self._last_seq:
                for recorded in await self._behind(seq):
                    seq = recorded.seq
                    yield recorded
            elif self._ended:
                return
            else:
                await news.wait()

    async def _behind(self, seq: int) -> Sequence[Recorded]:
        """Return events behind `seq`, at least the next one."""
        if self._recent and self._recent[0].seq <= seq + 1:
            return [each for each in self._recent if each.seq > seq]
        last = self._last_seq
        found = await self._read_journal() if self._read_journal is not None else ()
        behind = [each for each in found if seq < each.seq <= last]
        if not behind:
            raise JournalError(f"the journal has no event {seq + 1}, though event {last} was recorded")
        return behind

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class UpdateFeed:
    """Holds the newest update and wakes the readers; `say` is told each notice of a session that nobody watches."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.say = say
        self._told = 0
        self.newest = SessionUpdate(SessionState())
        self._number = 0
        self._news = asyncio.Event()

    def publish(self, update: SessionUpdate) -> None:
        """Make this the newest update."""
        self.newest = update
        self._number += 1
        self._news.set()
        self._news = asyncio.Event()
        for notice in update.live.notices if self.say is not None else ():
            if notice.number > self._told and self.say is not None:
                self._told = notice.number
                self.say(notice.text)

    async def updates(self) -> AsyncGenerator[SessionUpdate]:
        """Yield the newest update, then each newer one; end after the last."""
        seen = -1
        while True:
            if seen != self._number:
                seen, update = self._number, self.newest
                yield update
                if update.ended:
                    return
            else:
                await self._news.wait()

    async def tell_progress(self, seconds: float = TELL_SECONDS) -> None:
        """Say every `seconds` what the session does and how far it is, until cancelled; nothing while it waits."""
        while self.say is not None:
            await asyncio.sleep(seconds)
            if text := progress_text(self.newest):
                run = self.newest.state.run
                self.say(f"{run.task}: {text}" if run is not None else text)


class Awaited(StrEnum):
    """Input of a person without which the session does not continue."""

    NOTHING = "nothing"
    """The session works."""
    WORDS = "words"
    """Nothing is at work: a task, or a message of a chat."""
    DECISION = "decision"
    RETRY = "retry"
    """Something outside failed."""
    RESUMPTION = "resumption"
    """The task is paused."""


class Wait(Struct, frozen=True):
    """Awaited input; for a decision also the `proposal` that no rule and no hook decides."""

    awaited: Awaited
    proposal: Proposal | None = None


def wait_of(state: SessionState) -> Wait:
    """Return what a session in this state waits for."""
    from agent_workbench.engine.flow import AwaitGo, AwaitRetry, Decide, Idle, next_move
    from agent_workbench.engine.policy import ruling  # engine and adapters are loaded by the calls

    match next_move(state):
        case Idle():
            return Wait(Awaited.WORDS)
        case AwaitRetry():
            return Wait(Awaited.RETRY)
        case AwaitGo():
            return Wait(Awaited.RESUMPTION)
        case Decide(proposal=proposal) if ruling(state, proposal) is None:
            return Wait(Awaited.DECISION, proposal)
        case _:
            return Wait(Awaited.NOTHING)


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
