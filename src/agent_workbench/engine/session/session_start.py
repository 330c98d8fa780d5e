"""The first lines of a session, new or taken up again."""

import asyncio

from agent_workbench.core.events import SessionConfigured, SessionResumed, SessionStarted
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.tools import all_tools


async def begin(recorder: Recorder, header: SessionStarted, config: SessionConfigured, torn_bytes: int) -> None:
    """Record the header of a new session or the resumption of an old one, and what it is set to do."""
    await asyncio.to_thread(all_tools)  # they are modules on the disk, and the loop must not wait for it
    if recorder.state.seq < 0:
        await recorder.record(header)
    else:
        await recorder.record(SessionResumed(torn_bytes))
    await recorder.record(config)
