"""Feed of a session's updates for any number of readers; a slow reader gets the newest one and misses others."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.gate.gate_bar import progress_text

TELL_SECONDS = 10.0
"""Time between two lines of progress: a task of a small model on a slow machine takes minutes."""


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
