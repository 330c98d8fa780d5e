"""A takeover that the git remote or a crash stops: the next attempt knows that the lines are another machine's."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from agent_workbench.core import events as e
from agent_workbench.core.errors import StorageError
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.shared_state import SessionRefs
from tests.adapters.database.machines import Machine
from tests.adapters.database.test_takeover import PARKED, Fleet, fleet
from tests.contracts.test_session_store import write

__all__ = ["fleet"]


class AwayRemote:
    """A git remote that refuses takeovers while it is `away`, and says what was fetched."""

    def __init__(self) -> None:
        self.away = True
        self.fetched = 0

    async def take_over(self, head: SignedHead, recorded: Sequence[Recorded]) -> None:
        if self.away:
            raise StorageError("the git remote does not answer")

    async def fetch(self, session: SessionId, recorded: Sequence[Recorded]) -> None:
        self.fetched += 1

    async def heads(self, session: SessionId) -> tuple[SignedHead, ...]:
        return ()

    async def push(self, head: SignedHead, *, if_missing: bool = False) -> tuple[str, ...]:
        return ()


async def stopped_twice(machine: Machine, session: SessionId) -> AwayRemote:
    """Let a machine try to take a session over while the remote is away."""
    remote = AwayRemote()
    machine.refs = cast("SessionRefs", remote)
    for _ in range(2):
        with pytest.raises(StorageError):
            await machine.store().open(SessionQuery(session))
        behind = await asyncio.to_thread(machine.states.behind, machine.copies)
        assert not behind, "nothing is copied of what came from elsewhere"
    remote.away = False
    return remote


async def test_a_session_that_was_never_here_still_arrives(fleet: Fleet) -> None:
    session = await fleet.parked()
    two = fleet.machine("two")
    remote = await stopped_twice(two, session)
    opened = await two.store().open(SessionQuery(session))
    assert (opened.away_since, remote.fetched) == (-1, 1)
    await opened.journal.close()


async def test_a_session_that_was_away_still_comes_back(fleet: Fleet) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one"), fleet.machine("two")
    away = await two.store().open(SessionQuery(session))
    await write(away.journal, (e.SessionResumed(),), len(away.events))
    await away.journal.close()
    remote = await stopped_twice(one, session)
    back = await one.store().open(SessionQuery(session))
    assert (back.away_since, back.events[-1].event, remote.fetched) == (len(PARKED), e.SessionResumed(), 1)
    await write(back.journal, (e.SessionResumed(),), len(back.events))
    await back.journal.close()
    later = await one.store().open(SessionQuery(session))
    assert later.away_since is None
    await later.journal.close()
