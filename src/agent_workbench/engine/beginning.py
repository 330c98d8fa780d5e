"""The first lines of a session, new or taken up again."""

from agent_workbench.core.events import SessionConfigured, SessionResumed, SessionStarted
from agent_workbench.engine.recorder import Recorder


async def begin(recorder: Recorder, header: SessionStarted, config: SessionConfigured, torn_bytes: int) -> None:
    """Record the header of a new session or the resumption of an old one, and what it is set to do."""
    if recorder.state.seq < 0:
        await recorder.record(header)
    else:
        await recorder.record(SessionResumed(torn_bytes))
    await recorder.record(config)
