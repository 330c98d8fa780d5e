"""A followed session: shown from its journal, decided through the inbox, and never locked."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent_workbench.api.sessions.followed_session import ELSEWHERE, FollowedSession, held_session
from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.core import events as e
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.fold import fold_all
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    EditProposal,
    Intent,
    Leave,
    RejectProposal,
    SkipProposal,
)
from agent_workbench.core.live import Followed, SessionUpdate
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.patch.selection import HunkChoice, partial_diff, selectable_parts
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.proposals import Verdict, shown_sha
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from tests.api.sessions.test_inbox import CHANGE, COMMAND, Repo, repo

__all__ = ["repo"]


@asynccontextmanager
async def followed(repo: Repo, session: SessionId) -> AsyncIterator[LocalSession]:
    """Yield a session as a screen follows it."""
    updates, events = UpdateFeed(), EventFeed()
    state = fold_all(await repo.store.read(session))
    events.begin(state.seq, lambda: repo.store.read(session))

    async def nothing(_: SessionId) -> str:
        return ""

    driver = FollowedSession(state, repo.store, repo.inbox, UpdatePublisher(updates.publish), events, nothing)
    await driver.look()
    handle = LocalSession(driver, updates, events)
    running = asyncio.create_task(handle.run())
    try:
        yield handle
    finally:
        await handle.submit(Leave("left"))
        await asyncio.gather(running, return_exceptions=True)


async def newest(handle: LocalSession) -> SessionUpdate:
    async for update in handle.live():
        return update
    raise AssertionError("there is always a newest update")


def approval(left: tuple[LeftOut, ...] = ()) -> ApproveProposal:
    if not left:
        return ApproveProposal(CHANGE.id, shown_sha(CHANGE))
    part = partial_diff(CHANGE.patch, HunkChoice(left))
    return ApproveProposal(CHANGE.id, shown_sha(CHANGE), left, part.result_sha)


async def test_a_session_that_is_open_elsewhere_is_known_by_a_part_of_its_name(repo: Repo) -> None:
    opened = await repo.held()
    assert await held_session(repo.store, opened.id[-6:]) == opened.id
    await opened.journal.close()
    assert await held_session(repo.store, opened.id) is None


async def test_a_decision_is_put_into_the_inbox_and_the_session_stays_free(repo: Repo) -> None:
    session = await repo.parked(proposal=CHANGE)
    left = (LeftOut(selectable_parts(CHANGE.patch)[0].id, reason="not yet"),)
    async with followed(repo, session) as handle:
        assert handle.session == session
        assert isinstance(outcome := await handle.submit(approval(left)), Accepted)
        assert "approved" in outcome.note
        (kept,) = await repo.decisions.pending(session)
        assert (kept.verdict, kept.left, kept.made_by) == (Verdict.APPROVE, left, "ada@laptop")
        assert (await newest(handle)).live.followed == Followed(decided=kept, about=("high risk",))
        opened = await repo.store.open(SessionQuery(session))  # as a worker does
        await repo.append(opened, e.ActionDecided(CHANGE.id, Verdict.APPROVE, "user", via=kept.via))
        async for update in handle.live():
            if update.state.waiting is None:
                break
        await opened.journal.close()


@pytest.mark.parametrize(
    ("intent", "verdict"),
    [(RejectProposal(COMMAND.id, "why"), Verdict.REJECT), (SkipProposal(COMMAND.id), Verdict.SKIP)],
    ids=lambda value: str(value) if isinstance(value, Verdict) else "",
)
async def test_a_proposal_is_rejected_or_skipped(repo: Repo, intent: Intent, verdict: Verdict) -> None:
    session = await repo.parked()
    async with followed(repo, session) as handle:
        assert isinstance(await handle.submit(intent), Accepted)
        assert [each.verdict for each in await repo.decisions.pending(session)] == [verdict]
        second = await handle.submit(intent)
        assert isinstance(second, Refused)
        assert "was decided already" in second.reason


@pytest.mark.parametrize(
    ("intent", "why"),
    [
        (ApproveProposal(CHANGE.id, "0" * 64), "changed after it was shown"),
        (ApproveProposal(ProposalId("P-99"), shown_sha(CHANGE)), "no longer waits"),
        (SkipProposal(CHANGE.id), "cannot be skipped"),
        (EditProposal(CHANGE.id, "other"), ELSEWHERE),
        (AbortTask(), ELSEWHERE),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
async def test_what_does_not_fit_is_refused(repo: Repo, intent: Intent, why: str) -> None:
    session = await repo.parked(proposal=CHANGE)
    async with followed(repo, session) as handle:
        refused = await handle.submit(intent)
        assert isinstance(refused, Refused)
        assert why in refused.reason
        assert await repo.decisions.pending(session) == ()


async def test_who_has_it_open_is_shown_and_what_they_record(repo: Repo) -> None:
    opened = await repo.held()
    async with followed(repo, opened.id) as handle:
        at = (await newest(handle)).live.followed
        assert at is not None
        assert at.holder.startswith("pid ")
        await repo.append(opened, e.ActionDecided(COMMAND.id, Verdict.SKIP, "user"))
        seen = [each async for each in _first(handle.events(handle.opened_seq))]
        assert [type(each.event) for each in seen] == [e.ActionDecided]
        late = await handle.submit(SkipProposal(COMMAND.id))
        assert isinstance(late, Refused)
    await opened.journal.close()


async def _first(events: AsyncIterator[e.Recorded]) -> AsyncIterator[e.Recorded]:
    async for each in events:
        yield each
        return


async def test_a_journal_that_is_removed_ends_it(repo: Repo) -> None:
    session = await repo.parked()
    async with followed(repo, session) as handle:
        await asyncio.to_thread(shutil.rmtree, repo.folder / session)
        with pytest.raises(WorkbenchError):
            await handle.wait()
        assert (await newest(handle)).ended
