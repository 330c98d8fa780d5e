"""Tests of how often updates are painted."""

import asyncio
from collections.abc import AsyncGenerator
from math import inf
from typing import cast

import pytest

from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.tui.bridge import FRAME_SECONDS, GROWING_SECONDS, TYPING_SECONDS, carry_updates


class GrowingSession:
    """Session with one update, and then its end."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def live(self) -> AsyncGenerator[SessionUpdate]:
        yield SessionUpdate(SessionState(), self._live)
        yield SessionUpdate(SessionState(), self._live, ended=True)


@pytest.mark.parametrize(
    ("live", "idle_seconds", "pause"),
    [
        (Live(), 0.0, FRAME_SECONDS),
        (Live(streaming=Streaming()), inf, GROWING_SECONDS),
        (Live(streaming=Streaming()), TYPING_SECONDS, GROWING_SECONDS),
        (Live(streaming=Streaming()), 0.0, 2 * GROWING_SECONDS),
    ],
)
async def test_growing_text_is_painted_less_often_while_keys_are_pressed(
    live: Live, idle_seconds: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    painted: list[SessionUpdate] = []
    await carry_updates(cast("SessionHandle", GrowingSession(live)), painted.append, lambda: idle_seconds)
    assert pauses[0] == pause
    assert painted[-1].ended
