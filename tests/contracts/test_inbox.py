"""Contract of `core.ports.stores.Inbox`."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.inbox.local_inbox import LocalInbox
from agent_workbench.core.errors import DecisionRefused
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.inbox import InboxDecision, Reference
from agent_workbench.core.ports.stores import Inbox
from agent_workbench.core.proposals import Verdict
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


IMPLEMENTATIONS: dict[str, Callable[[Path], Inbox]] = {
    "memory": lambda _: MemoryInbox(),
    "local": lambda folder: LocalInbox(folder / "inbox", poll_seconds=0.01),
}


@pytest.fixture(params=IMPLEMENTATIONS)
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Inbox:
    return IMPLEMENTATIONS[request.param](tmp_path)


class TestInbox:
    """What goes in comes out, once, until it is removed."""

    async def test_nothing_is_pending_at_first(self, inbox: Inbox) -> None:
        assert await inbox.pending(SESSION) == ()

    async def test_a_decision_is_pending_as_it_was_put(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        assert await inbox.pending(SESSION) == (decision(),)
        assert await inbox.pending(OTHER) == ()

    async def test_decisions_come_oldest_first(self, inbox: Inbox) -> None:
        late, early = decision("P-1", at="2026-01-03"), decision("P-2", at="2026-01-02")
        await inbox.put(late)
        await inbox.put(early)
        assert await inbox.pending(SESSION) == (early, late)

    async def test_the_first_decision_stays_and_the_second_is_told_of_it(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        with pytest.raises(DecisionRefused, match=r"P-14 was decided already.*approve"):
            await inbox.put(decision(verdict=Verdict.REJECT))
        assert await inbox.pending(SESSION) == (decision(),)

    async def test_of_many_at_once_one_stays(self, inbox: Inbox) -> None:
        wanted = [replace(decision(), reason=str(number)) for number in range(20)]
        outcomes = await asyncio.gather(*map(inbox.put, wanted), return_exceptions=True)
        (kept,) = await inbox.pending(SESSION)
        assert [outcome for outcome in outcomes if outcome is None] == [None]
        assert outcomes[wanted.index(kept)] is None
        assert all(isinstance(each, DecisionRefused) for each in outcomes if each is not None)

    async def test_a_proposal_with_another_digest_is_another_one(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        await inbox.put(decision(digest="1" * 32))
        assert len(await inbox.pending(SESSION)) == 2

    async def test_what_is_removed_is_gone_and_can_be_put_again(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        await inbox.remove(decision())
        await inbox.remove(decision())
        assert await inbox.pending(SESSION) == ()
        await inbox.put(decision(verdict=Verdict.REJECT))
        assert await inbox.pending(SESSION) == (decision(verdict=Verdict.REJECT),)

    async def test_waiting_ends_with_what_is_put(self, inbox: Inbox) -> None:
        waiting = asyncio.create_task(inbox.wait(SESSION))
        await inbox.put(decision(session=OTHER))
        await inbox.put(decision())
        assert await waiting == (decision(),)

    async def test_waiting_passes_over_what_is_known(self, inbox: Inbox) -> None:
        await inbox.put(decision())
        waiting = asyncio.create_task(inbox.wait(SESSION, {decision().reference}))
        await inbox.put(decision("P-15"))
        assert await waiting == (decision("P-15"),)

    async def test_waiting_that_is_cancelled_changes_nothing(self, inbox: Inbox) -> None:
        waiting = asyncio.create_task(inbox.wait(SESSION))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await inbox.put(decision())
        assert await inbox.wait(SESSION) == (decision(),)
