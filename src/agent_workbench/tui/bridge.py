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
"""Time after a key in which the next one is expected."""
KEY_SECONDS = 0.04
"""Time in which the effect of a key is painted."""
LOOK_SECONDS, MOST_LOOKS = 0.02, 15
MOST_LATE_SECONDS = 0.2


async def carry_updates(
    session: "SessionHandle", paint: Callable[["SessionUpdate"], object], idle_seconds: Callable[[], float]
) -> None:
    """Pass updates to `paint`, at most 25 a second, 10 while text grows, 2 to 6 if keys are pressed too.

    `idle_seconds` returns the time since the last key. The session skips updates that come meanwhile. There are fewer
    if painting delays other work, keys above all.
    """
    loop = asyncio.get_running_loop()
    async for update in session.live():
        grows = not update.ended and (update.live.streaming is not None or update.live.running is not None)
        if grows:
            await _behind_a_key(idle_seconds)
        paint(update)
        if update.ended:
            return
        pause = GROWING_SECONDS if grows else FRAME_SECONDS
        due = loop.time() + pause
        await asyncio.sleep(pause)
        await asyncio.sleep(min(MOST_LATE_SECONDS, loop.time() - due))


async def _behind_a_key(idle_seconds: Callable[[], float]) -> None:
    """While keys are pressed, wait until one has just been painted, if it comes soon: the next one is far then."""
    for _ in range(MOST_LOOKS):
        idle = idle_seconds()
        if idle >= TYPING_SECONDS or KEY_SECONDS <= idle < KEY_SECONDS + 2 * LOOK_SECONDS:
            return
        await asyncio.sleep(LOOK_SECONDS)
