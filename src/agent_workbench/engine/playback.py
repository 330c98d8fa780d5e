"""Playback of a recorded session: the same updates, made from its journal alone. Nothing runs, nothing is asked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agent_workbench.core.background import in_background
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.history.replay_marks import MarkKind, faster, marks_of, slower, wait_seconds
from agent_workbench.core.intents import (
    ChangeReplaySpeed,
    GoToEvent,
    Intent,
    JumpReplay,
    Leave,
    PlayReplay,
    SeekReplay,
    StepReplay,
)
from agent_workbench.core.live import Recording, ReplayPosition
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.state.growing_tuple import FoldSnapshots
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.intent_queue import answered
from agent_workbench.engine.runtime.publisher import UpdatePublisher

Pace = Callable[[str, str, float], float]
"""Seconds from an event to the next, by the times of both and the speed."""


class Playback:
    """A recorded session that intents move through: by steps, by marks, or at the pace it was recorded at."""

    def __init__(
        self, events: Sequence[Recorded], publisher: UpdatePublisher, *, at: int = 0, pace: Pace = wait_seconds
    ) -> None:
        """Open at event `at`, counted from the end if negative; a number out of range means the nearest end."""
        self._events = tuple(events)
        self.recording = Recording(self._events, marks_of(self._events))
        self._pace = pace
        self._snapshots = FoldSnapshots(SessionState(), fold)
        self._snapshots.at(self._events)  # one pass over all events, so that a snapshot is near any position
        self._speed = 1.0
        self._playing: asyncio.Task[None] | None = None
        self._left = asyncio.Event()
        self._publisher = publisher
        self._move_to(at + 1 if at >= 0 else len(self._events) + at + 1)

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Move, play or leave; any other intent is refused."""
        return answered(self._outcome(intent))

    async def run(self) -> SessionEnd:
        """Wait until the user leaves."""
        try:
            await self._left.wait()
        finally:
            self._stop()
            self._publisher.end("")
        return SessionEnd()

    def _outcome(self, intent: Intent) -> Outcome:
        match intent:
            case StepReplay():
                self._go_to(self._position + intent.steps)
            case SeekReplay():
                self._go_to(round(intent.fraction * len(self._events)))
            case GoToEvent():
                self._go_to(intent.seq + 1)
            case JumpReplay():
                return self._jump(intent.kind, forward=intent.forward)
            case PlayReplay():
                self._stop()
                if intent.playing and self._position < len(self._events):
                    self._playing = in_background(self._play())
                self._show()
            case ChangeReplaySpeed():
                self._speed = faster(self._speed) if intent.faster else slower(self._speed)
                self._show()
            case Leave():
                self._stop()
                self._show()
                self._left.set()
            case _:
                return Refused("this is a replay: nothing can be decided here")
        return Accepted()

    async def _play(self) -> None:
        while self._position < len(self._events):
            before, after = self._events[self._position - 1], self._events[self._position]
            await asyncio.sleep(self._pace(before.time, after.time, self._speed))
            self._move_to(self._position + 1)
        self._playing = None
        self._show()

    def _stop(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            self._playing = None

    def _go_to(self, position: int) -> None:
        self._stop()
        self._move_to(position)

    def _jump(self, kind: MarkKind, *, forward: bool) -> Outcome:
        seq = self.recording.marks.nearest(kind, self._position - 1, forward=forward)
        if seq is None:
            return Refused(f"there is no {kind} {'after' if forward else 'before'} this")
        self._go_to(seq + 1)
        return Accepted()

    def _move_to(self, position: int) -> None:
        self._position = self._inside(position)
        self._publisher.show_state(self._snapshots.at(self._events, self._position))
        self._show()

    def _inside(self, position: int) -> int:
        return max(min(1, len(self._events)), min(position, len(self._events)))

    def _show(self) -> None:
        last, playing = len(self._events) - 1, self._playing is not None
        place = ReplayPosition(self._position - 1, last, playing, self._speed, self.recording)
        self._publisher.show_replay(place)
