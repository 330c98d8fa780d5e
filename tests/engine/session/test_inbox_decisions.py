"""Decisions from the inbox: recorded once, by the session's own process, and only about exactly what waits."""

import asyncio
from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode, StorageError
from agent_workbench.core.events import ActionDecided, Event
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.inbox import EXPIRED, InboxDecision, reference_to
from agent_workbench.core.intents import AbortTask, Leave
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import OWN_BOUNDS, LeftOut, patch_hash
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import Front, in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, change, reopened, task
from tests.fakes.ports import Hang

ASKED = Approvals(check=Approval.AUTO)
ANY = (task(accept=("true",)),)
SAYINGS = (change("wrong", "right"), FINISH)
TWO_FILES = "".join(
    f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{before}\n+{after}\n"
    for name, before, after in (("answer.txt", "wrong", "right"), ("README.md", "# Hello", "# Good day"))
)
BOTH = f"Thought: both\nAction: write_diff\n{TWO_FILES}"


def decided(
    state: SessionState, proposal: Proposal, verdict: Verdict = Verdict.APPROVE, at: str = "now", **fields: object
) -> InboxDecision:
    """Return a decision about a proposal as it is."""
    reference = reference_to(state.session, proposal)
    assert reference is not None
    made = InboxDecision(reference, verdict, made_by="ada@laptop", made_at=at)
    return replace(made, **fields)


def decisions(events: list[Event], proposal: Proposal) -> list[ActionDecided]:
    return [each for each in events if isinstance(each, ActionDecided) and each.proposal_id == proposal.id]


async def taken(stage: Stage, front: Front, proposal: Proposal) -> ActionDecided:
    """Return the one decision about a proposal, once it is recorded and gone from the inbox."""
    await front.passed(proposal)
    async with asyncio.timeout(20):
        while await stage.ports.inbox.pending(stage.state.session):  # noqa: ASYNC110 - the session removes it
            await asyncio.sleep(0)
    (decision,) = decisions(stage.events, proposal)
    return decision


