"""A past session seen again: the same updates, made from its journal alone; nothing runs and nothing is asked."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.intents import Intent, Leave, PlayReplay, SeekReplay, StepReplay
from agent_workbench.core.live import Live, ReplayPosition, SessionUpdate
from agent_workbench.core.state import SessionState
from agent_workbench.engine.board import Board

STRIDE = 64
PLAY_SECONDS = 0.35


class ReplaySession:
    """Implements `core.ports.Session` over recorded events; a state is kept every `STRIDE` of them to fold on from."""

    def __init__(self, events: Sequence[Recorded], *, at_end: bool = False) -> None:
        self._events = tuple(events)
        self._kept = {0: SessionState()}
        self._position = len(self._events) if at_end else min(1, len(self._events))
        self._playing: asyncio.Task[None] | None = None
        self._board = Board(self._state_at(self._position))
        self._show()

    async def submit(self, intent: Intent) -> None:
        """Move, play, or leave; any other intent has no meaning in a replay and is answered by a notice."""
        match intent:
            case StepReplay():
                self._stop()
                self._move_to(self._position + intent.steps)
            case SeekReplay():
                self._stop()
                self._move_to(round(intent.fraction * len(self._events)))
            case PlayReplay():
                self._stop()
                if intent.playing and self._position < len(self._events):
                    self._playing = asyncio.create_task(self._play())
                self._show()
            case Leave():
                self._stop()
                self._board.end("")
            case _:
                self._board.notify("this is a replay: nothing can be decided here")

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update whenever there is one."""
        return self._board.updates()

    async def _play(self) -> None:
        while self._position < len(self._events):
            await asyncio.sleep(PLAY_SECONDS)
            self._move_to(self._position + 1)
        self._playing = None
        self._show()

    def _stop(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            self._playing = None

    def _move_to(self, position: int) -> None:
        self._position = max(min(1, len(self._events)), min(position, len(self._events)))
        self._board.show_state(self._state_at(self._position))
        self._show()

    def _show(self) -> None:
        position = ReplayPosition(self._position - 1, len(self._events) - 1, self._playing is not None)
        self._board.show_live(Live(replay=position, decidable=False))

    def _state_at(self, position: int) -> SessionState:
        """Return the state after `position` events, folding at most `STRIDE` of them where it was near before."""
        start = max(kept for kept in self._kept if kept <= position)
        state = self._kept[start]
        for number in range(start, position):
            state = fold(state, self._events[number])
            if (number + 1) % STRIDE == 0:
                self._kept[number + 1] = state
        return state
