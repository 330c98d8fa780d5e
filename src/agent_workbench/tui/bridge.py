"""Between a session and the screen: updates are read as they come, painted a few times a second, the newest wins."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.ports.session_host import SessionHandle

FRAME_SECONDS = 0.04
GROWING_SECONDS = 0.1
"""What grows at its end moves a whole pane, which takes a frame to paint: in between there has to be room for keys."""
MOST_LATE_SECONDS = 0.2


async def carry_updates(session: "SessionHandle", paint: Callable[["SessionUpdate"], object]) -> None:
    """Hand each update to `paint`, at most 25 a second, 10 while text streams or a command prints.

    Those that come meanwhile are passed over by the session. Where painting holds up what else is to be done, keys
    above all, there are fewer.
    """
    loop = asyncio.get_running_loop()
    async for update in session.live():
        paint(update)
        if update.ended:
            return
        grows = update.live.streaming is not None or update.live.running is not None
        pause = GROWING_SECONDS if grows else FRAME_SECONDS
        due = loop.time() + pause
        await asyncio.sleep(pause)
        await asyncio.sleep(min(MOST_LATE_SECONDS, loop.time() - due))
