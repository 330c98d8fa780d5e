"""Feed of a session's events: readers get all of them in order, first from the journal, then as they are recorded."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded

KEPT_EVENTS = 200
"""Events kept in memory for readers that follow closely; others read the journal."""

ReadJournal = Callable[[], Awaitable[Sequence[Recorded]]]


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

    async def events(self, after_seq: int) -> AsyncGenerator[Recorded]:
        """Yield every event behind `after_seq`; raise `JournalError` where the journal lacks one."""
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
