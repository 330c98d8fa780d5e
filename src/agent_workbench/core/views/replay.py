"""The replay bar: where in a recorded session we stand."""

import re
from dataclasses import dataclass

from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state import SessionState


@dataclass(frozen=True, slots=True)
class ReplayView:
    """Event `position` of `count` (both from 1), what it is, when it was, and whether the replay plays."""

    position: int
    count: int
    event: str
    time: str
    playing: bool

    @property
    def share(self) -> float:
        """How far along it is, from 0.0 to 1.0."""
        return self.position / self.count if self.count else 0.0


def view_replay(update: SessionUpdate) -> ReplayView | None:
    """Return what the replay bar shows, None when this is no replay."""
    place = update.live.replay
    if place is None:
        return None
    time = update.state.time
    return ReplayView(
        position=place.seq + 1,
        count=place.last_seq + 1,
        event=_event(update.state),
        time=time[11:19],
        playing=place.playing,
    )


def _event(state: SessionState) -> str:
    """Return the name of the newest event in words."""
    history = state.run.history if state.run is not None else state.opening
    if not history:
        return "nothing yet"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(history[-1].event).__name__).lower()
