"""Contract of `core.ports.stores.Inbox`."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.inbox import DatabaseInbox
from agent_workbench.core.errors import DecisionRefused
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.inbox import InboxDecision, Reference
from agent_workbench.core.ports.stores import Inbox
from agent_workbench.core.proposals import Verdict
from agent_workbench.subjects.inbox.adapter import LocalInbox
from tests.fakes.signatures import FakeSignatures
from tests.fakes.stores import MemoryInbox

SESSION, OTHER = SessionId("20260102T030405-abc234"), SessionId("20260103T030405-def567")


def decision(
    proposal: str = "P-14",
    *,
    session: SessionId = SESSION,
    digest: str = "0" * 32,
    verdict: Verdict = Verdict.APPROVE,
    at: str = "2026-01-02T03:04:05.000000Z",
) -> InboxDecision:
    reference = Reference(session, ProposalId(proposal), digest)
    return InboxDecision(reference, verdict, "why “not”", ("a", "b"), "f" * 64, "ada@laptop", at)


class SharedInbox:
    """Where decisions go through the database: all of them."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.inbox = DatabaseInbox(self.database, FakeSignatures(), MemoryInbox(), self._elsewhere)

    async def _elsewhere(self, session: SessionId) -> bool:
        return True

    async def close(self) -> None:
        await self.inbox.close()
        await self.database.close()


@pytest.fixture(params=["memory", "local", "database"])
async def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Inbox]:
    if request.param == "memory":
        yield MemoryInbox()
    elif request.param == "local":
        yield LocalInbox(tmp_path / "inbox", poll_seconds=0.01)
    else:
        shared = SharedInbox(request.getfixturevalue("migrated_url"))
        yield shared.inbox
        await shared.close()


async def pending(inbox: Inbox, session: SessionId = SESSION) -> tuple[InboxDecision, ...]:
    """Return the decisions without their signatures."""
    return unsigned(await inbox.pending(session))


def unsigned(decisions: Iterable[InboxDecision]) -> tuple[InboxDecision, ...]:
    return tuple(replace(each, signed=None) for each in decisions)


class TestInbox:
    """What goes in comes out, once, until it is removed."""

    async def test_nothing_is_pending_at_first(self, inbox: Inbox) -> None:
        assert await pending(inbox) == ()

    async def test_a_decision_is_pending_as_it_was_put(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        assert await pending(inbox) == (decision(),)
        assert await pending(inbox, OTHER) == ()

    async def test_decisions_come_oldest_first(self, inbox: Inbox) -> None:
        late, early = decision("P-1", at="2026-01-03"), decision("P-2", at="2026-01-02")
        await inbox.put(late)
        await inbox.put(early)
        assert await pending(inbox) == (early, late)

    async def test_the_first_decision_stays_and_the_second_is_told_of_it(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        with pytest.raises(DecisionRefused, match=r"P-14 was decided already.*approve"):
            await inbox.put(decision(verdict=Verdict.REJECT))
        assert await pending(inbox) == (decision(),)

    async def test_of_many_at_once_one_stays(self, inbox: Inbox) -> None:
        wanted = [replace(decision(), reason=str(number)) for number in range(20)]
        outcomes = await asyncio.gather(*map(inbox.put, wanted), return_exceptions=True)
        (kept,) = await inbox.pending(SESSION)
        assert outcomes.count(kept) == 1
        assert outcomes.index(kept) == wanted.index(replace(kept, signed=None))
        assert all(isinstance(each, DecisionRefused) for each in outcomes if each != kept)

    async def test_what_is_put_is_what_is_kept(self, inbox: Inbox) -> None:
        assert (await inbox.put(decision()),) == await inbox.pending(SESSION)
        assert inbox.refused(SESSION) == ()

    async def test_a_proposal_with_another_digest_is_another_one(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        await inbox.put(decision(digest="1" * 32))
        assert len(await pending(inbox)) == 2

    async def test_what_is_removed_is_gone_and_can_be_put_again(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        (kept,) = await inbox.pending(SESSION)
        await inbox.remove(kept)
        await inbox.remove(kept)
        assert await pending(inbox) == ()
        await inbox.put(decision(verdict=Verdict.REJECT))
        assert await pending(inbox) == (decision(verdict=Verdict.REJECT),)

    async def test_waiting_ends_with_what_is_put(self, inbox: Inbox) -> None:
        waiting = asyncio.create_task(inbox.wait(SESSION))
        await inbox.put(decision(session=OTHER))
        await inbox.put(decision())
        assert unsigned(await waiting) == (decision(),)

    async def test_waiting_passes_over_what_is_known(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        waiting = asyncio.create_task(inbox.wait(SESSION, {decision().reference}))
        await inbox.put(decision("P-15"))
        assert unsigned(await waiting) == (decision("P-15"),)

    async def test_waiting_that_is_cancelled_changes_nothing(self, inbox: Inbox) -> None:
        waiting = asyncio.create_task(inbox.wait(SESSION))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await inbox.put(decision())
        assert unsigned(await inbox.wait(SESSION)) == (decision(),)