async def test_what_nobody_decided_in_time_is_rejected_by_the_setting(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        late = decided(stage.state, proposal, Verdict.REJECT, reason="nobody decided within 3d", by=EXPIRED)
        await stage.ports.inbox.put(late)
        recorded = await taken(stage, front, proposal)
        assert (recorded.verdict, recorded.by, recorded.reason) == (Verdict.REJECT, EXPIRED, "nobody decided within 3d")


@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.REJECT])
async def test_a_session_that_waits_takes_a_decision_up(tmp_path: Path, verdict: Verdict) -> None:
    async with a_stage(tmp_path, SAYINGS, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        await stage.ports.inbox.put(decided(stage.state, proposal, verdict, reason="because"))
        recorded = await taken(stage, front, proposal)
        assert (recorded.verdict, recorded.by, recorded.via) == (verdict, "user", "inbox: ada@laptop at now")
        assert recorded.decider == "user (inbox: ada@laptop)"  # a screen shows the time of the event
        assert recorded.reason == ("because" if verdict is Verdict.REJECT else "")
        if verdict is Verdict.APPROVE:
            assert recorded.resulting_patch_sha == patch_hash(proposal.diff)
            assert (await front.gate(Permission.COMMIT)).kind is Permission.COMMIT


async def test_a_part_of_a_diff_is_what_is_applied(tmp_path: Path) -> None:
    async with a_stage(tmp_path, (BOTH, FINISH), tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        parsed = parse_patch(proposal.diff, OWN_BOUNDS)
        left = next(hunk.id for file in parsed.files for hunk in file.hunks if file.path == "README.md")
        rest = render_patch(leave_out(parsed, [LeftOut(left)]))
        wrong = decided(stage.state, proposal, left=(left,), result_sha="0" * 64)
        await stage.ports.inbox.put(wrong)
        await front.told("the diff changed after it was shown")
        right = decided(stage.state, proposal, at="later", left=(left,), result_sha=patch_hash(rest), reason="not this")
        await stage.ports.inbox.put(right)
        recorded = await taken(stage, front, proposal)
        assert recorded.resulting_patch_sha == patch_hash(rest)
        assert [(each.fate, each.reason) for each in recorded.hunks] == [("taken", ""), ("left", "not this")]
        assert recorded.via.endswith("later")


async def test_what_does_not_fit_is_told_and_dropped(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        good = decided(stage.state, proposal)
        before = len(stage.events)
        for wrong, why in (
            (replace(good, reference=replace(good.reference, digest="0" * 32)), "is not what was shown"),
            (replace(good, reference=replace(good.reference, proposal=ProposalId("P-99"))), "has no proposal P-99"),
            (replace(good, verdict=Verdict.ABORT), "the inbox cannot abort"),
            (replace(good, by=EXPIRED), "only a person approves"),
            (replace(good, verdict=Verdict.REJECT, by="policy:other"), "'policy:other' cannot decide"),
        ):
            await stage.ports.inbox.put(wrong)
            await front.told(why)
            assert await stage.ports.inbox.pending(stage.state.session) == ()
        assert len(stage.events) == before
        assert stage.state.run is not None
        assert stage.state.run.gate.waiting == proposal


async def test_the_first_of_two_decisions_counts(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        late = decided(stage.state, proposal, Verdict.APPROVE)
        await front.reject(Permission.DIFF, "no")
        await stage.ports.inbox.put(late)
        await front.told(f"{proposal.id} was decided already: rejected by user")
        assert [each.verdict for each in decisions(stage.events, proposal)] == [Verdict.REJECT]


async def test_decisions_for_other_sessions_are_left_alone(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        other = SessionId("20260103T030405-def567")
        theirs = decided(replace(stage.state, session=other), proposal)
        await stage.ports.inbox.put(theirs)
        await stage.ports.inbox.put(decided(stage.state, proposal))
        await taken(stage, front, proposal)
        assert await stage.ports.inbox.pending(other) == (theirs,)


async def parked(stage: Stage) -> Proposal:
    """Leave a session at its gate and return what waits."""
    async with in_front_of(stage) as front:
        await front.start()
        return await front.gate(Permission.DIFF)


@pytest.mark.parametrize("approvals", [ASKED, OPEN], ids=["asked", "open"])
async def test_a_parked_session_is_opened_with_the_persons_decision_first(tmp_path: Path, approvals: Approvals) -> None:
    async with a_stage(tmp_path, SAYINGS[:1], tasks=ANY, approvals=ASKED) as stage:
        proposal = await parked(stage)
        await stage.ports.inbox.put(decided(stage.state, proposal, Verdict.REJECT, reason="not so"))
        later = replace(stage, settings=replace(stage.settings, approvals=approvals))
        async with reopened(later, [Hang("Thought: I")]) as again, in_front_of(again) as front:
            await front.until(lambda it: it.state.run and it.state.run.gate.decision, "a decision")
            assert [(each.verdict, each.reason) for each in decisions(again.events, proposal)] == [
                (Verdict.REJECT, "not so")
            ]
            assert await again.ports.inbox.pending(again.state.session) == ()


async def test_an_unattended_run_records_the_decision_and_continues(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS[:1], tasks=ANY, approvals=ASKED, headless=True) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.PARKED
        assert stage.state.run is not None
        proposal = stage.state.run.gate.waiting
        assert proposal is not None
        await stage.ports.inbox.put(decided(stage.state, proposal))
        async with reopened(stage, SAYINGS[1:]) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.PARKED
            (recorded,) = decisions(again.events, proposal)
            assert (recorded.by, recorded.via) == ("user", "inbox: ada@laptop at now")
            assert again.state.run is not None
            assert again.state.run.gate.waiting is not None
            assert again.state.run.gate.waiting.kind is Permission.COMMIT


async def test_a_kill_between_record_and_removal_decides_nothing_twice(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS[:1], tasks=ANY, approvals=ASKED, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert stage.state.run is not None
        proposal = stage.state.run.gate.waiting
        assert proposal is not None
        decision = decided(stage.state, proposal, Verdict.REJECT, reason="not so")
        await stage.ports.inbox.put(decision)
        async with reopened(stage, SAYINGS) as again:
            await run_until_killed(again, ActionDecided)
        assert await stage.ports.inbox.pending(stage.state.session) == (decision,)
        async with reopened(stage, [FINISH, FINISH, change("wrong", "right")]) as last:
            with patch.object(UpdatePublisher, "notify") as told:
                await run_unattended(last.session, last.recorder, (T1,))
            assert told.call_args_list == [], "it counted, so nothing is told of it"
            assert len(decisions(last.events, proposal)) == 1
            assert await last.ports.inbox.pending(last.state.session) == ()


async def test_a_full_disk_keeps_the_decision(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        decision = decided(stage.state, proposal)
        with patch.object(Recorder, "record", side_effect=StorageError("the disk is full")):
            await stage.ports.inbox.put(decision)
            await front.told("the disk is full")
        assert await stage.ports.inbox.pending(stage.state.session) == (decision,)
        await front.submit(AbortTask())
        await front.submit(Leave())
