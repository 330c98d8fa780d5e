"""Approval modes: sets of rules; what they open, what no mode opens, and what leaving one tells."""

import itertools
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.approval_rules import MODE_RULES, ActiveMode, RuleScope, decided_in, next_mode
from agent_workbench.core.events import (
    ActionDecided,
    Event,
    ModeChanged,
    Recorded,
    SessionConfigured,
    SessionForked,
    SessionResumed,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import ApproveProposal, ChangeMode, Leave
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.proposals import MERGE, Proposal, Verdict, shown_sha
from agent_workbench.core.settings import Approval, ApprovalMode, Approvals, Permission, Settings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.policy import PolicyDecision, ruling
from agent_workbench.views.transcript import transcript_of
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, a_stage, call, change, diff, reopened
from tests.fakes import runs
from tests.fakes.runs import made_of

CALLS = frozenset(kind for kind in Permission if KINDS[kind].calls)

ASK, EDITS, UNTIL_DONE = ApprovalMode.ASK, ApprovalMode.ACCEPT_EDITS, ApprovalMode.ACCEPT_UNTIL_DONE
OPENED = {
    ASK: set(),
    EDITS: {Permission.DIFF},
    UNTIL_DONE: {Permission.DIFF, Permission.CHECK, Permission.SUMMARY, Permission.COMMIT},
}
RIGHT = change("wrong", "right")


def configured(mode: ApprovalMode = ASK, *, holds: bool = True) -> SessionConfigured:
    config = next(each for each in runs.up_to_first_diff() if isinstance(each, SessionConfigured))
    return replace(config, approvals=Approvals(), sandbox=replace(config.sandbox, holds=holds), mode=mode)


def state_of(*events: Event) -> SessionState:
    return fold_all(Recorded(seq, f"t{seq}", event, str(seq)) for seq, event in enumerate(events))


def proposed(kind: Permission, *, special: tuple[str, ...] = (), name: str = "P-900") -> Proposal:
    """Return a proposal of each kind that a rule would match if there is one for everything of this kind."""
    tool = MERGE if kind is Permission.MERGE else "some_tool"
    return made_of(
        kind,
        tool,
        "true",
        id=name,
        diff=diff("wrong", "right"),
        commands=("true",),
        paths=("answer.txt",),
        special=special,
        spec="0123456789abcdef",
    )


def decided(mode: ApprovalMode) -> PolicyDecision:
    return PolicyDecision(Verdict.APPROVE, decided_in(mode))


@pytest.mark.parametrize(("mode", "kind"), [*itertools.product(ApprovalMode, Permission)])
def test_a_mode_opens_edits_checks_summaries_and_the_commit_and_nothing_else(
    mode: ApprovalMode, kind: Permission
) -> None:
    state = SessionState(config=configured(), mode=ActiveMode(mode))
    auto = PolicyDecision(Verdict.APPROVE, "policy:read=auto") if kind is Permission.READ else None
    assert ruling(state, proposed(kind)) == (decided(mode) if kind in OPENED[mode] else auto)
    assert ruling(state, proposed(kind, special=(".github/workflows/ci.yml",))) != decided(mode) or kind in {
        Permission.CHECK,
        Permission.SUMMARY,
        Permission.COMMIT,
    }


def test_no_mode_has_a_rule_for_what_only_a_person_may_open() -> None:
    ruled = {rule.kind for rules in MODE_RULES.values() for rule in rules}
    assert ruled.isdisjoint({Permission.COMMAND, Permission.MERGE, Permission.FINISH, *CALLS})


@pytest.mark.parametrize("mode", [EDITS, UNTIL_DONE])
def test_deny_is_stronger_than_a_mode(mode: ApprovalMode) -> None:
    config = replace(configured(), approvals=Approvals(diff=Approval.DENY))
    verdict = ruling(SessionState(config=config, mode=ActiveMode(mode)), proposed(Permission.DIFF))
    assert verdict is not None
    assert verdict.verdict is Verdict.REJECT


def test_a_start_mode_runs_no_checks_without_a_sandbox_and_a_chosen_one_does() -> None:
    """As a rule for all repos, and as one for the session."""
    start = SessionState(config=configured(holds=False), mode=ActiveMode(UNTIL_DONE, RuleScope.EVERYWHERE))
    chosen = replace(start, mode=ActiveMode(UNTIL_DONE, RuleScope.SESSION))
    assert ruling(start, proposed(Permission.CHECK)) is None
    assert ruling(start, proposed(Permission.DIFF)) == decided(UNTIL_DONE)
    assert ruling(chosen, proposed(Permission.CHECK)) == decided(UNTIL_DONE)


@pytest.mark.parametrize("mode", [EDITS, UNTIL_DONE])
def test_what_waits_when_a_mode_is_entered_stays_with_the_user(mode: ApprovalMode) -> None:
    state = state_of(*runs.up_to_first_diff(), configured(), ModeChanged(mode))
    assert state.run is not None
    waiting = state.run.gate.waiting
    assert waiting is not None
    assert ruling(state, waiting) is None
    assert ruling(state, replace(waiting, id=ProposalId("P-900"))) == decided(mode)


def test_the_modes_follow_one_another() -> None:
    assert [next_mode(each) for each in ApprovalMode] == [EDITS, UNTIL_DONE, ASK]


@pytest.mark.parametrize("event", [SessionResumed(), SessionForked("0.1.0")])
def test_a_mode_counts_only_while_the_session_is_open(event: SessionResumed | SessionForked) -> None:
    state = state_of(*runs.up_to_first_diff(), ModeChanged(UNTIL_DONE), event)
    assert state.mode.mode is ASK
    assert state_of(*runs.up_to_first_diff(), event, configured(EDITS)).mode.mode is EDITS


async def test_accept_until_done_goes_to_the_commit_returns_to_ask_and_lists_what_it_approved(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH]) as stage:
        async with in_front_of(stage) as front:
            assert await front.outcome(ChangeMode(UNTIL_DONE)) == Accepted()
            await front.start()
            merge = await front.gate(Permission.MERGE)
            told = (await front.told("accept until done approved")).live.notices[-1].text
            assert await front.outcome(ChangeMode(UNTIL_DONE)) == Accepted()
            assert (await front.gate(Permission.MERGE)).id == merge.id, "no mode merges"
        approved = [event for event in stage.events if isinstance(event, ModeChanged)]
        assert [event.mode for event in approved] == [UNTIL_DONE, ASK, UNTIL_DONE, ASK]
        listed = approved[1].approved
        assert [line.split(" ")[0] for line in listed] == ["check", "diff", "check", "commit"]
        assert listed[1] == "diff answer.txt"
        assert all(line in told for line in listed)
        by = [event.by for event in stage.events if isinstance(event, ActionDecided)]
        assert set(by) == {decided_in(UNTIL_DONE), "policy:read=auto"}
        shown = [block.text for entry in transcript_of(stage.state).entries for block in entry.blocks]
        assert any("approved 4 proposals" in text for text in shown)
        assert stage.read_back() == stage.state


