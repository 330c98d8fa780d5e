"""Tests of how often updates are painted."""

import asyncio
from collections.abc import AsyncGenerator
from math import inf
from typing import cast

import pytest

from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.tui.bridge import (
    FRAME_SECONDS,
    GROWING_SECONDS,
    KEY_SECONDS,
    LOOK_SECONDS,
    MOST_LOOKS,
    TYPING_SECONDS,
    carry_updates,
)


class GrowingSession:
    """Session with one update, and then its end."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def live(self) -> AsyncGenerator[SessionUpdate]:
        yield SessionUpdate(SessionState(), self._live)
        yield SessionUpdate(SessionState(), self._live, ended=True)


@pytest.mark.parametrize(
    ("live", "idle", "looks"),
    [
        (Live(), [0.0], 0),
        (Live(streaming=Streaming()), [inf], 0),
        (Live(streaming=Streaming()), [TYPING_SECONDS], 0),
        (Live(streaming=Streaming()), [0.0, LOOK_SECONDS, KEY_SECONDS], 2),
        (Live(streaming=Streaming()), [0.2, 0.22, 0.0, KEY_SECONDS + LOOK_SECONDS], 3),
        (Live(streaming=Streaming()), [0.2] * MOST_LOOKS, MOST_LOOKS),
    ],
)
async def test_growing_text_is_painted_behind_a_key_while_keys_are_pressed(
    live: Live, idle: list[float], looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[float | SessionUpdate] = []

    async def note(seconds: float) -> None:
        happened.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    times = iter(idle)
    await carry_updates(cast("SessionHandle", GrowingSession(live)), happened.append, lambda: next(times))
    pause = FRAME_SECONDS if live.streaming is None else GROWING_SECONDS
    *before, first = happened[: looks + 1]
    assert before == [LOOK_SECONDS] * looks
    assert isinstance(first, SessionUpdate)
    assert happened[looks + 1] == pause
    assert isinstance(happened[-1], SessionUpdate)
    assert happened[-1].ended
