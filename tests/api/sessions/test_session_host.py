"""The host of sessions, without a screen."""

import asyncio
import gc
import os
import weakref
from pathlib import Path

import pytest

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.errors import RepoError
from agent_workbench.core.intents import Leave, StartTask
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest, Unattended


@pytest.fixture
def nowhere(tmp_path: Path) -> Invocation:
    """A folder without a repository."""
    return Invocation(tmp_path, os.environ, {})


@pytest.mark.slow
async def test_a_session_that_was_left_is_let_go(nowhere: Invocation) -> None:
    host = LocalSessionHost(nowhere, ready=asyncio.Event())
    session = weakref.ref(await host.open(SessionRequest()))
    host.ready.set()
    await host.join()
    gc.collect()
    assert session() is None


async def test_what_kept_all_of_them_from_being_opened_is_raised_at_the_end(nowhere: Invocation) -> None:
    async with LocalSessionHost(nowhere) as host:
        session = await host.open(SessionRequest())
        with pytest.raises(RepoError):
            await session.wait()
        with pytest.raises(RepoError):
            host.raise_if_none_opened()
        assert [recorded async for recorded in session.events()] == []
        assert [update.ended async for update in session.live()] == [True]


@pytest.mark.parametrize(
    "request_",
    [SessionRequest(OpenMode.REPLAY), SessionRequest(OpenMode.FORK), SessionRequest(unattended=Unattended())],
)
async def test_a_session_that_nobody_attends_raises_at_once(nowhere: Invocation, request_: SessionRequest) -> None:
    host = LocalSessionHost(nowhere)
    with pytest.raises(RepoError):
        await host.open(request_)
    assert not host.has_sessions


async def test_intents_are_answered_before_the_session_is_open_and_after_its_end(nowhere: Invocation) -> None:
    host = LocalSessionHost(nowhere, ready=asyncio.Event())
    session = await host.open(SessionRequest())
    assert await session.submit(StartTask()) == Refused("the session is not open yet")
    assert await session.submit(Leave()) == Accepted()
    await host.close()
    assert await session.submit(StartTask()) == Refused("the session has ended")