async def test_accept_edits_asks_for_all_but_edits_and_says_what_it_approved_when_it_is_left(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH]) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.CHECK)
        assert await front.outcome(ChangeMode(EDITS)) == Accepted()
        await front.approve(Permission.CHECK)
        await front.approve(Permission.CHECK)
        await front.gate(Permission.COMMIT)
        assert await front.outcome(ChangeMode(EDITS)) == Refused("the mode is accept edits already")
        assert await front.notice(ChangeMode(ASK)) == "accept edits approved 1 proposal; the steps list them"
        await front.gate(Permission.COMMIT)


@pytest.mark.parametrize("kind", [Permission.CHECK, Permission.DIFF, Permission.COMMIT])
async def test_accept_until_done_goes_on_with_what_the_user_sees_waiting(tmp_path: Path, kind: Permission) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH]) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            while (waiting := await front.waiting()).kind is not kind:
                await front.approve(waiting.kind)
            await front.outcome(ChangeMode(EDITS, shown_sha(waiting)))
            assert await front.waiting() == waiting, "who goes through the modes has decided nothing"
            await front.outcome(ChangeMode(UNTIL_DONE, shown_sha(waiting)))
            await front.gate(Permission.MERGE)
        by = {event.proposal_id: event.by for event in stage.events if isinstance(event, ActionDecided)}
        assert by[waiting.id] == decided_in(UNTIL_DONE)


@pytest.mark.parametrize("before", [True, False])
async def test_accept_until_done_sends_the_first_prompt(tmp_path: Path, *, before: bool) -> None:
    open_checks = Approvals(check=Approval.AUTO)
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=open_checks) as stage:
        assert stage.state.config is not None
        await stage.session.record(replace(stage.state.config, review_context=True))
        async with in_front_of(stage) as front:
            if before:
                await front.outcome(ChangeMode(UNTIL_DONE))
            await front.start()
            if not before:
                await front.until(lambda update: update.state.run is not None and update.state.run.awaits_send)
                await front.outcome(ChangeMode(EDITS))
                assert stage.model.requests == []
                await front.outcome(ChangeMode(UNTIL_DONE, ""))
            await front.gate(Permission.MERGE)
        assert stage.read_back() == stage.state


async def test_a_mode_that_is_chosen_while_a_diff_waits_does_not_approve_it(tmp_path: Path) -> None:
    """The user may not have looked at it yet, and pressed the key before it came."""
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=Approvals(check=Approval.AUTO)) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.DIFF)
            await front.outcome(ChangeMode(UNTIL_DONE))
            assert (await front.gate(Permission.DIFF)).id == waiting.id
            assert not [event for event in stage.events if isinstance(event, ActionDecided) and "mode" in event.by]
            await front.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
            await front.gate(Permission.MERGE)
        by = [event.by for event in stage.events if isinstance(event, ActionDecided)]
        assert (by.count("user"), by.count(decided_in(UNTIL_DONE))) == (1, 1), "the diff, then the commit"


async def test_special_files_and_commands_wait_in_every_mode(tmp_path: Path) -> None:
    workflow = "--- /dev/null\n+++ b/.github/workflows/ci.yml\n@@ -0,0 +1 @@\n+on: push\n"
    said = [call("run_command", '{"command": "true"}'), call("write_diff", workflow)]
    settings = Settings(tools_allowed=("run_command", "write_diff", "finish"))
    async with a_stage(tmp_path, said, settings=settings) as stage, in_front_of(stage) as front:
        await front.submit(ChangeMode(UNTIL_DONE))
        await front.start()
        await front.skip(Permission.COMMAND)
        waiting = await front.gate(Permission.DIFF)
        assert waiting.special == (".github/workflows/ci.yml",)


async def test_leaving_the_session_leaves_its_mode(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT]) as stage:
        async with in_front_of(stage) as front:
            await front.submit(ChangeMode(EDITS))
            await front.start()
            await front.approve(Permission.CHECK)
            await front.gate(Permission.CHECK)
            await front.submit(Leave())
        (_, left) = [event for event in stage.events if isinstance(event, ModeChanged)]
        assert left == ModeChanged(ASK, ("diff answer.txt",))
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.gate(Permission.CHECK)
            assert again.state.mode == ActiveMode(kept=RuleScope.EVERYWHERE, spared=again.state.mode.spared)
