"""A past session seen again: the same updates, made from its journal alone; nothing runs and nothing is asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from msgspec.structs import replace

from agent_workbench.core.background import in_background
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.history.replay_marks import MarkKind, marks_of
from agent_workbench.core.history.replay_pace import faster, slower, wait_seconds
from agent_workbench.core.intents import (
    GoToEvent,
    Intent,
    JumpReplay,
    Leave,
    PaceReplay,
    PlayReplay,
    SeekReplay,
    StepReplay,
)
from agent_workbench.core.live import Live, Recording, ReplayPosition, SessionUpdate
from agent_workbench.core.state.fold_snapshots import FoldSnapshots
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.publisher import UpdatePublisher

Pace = Callable[[str, str, float], float]
"""Seconds from an event to the next, by the times of both and the speed."""


class ReplaySession:
    """Implements `core.ports.Session` over recorded events."""

    def __init__(self, events: Sequence[Recorded], *, at: int = 0, pace: Pace = wait_seconds) -> None:
        """Open at the event `at`; a negative one counts from the end, one that there is not is the nearest end."""
        self._events = tuple(events)
        self.recording = Recording(self._events, marks_of(self._events))
        self._pace = pace
        self._trail = FoldSnapshots(SessionState(), fold)
        self._trail.at(self._events)  # once from beginning to end, so that any place is near a state that is kept
        self._speed = 1.0
        self._playing: asyncio.Task[None] | None = None
        self._position = self._inside(at + 1 if at >= 0 else len(self._events) + at + 1)
        self._publisher = UpdatePublisher(self._trail.at(self._events, self._position))
        self._publisher.show_live(Live(decidable=False))
        self._show()

    async def submit(self, intent: Intent) -> None:
        """Move, play, or leave; any other intent has no meaning in a replay and is answered by a notice."""
        match intent:
            case StepReplay():
                self._go_to(self._position + intent.steps)
            case SeekReplay():
                self._go_to(round(intent.fraction * len(self._events)))
            case GoToEvent():
                self._go_to(intent.seq + 1)
            case JumpReplay():
                self._jump(intent.kind, forward=intent.forward)
            case PlayReplay():
                self._stop()
                if intent.playing and self._position < len(self._events):
                    self._playing = in_background(self._play())
                self._show()
            case PaceReplay():
                self._speed = faster(self._speed) if intent.faster else slower(self._speed)
                self._show()
            case Leave():
                self._stop()
                self._publisher.end("")
            case _:
                self._publisher.notify("this is a replay: nothing can be decided here")

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update whenever there is one."""
        return self._publisher.updates()

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

    def _jump(self, kind: MarkKind, *, forward: bool) -> None:
        seq = self.recording.marks.nearest(kind, self._position - 1, forward=forward)
        if seq is None:
            self._publisher.notify(f"there is no {kind} {'after' if forward else 'before'} this")
        else:
            self._go_to(seq + 1)

    def _move_to(self, position: int) -> None:
        self._position = self._inside(position)
        self._publisher.show_state(self._trail.at(self._events, self._position))
        self._show()

    def _inside(self, position: int) -> int:
        return max(min(1, len(self._events)), min(position, len(self._events)))

    def _show(self) -> None:
        last, playing = len(self._events) - 1, self._playing is not None
        place = ReplayPosition(self._position - 1, last, playing, self._speed, self.recording)
        self._publisher.show_live(replace(self._publisher.live, replay=place))
