"""Bridge from a session to the screen: its newest update is painted a few times a second."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.ports.session_host import SessionHandle

FRAME_SECONDS = 0.04
GROWING_SECONDS = 0.1
"""Pause while text grows: scrolling repaints a whole pane, and keys need room between frames."""
TYPING_SECONDS = 1.0
"""Time after a key in which the next one is expected: growing text is painted half as often."""
MOST_LATE_SECONDS = 0.2


async def carry_updates(
    session: "SessionHandle", paint: Callable[["SessionUpdate"], object], idle_seconds: Callable[[], float]
) -> None:
    """Pass updates to `paint`, at most 25 a second, 10 while text streams or a command prints, 5 if keys are pressed.

    `idle_seconds` returns the time since the last key. The session skips updates that come meanwhile. There are fewer
    if painting delays other work, keys above all.
    """
    loop = asyncio.get_running_loop()
    async for update in session.live():
        paint(update)
        if update.ended:
            return
        grows = update.live.streaming is not None or update.live.running is not None
        pause = GROWING_SECONDS if grows else FRAME_SECONDS
        if grows and idle_seconds() < TYPING_SECONDS:
            pause += GROWING_SECONDS
        due = loop.time() + pause
        await asyncio.sleep(pause)
        await asyncio.sleep(min(MOST_LATE_SECONDS, loop.time() - due))
