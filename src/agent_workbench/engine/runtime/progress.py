"""Progress of what a session is doing, published while it goes on: elapsed time, output, the index."""

import asyncio
from collections.abc import Callable

from agent_workbench.core.database_report import Backlog
from agent_workbench.core.ports.code_search import Retriever
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.engine.runtime.publisher import UpdatePublisher

TICK_SECONDS = 1.0
TAIL_CHARS = 4_000
BUSY_SECONDS = 0.25
# Vectors follow the files, and other sessions may drop them.
COMPLETE_SECONDS = 2.0


async def show_time(publisher: UpdatePublisher, clock: Clock, backlog: Callable[[], Backlog]) -> None:
    """Publish how long the activity takes, and how far copies are behind, until cancelled."""
    before = clock.monotonic_seconds()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        now = clock.monotonic_seconds()
        publisher.pass_time(now - before)
        publisher.show_backlog(backlog())
        before = now


class OutputTail:
    """Takes the output of one tool call; `text` is its end so far."""

    def __init__(self, publisher: UpdatePublisher, clock: Clock) -> None:
        self.text = ""
        self._publisher = publisher
        self._clock = clock
        self._started = clock.monotonic_seconds()

    def __call__(self, text: str) -> None:
        """Take the next piece of output."""
        self.text = (self.text + text)[-TAIL_CHARS:]
        seconds = self._clock.monotonic_seconds() - self._started
        self._publisher.show_output(self.text, seconds)


async def show_index(publisher: UpdatePublisher, retriever: Retriever, sources: Sources) -> None:
    """Publish the status of the index until cancelled, then that there is none."""
    try:
        while True:
            status = retriever.status(sources)
            publisher.show_index(status)
            await asyncio.sleep(COMPLETE_SECONDS if status.complete and status.files else BUSY_SECONDS)
    finally:
        publisher.show_index(None)
