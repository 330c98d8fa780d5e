"""A session that does what a test says: real events, really folded; what the user wanted is kept in `intents`."""

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.history.replay_marks import Marks, marks_of
from agent_workbench.core.intents import Intent, Leave
from agent_workbench.core.live import Live, Recording, ReplayPosition, SessionUpdate
from agent_workbench.core.state.session_state import SessionState


class FakeClock:
    """Time that goes on only when told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> str:
        return "2026-11-20T10:15:00.000000Z"

    def monotonic_seconds(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


class ScriptedSession:
    """Implements `core.ports.Session`."""

    def __init__(self, *events: Event) -> None:
        self.intents: list[Intent] = []
        self.newest = SessionUpdate(SessionState())
        self.ends_when_left = True
        self._news = asyncio.Event()
        self.record(*events)

    def record(self, *events: Event) -> "ScriptedSession":
        """Let these happen."""
        state = self.newest.state
        for event in events:
            seq = state.seq + 1
            time = f"2026-11-20T10:{15 + seq // 60:02}:{seq % 60:02}.000000Z"
            state = fold(state, Recorded(seq, time, event, f"{seq:064x}"))
        return self._publish(replace(self.newest, state=state))

    def live(self, live: Live) -> "ScriptedSession":
        """Let this be the moment."""
        return self._publish(replace(self.newest, live=live))

    def notify(self, notice: str) -> "ScriptedSession":
        """Tell the user something."""
        now = self.newest.live
        return self.live(replace(now, notice=notice, notice_number=now.notice_number + 1))

    def end(self, farewell: str = "") -> "ScriptedSession":
        """End the session."""
        return self._publish(replace(self.newest, ended=True, farewell=farewell))

    def as_replay(self, *, seq: int | None = None, playing: bool = False) -> "ScriptedSession":
        """Show what was recorded as a replay that stands at its end, or at `seq` of a longer one."""
        state = self.newest.state
        runs = (*state.past, state.run) if state.run is not None else state.past
        events = (*state.opening, *(each for run in runs for each in run.history))
        last = state.seq if seq is None else seq
        recording = Recording(events, Marks(last + 1, marks_of(events).places))
        return self.live(Live(replay=ReplayPosition(state.seq, last, playing, 1.0, recording), decidable=False))

    async def submit(self, intent: Intent) -> None:
        self.intents.append(intent)
        if isinstance(intent, Leave) and self.ends_when_left:
            self.end("kept")

    async def updates(self) -> AsyncIterator[SessionUpdate]:
        shown: SessionUpdate | None = None
        while True:
            if self.newest is shown:
                await self._news.wait()
                continue
            shown = self.newest
            yield shown
            if shown.ended:
                return

    def _publish(self, update: SessionUpdate) -> "ScriptedSession":
        self.newest = update
        self._news.set()
        self._news = asyncio.Event()
        return self
