"""A turn is answered whatever happens to the session behind it."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

from agent_workbench.acp.editor import Editor, Update
from agent_workbench.acp.thread import EditorThread
from agent_workbench.acp.turn import Turn
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted, Outcome
from agent_workbench.core.session_request import Invocation
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

SESSION = SessionId("20260101T000000-aaaaaa")


class _Host:
    """A host whose only session goes on, while its journal cannot be read any more."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.newest = ScriptedSession(*runs.up_to_first_diff()).newest

    async def open(self, _: object) -> "_Host":
        return self

    async def submit(self, _: Intent) -> Outcome:
        return Accepted()

    async def live(self) -> AsyncGenerator[SessionUpdate]:
        yield self.newest
        await asyncio.Event().wait()

    async def events(self, after: int) -> AsyncGenerator[Recorded]:
        if after < 0:
            raise JournalError("the journal is gone")
        yield cast("Recorded", None)


class _Window:
    """An editor that keeps what it is shown."""

    person = "acp:test"

    def __init__(self) -> None:
        self.said: list[str] = []

    async def show(self, _: str, *updates: Update) -> None:
        pass

    async def say(self, _: str, text: str) -> None:
        self.said.append(text)


async def test_a_turn_ends_when_the_session_cannot_be_shown_any_more(tmp_path: Path) -> None:
    window, host = _Window(), _Host(Invocation(tmp_path, {}, {}))
    thread = EditorThread(cast("Editor", window), cast("LocalSessionHost", host), (str(tmp_path),), SESSION)
    async with asyncio.timeout(20):
        assert await Turn(thread, "Go on, please").run() == "refusal"
    assert "the journal is gone" in window.said[-1]
