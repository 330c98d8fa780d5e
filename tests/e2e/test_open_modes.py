"""The ways in which the host opens a session of a real repository: unattended, replayed, forked, resumed."""

import gc
import os
from pathlib import Path

import pytest

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.set_up import write_demo
from agent_workbench.core.errors import ExitCode, TrustError, UsageError
from agent_workbench.core.events import ActionDecided, SessionLeft, SessionResumed
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.inbox import InboxFilter
from agent_workbench.core.intents import ApproveProposal, Leave, StepReplay
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.task_queue import QueuedTask
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest, Unattended
from agent_workbench.core.settings import Permission
from agent_workbench.subjects.queue.wiring import queued_plan
from tests.engine.front import Front

pytestmark = pytest.mark.slow

# The diff is parked: nobody is there to approve it.
PARKING = {"approvals.check": "auto"}
POLICY = {**PARKING, "approvals.diff": "auto", "approvals.commit": "auto"}
T1 = TaskId("T-1")
ONE_TASK = SessionRequest(unattended=Unattended((T1,)))


@pytest.fixture
async def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invocation:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return await write_demo(tmp_path / "shop", Invocation(tmp_path / "shop", dict(os.environ), POLICY, unconfined=True))


@pytest.mark.xdist_group("llama")
async def test_a_session_is_run_replayed_and_forked(demo: Invocation) -> None:
    async with LocalSessionHost(demo) as host:
        session = await host.open(ONE_TASK)
        lived = [recorded async for recorded in session.events()]
        assert (await session.wait()).exit_code is ExitCode.DONE
        replay = await host.open(SessionRequest(OpenMode.REPLAY, session.session, at=3))
        assert [recorded.seq async for recorded in replay.events()] == [recorded.seq for recorded in lived]
        assert [recorded.hash async for recorded in replay.events(5)] == [recorded.hash for recorded in lived[6:]]
        assert await replay.submit(StepReplay(2)) == Accepted()
        shown = (await Front(replay).until(lambda it: it.live.replay)).live.replay
        assert shown is not None
        assert shown.seq == 5
        assert isinstance(await replay.submit(ApproveProposal(ProposalId("P-1"), "sha")), Refused)
        assert await replay.submit(Leave()) == Accepted()
        await replay.wait()
        fork = await host.open(SessionRequest(OpenMode.FORK, session.session[-6:]))
        front = Front(fork)
        await front.until(lambda it: it.state.parent == session.session)
        assert fork.session != session.session
        with pytest.raises(UsageError, match="has no event 9999"):
            await host.open(SessionRequest(OpenMode.REPLAY, session.session, at=9999))
        with pytest.raises(UsageError, match="nosuch"):
            await host.open(SessionRequest(OpenMode.FORK, "nosuch"))
    assert not host.has_sessions


@pytest.mark.xdist_group("llama")
async def test_what_was_parked_waits_in_the_inbox_and_goes_on_when_it_is_resumed(demo: Invocation) -> None:
    parking = Invocation(demo.folder, demo.environ, PARKING, unconfined=True, demo=True)
    async with LocalSessionHost(parking) as host:
        session = await host.open(ONE_TASK)
        assert (await session.wait()).exit_code is ExitCode.PARKED
        (item,) = await host.inbox(InboxFilter())
        assert (item.session, item.task, item.proposal.kind) == (session.session, T1, Permission.DIFF)
        resumed = await host.open(SessionRequest(session=session.session))
        front = Front(resumed)
        proposal = await front.gate(Permission.DIFF)
        assert resumed.opened_seq > 0
        assert await front.outcome(ApproveProposal(proposal.id, shown_sha(proposal))) == Accepted()
        assert isinstance(await front.outcome(ApproveProposal(proposal.id, shown_sha(proposal))), Refused)
        await front.outcome(Leave())
        new = [recorded.event async for recorded in resumed.events(resumed.opened_seq)]
        assert isinstance(new[0], SessionResumed)
        assert isinstance(new[-1], SessionLeft)
        assert await host.inbox(InboxFilter(task="T-9")) == ()


QUEUED = """\
id: T-1
goal: Make the cart's total count quantities
verify: [{command: python -m unittest tests/test_cart.py}]
scope: {allowed_write_globs: ["shop/**"]}
"""


@pytest.mark.xdist_group("llama")
async def test_a_queued_task_is_followed_decided_opened_forked_and_replayed_like_any_other(demo: Invocation) -> None:
    parking = Invocation(demo.folder, demo.environ, PARKING, unconfined=True, demo=True)
    plan = demo.folder / "memory/plans/PLAN.yaml"
    plan.write_text("version: 1\ntasks: [{id: T-8, description: Something else}]\n")
    before = plan.read_bytes()
    queued, task = T1, queued_plan(QueuedTask("T-1", QUEUED))
    async with LocalSessionHost(parking) as host:
        repo = await host.repo()
        kept = gc.get_freeze_count()
        parked = await host.open_unattended(repo.with_plans(task), SessionQuery(fresh=True, tasks=(queued,)))
        assert (await parked.wait()).exit_code is ExitCode.PARKED
        assert gc.get_freeze_count() <= kept, "a worker's next session would keep what this one used"
        name = parked.session
        (item,) = await host.inbox(InboxFilter())
        assert (item.task, item.source, item.proposal.kind) == (queued, "tasks/queue/default/T-1.yaml", Permission.DIFF)

        followed = await host.open(SessionRequest(OpenMode.FOLLOW, name))
        screen = Front(followed)
        shown = await screen.until(lambda it: it.state.waiting and it.live.followed)
        assert [each.id for each in shown.state.plan.tasks] == [queued]
        approval = ApproveProposal(item.proposal.id, shown_sha(item.proposal))
        assert isinstance(await screen.outcome(approval), Accepted)
        # Nobody holds the session: a worker goes on with it while the screen still shows it.
        working = await host.open_unattended(repo, SessionQuery(name=name, tasks=(queued,)))
        assert (await working.wait()).exit_code is ExitCode.PARKED
        await screen.until(lambda it: it.state.waiting and it.state.waiting.id != item.proposal.id)

        fork = await host.open(SessionRequest(OpenMode.FORK, name))
        assert (await Front(fork).gate(Permission.DIFF)).kind is Permission.DIFF
        await Front(fork).outcome(Leave())
        replay = await host.open(SessionRequest(OpenMode.REPLAY, name))
        recorded = [each.event async for each in replay.events()]
        assert sum(isinstance(each, ActionDecided) and each.via.startswith("inbox: ") for each in recorded) == 1

        opened = await host.open(SessionRequest(session=name))
        front = Front(opened)
        for kind in (Permission.DIFF, Permission.COMMIT):
            proposal = await front.gate(kind)
            await front.outcome(ApproveProposal(proposal.id, shown_sha(proposal)))
        await front.until(lambda it: it.state.run and it.state.run.status is TaskStatus.DONE)
        await front.outcome(Leave())
        await screen.until(lambda it: it.state.run and it.state.run.status is TaskStatus.DONE)
        assert await screen.outcome(Leave()) == Accepted()
    assert plan.read_bytes() == before


async def test_an_unattended_session_needs_trust(demo: Invocation) -> None:
    settings = demo.folder / ".agent.yml"
    settings.write_text(settings.read_text() + "\ntest_command: make something-else\n")
    async with LocalSessionHost(demo) as host:
        with pytest.raises(TrustError):
            await host.open(ONE_TASK)
