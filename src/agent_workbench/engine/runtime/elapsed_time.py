"""Elapsed time of what a session is doing, published once a second."""

import asyncio

from agent_workbench.core.ports.machine import Clock
from agent_workbench.engine.runtime.publisher import UpdatePublisher

TICK_SECONDS = 1.0


async def show_time(publisher: UpdatePublisher, clock: Clock) -> None:
    """Publish how long the activity takes until cancelled."""
    before = clock.monotonic_seconds()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        now = clock.monotonic_seconds()
        publisher.pass_time(now - before)
        before = now
