"""Sessions in which nothing can be changed: recordings, and followed sessions, whose proposals alone are decided."""

from agent_workbench.core.live import Live

REPLAYED = "this is a recording; nothing in it can be changed"
FOLLOWED = "this session is only followed: approve, reject or skip what waits, or open it from the inbox to change more"


def read_only_reason(live: Live) -> str:
    """Return why nothing in the session can be changed here, empty if it can."""
    if live.replay is not None:
        return REPLAYED
    return FOLLOWED if live.followed is not None else ""
