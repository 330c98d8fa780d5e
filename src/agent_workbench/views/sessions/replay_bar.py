"""The replay bar: the position in a recorded session."""

import re

from msgspec import Struct

from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.history.replay_marks import Marks
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line


class ReplayView(Struct, frozen=True):
    """Event `seq` of `count` (from 0): its line and time, and the state of the playback.

    `marks` are those of the whole recording.
    """

    seq: int
    count: int
    event: str
    time: str
    playing: bool
    speed: float
    marks: Marks


def view_replay(update: SessionUpdate) -> ReplayView | None:
    """Return the replay bar, None if this is no replay."""
    place = update.live.replay
    if place is None:
        return None
    return ReplayView(
        seq=place.seq,
        count=place.last_seq + 1,
        event=_event(update.state),
        time=update.state.time[11:19],
        playing=place.playing,
        speed=place.speed,
        marks=place.recording.marks,
    )


def _event(state: SessionState) -> str:
    """Return a line about the newest event: its log line, or its name in words."""
    history = state.run.history if state.run is not None else state.opening
    if not history:
        return "nothing yet"
    event = history[-1].event
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(event).__name__).lower()
    return sanitize_line(log_line(event)) or name
