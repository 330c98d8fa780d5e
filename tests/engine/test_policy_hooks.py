"""Hooks before a decision and beside the events: what they may do, and what nothing waits for."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    ActionDecided,
    HookAnswered,
    HookStarted,
    SessionConfigured,
    SessionLeft,
    TaskFinished,
)
from agent_workbench.core.hook_answers import (
    INTERRUPTED,
    NOT_ALL_SEEN,
    HookAnswer,
    HookOutcome,
    HookRun,
    HookVerdict,
)
from agent_workbench.core.hook_document import MAX_TEXT_CHARS
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.inbox import InboxDecision, reference_to
from agent_workbench.core.intents import AbortTask, ApproveProposal, EditProposal, Leave, RejectProposal
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.proposals import Verdict, shown_sha
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, Settings
from agent_workbench.core.settings.extensions import HookPoint, HookSettings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.flow import Decide, RunHook, next_move
from agent_workbench.engine.policy import ruling
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.sessions import TabState, view_tab
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import ACCEPT, FINISH, OPEN, T1, Stage, a_stage, change, reopened, task
from tests.fakes.hooks import ScriptedHooks, says

RIGHT = change("wrong", "right")
SECRETS = "secrets"
ASKS = says('{"decision": "ask", "reason": "a key is in it"}')
REFUSES = says('{"decision": "refuse", "reason": "no such word here"}')


def hooked(*points: HookPoint, seconds: float = 30.0) -> Settings:
    return Settings(hooks=((SECRETS, HookSettings(points, "check", seconds)),))


def answers(stage: Stage) -> list[HookAnswered]:
    return [each for each in stage.events if isinstance(each, HookAnswered)]


def decisions(stage: Stage, kind: str) -> list[ActionDecided]:
    return [each for each in stage.events if isinstance(each, ActionDecided) and kind in each.by]


async def test_no_objection_lets_the_policy_decide(tmp_path: Path) -> None:
    hooks = ScriptedHooks()
    settings = hooked(HookPoint.DIFF_PROPOSED, HookPoint.COMMIT_PROPOSED)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, hooks=hooks, settings=settings
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))

    assert ending.exit_code is ExitCode.DONE
    assert [(point, read["proposal"]["kind"]) for _, point, read in hooks.told] == [  # type: ignore[index,call-overload]
        (HookPoint.DIFF_PROPOSED, "diff"),
        (HookPoint.COMMIT_PROPOSED, "commit"),
    ]
    assert {each.verdict for each in answers(stage)} == {HookVerdict.NONE}
    assert stage.state.hook_runs == ()


async def test_the_document_of_a_diff_says_all_of_it(tmp_path: Path) -> None:
    hooks = ScriptedHooks()
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, hooks=hooks, settings=settings
    ) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        ((_, _, read),) = hooks.told
    proposal = read["proposal"]
    assert isinstance(proposal, dict)
    assert (read["version"], read["event"], read["hook"], read["cut"]) == (1, "diff_proposed", SECRETS, [])
    assert (read["session"], read["repo"], read["unattended"]) == (stage.state.session, str(stage.user.root), True)
    assert "+right" in str(proposal["diff"])
    assert proposal["paths"] == ["answer.txt"]
    assert str(proposal["reference"]).startswith(f"{stage.state.session}/{proposal['id']}@")


async def test_a_refusal_goes_to_the_model_with_its_reason(tmp_path: Path) -> None:
    hooks = ScriptedHooks({SECRETS: [REFUSES, HookOutcome()]})
    sayings = [change("wrong", "rigth"), RIGHT, FINISH]
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, hooks=hooks, settings=settings) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))

    assert ending.exit_code is ExitCode.DONE
    (refused,) = decisions(stage, "hook=")
    assert (refused.verdict, refused.by) == (Verdict.REJECT, "policy:hook=secrets")
    assert refused.reason == "hook secrets refuses: no such word here"
    assert "The policy rejected that: hook secrets refuses: no such word here" in str(stage.model.requests[-1].messages)


NONSENSE = [
    says('{"decision": "allow"}'),
    says('{"decision": "approve", "reason": "trust me"}'),
    says('{"decision": "ask", "permissionDecision": "allow"}'),
    says('{"decision": "refuse"} {"decision": "allow"}'),
    says('{"decision": "refuse", "decision": "ask"}'),
    says('{"decision": ["refuse"]}'),
    says('{"decision": "refuse", "reason": {"a": 1}}'),
    says("[]"),
    says("null"),
    says("ok"),
    says("[" * 100_000),
    says("\x1b]52;c;cm0gLXJm\x07"),
    says(f'{{"decision": "refuse", "reason": "{"x" * 30_000}"}}'),
    HookOutcome('{"decision": "refuse", "reason": "x"}', failure="exit code 1: \x1b[31mred"),
    HookOutcome(failure="timed out after 30 s"),
]


@pytest.mark.slow(quick=4)
@pytest.mark.parametrize("outcome", NONSENSE)
async def test_nonsense_asks_for_a_person(tmp_path: Path, outcome: HookOutcome) -> None:
    hooks = ScriptedHooks({SECRETS: [outcome]})
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with a_stage(tmp_path, [RIGHT], approvals=OPEN, headless=True, hooks=hooks, settings=settings) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))

    assert ending.exit_code is ExitCode.PARKED
    (answer,) = answers(stage)
    assert (answer.verdict, answer.failed) == (HookVerdict.ASK, True)
    assert len(answer.reason) <= 500
    assert answer.reason.isprintable()


@pytest.mark.parametrize("approval", [each for each in Approval if each is not Approval.ONCE])
@pytest.mark.parametrize("headless", [True, False])
@pytest.mark.parametrize("kind", Permission)
@pytest.mark.parametrize("verdict", [None, *HookVerdict])
def test_no_answer_ever_approves(
    kind: Permission, approval: Approval, verdict: HookVerdict | None, *, headless: bool
) -> None:
    """Whatever hooks say, an approval stays one or becomes less, and nothing becomes an approval."""
    proposal = KINDS[kind](ProposalId("P-1"), "write_diff", "text", 1, paths=("a.py",))
    config = SessionConfigured(
        *(Approvals(**{kind.value: approval}), Limits(), (), "", "", 10, 1.0),  # type: ignore[arg-type]
        SandboxFacts("bwrap", holds=True, network=False),
        headless,
    )
    answer = HookAnswer(verdict, "why") if verdict is not None else None
    without = SessionState(config=config)
    runs = [HookRun(proposal.id, SECRETS, point, answer) for point in HookPoint if point.value == f"{kind}_proposed"]
    found, before = ruling(replace(without, hook_runs=tuple(runs)), proposal), ruling(without, proposal)
    if found is not None and found.verdict is Verdict.APPROVE:
        assert found == before
        assert verdict is HookVerdict.NONE or not runs
    if runs and verdict is HookVerdict.REFUSE:
        assert found is not None
        assert found.verdict is Verdict.REJECT


async def test_an_ask_parks_what_the_policy_would_pass_and_a_person_decides(tmp_path: Path) -> None:
    hooks = ScriptedHooks({SECRETS: [ASKS]})
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, hooks=hooks, settings=settings
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.PARKED
        waiting = stage.state.waiting
        assert waiting is not None
        reference = reference_to(stage.state.session, waiting)
        assert reference is not None
        await stage.ports.inbox.put(InboxDecision(reference, Verdict.APPROVE, made_by="ada@laptop", made_at="now"))
        async with reopened(stage, [FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
    assert ending.exit_code is ExitCode.DONE
    assert [each.verdict for each in answers(stage)] == [HookVerdict.ASK]  # not asked again after the restart
    assert len(decisions(stage, "user")) == 1


async def test_a_hook_that_a_crash_interrupted_asks_and_is_not_run_again(tmp_path: Path) -> None:
    hooks = ScriptedHooks()
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, hooks=hooks, settings=settings
    ) as stage:
        await run_until_killed(stage, HookStarted)
        before = len(hooks.told)
        async with reopened(stage, []) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
    assert ending.exit_code is ExitCode.PARKED
    assert len(hooks.told) == before
    (answer,) = answers(stage)
    assert (answer.verdict, answer.reason, answer.failed) == (HookVerdict.ASK, INTERRUPTED, True)


async def test_who_approves_by_hand_does_not_wait_for_a_hook(tmp_path: Path) -> None:
    hooks = ScriptedHooks(slow=[SECRETS])
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with (
        a_stage(
            tmp_path, [RIGHT, FINISH], approvals=replace(OPEN, diff=Approval.ASK), hooks=hooks, settings=settings
        ) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        update = await front.until(lambda it: isinstance(next_move(it.state), RunHook) and it.live.activity)
        assert view_tab(update).state is TabState.RUNNING  # nobody is called while the hook looks at it
        assert update.live.activity.startswith("hook secrets")
        proposal = update.state.waiting
        assert proposal is not None
        await hooks.began.wait()
        assert await front.outcome(ApproveProposal(proposal.id, shown_sha(proposal))) == Accepted()
        await front.until(lambda it: it.state.run and it.state.run.changed)
        assert hooks.stopped == [SECRETS]
    assert answers(stage) == []


@pytest.mark.parametrize("intent", ["abort", "reject", "leave", "stale"])
async def test_nothing_waits_for_a_hook(tmp_path: Path, intent: str) -> None:
    hooks = ScriptedHooks(slow=[SECRETS])
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with (
        a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, hooks=hooks, settings=settings) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        update = await front.until(lambda it: isinstance(next_move(it.state), RunHook))
        await hooks.began.wait()
        proposal = update.state.waiting
        assert proposal is not None
        match intent:
            case "abort":
                await front.outcome(AbortTask())
                await front.over()
            case "reject":
                await front.outcome(RejectProposal(proposal.id, "no"))
            case "leave":
                await front.outcome(Leave())
            case "stale":
                assert isinstance(await front.outcome(ApproveProposal(proposal.id, "another")), Refused)
                after = await front.until(lambda it: isinstance(next_move(it.state), Decide))
                assert ruling(after.state, proposal) is None  # what nobody let answer asks
    assert hooks.stopped == [SECRETS]


async def test_an_edited_proposal_is_looked_at_again(tmp_path: Path) -> None:
    hooks = ScriptedHooks({SECRETS: [ASKS, HookOutcome()]})
    settings = hooked(HookPoint.DIFF_PROPOSED)
    async with (
        a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, hooks=hooks, settings=settings) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        await front.until(lambda it: isinstance(next_move(it.state), Decide))
        edited = proposal.diff.replace("+right", "+right indeed")
        assert await front.outcome(EditProposal(proposal.id, edited)) == Accepted()
        await front.until(lambda it: it.state.run and it.state.run.changed)
    assert [each.verdict for each in answers(stage)] == [HookVerdict.ASK, HookVerdict.NONE]


async def test_what_a_hook_cannot_read_in_full_asks(tmp_path: Path) -> None:
    hooks = ScriptedHooks()
    long = task(accept=(f"{ACCEPT} # {'x' * MAX_TEXT_CHARS}",))
    settings = hooked(HookPoint.CHECK_PROPOSED)
    async with a_stage(
        tmp_path, [], tasks=(long,), approvals=OPEN, headless=True, hooks=hooks, settings=settings
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
    assert ending.exit_code is ExitCode.PARKED
    assert [each.reason for each in answers(stage)] == [NOT_ALL_SEEN]
    assert hooks.told[0][2]["cut"] == ["proposal.commands"]


async def test_events_are_told_once_and_in_their_order(tmp_path: Path) -> None:
    points = (HookPoint.TASK_STARTED, HookPoint.CHECKS_FINISHED, HookPoint.DIFF_APPLIED, HookPoint.TASK_DONE)
    hooks = ScriptedHooks({SECRETS: [HookOutcome(failure="exit code 1"), HookOutcome()]})
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, hooks=hooks, settings=hooked(*points)
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        async with reopened(stage) as again:
            await run_unattended(again.session, again.recorder, (T1,))
    assert ending.exit_code is ExitCode.DONE
    told = [point for _, point, _ in hooks.told]
    assert [*dict.fromkeys(told)] == list(points)
    assert told.count(HookPoint.TASK_DONE) == 1
    assert answers(stage)[0].failed
    assert isinstance(stage.events[-1], SessionLeft)


async def test_a_hook_is_told_what_the_journal_has_and_no_secret(tmp_path: Path) -> None:
    hooks = ScriptedHooks()
    settings = hooked(HookPoint.TASK_FAILED)
    async with a_stage(tmp_path, secrets={"MY_TOKEN": "hunter2-and-more"}, hooks=hooks, settings=settings) as stage:
        await stage.session.record(TaskFinished(T1, TaskStatus.FAILED, "it printed hunter2-and-more"))
        await stage.session.hooks.finish()
    ((_, _, read),) = hooks.told
    assert str(read["reason"]).startswith("it printed ")
    assert "hunter2" not in json.dumps(read)


async def test_a_proposal_that_waits_is_told_once(tmp_path: Path) -> None:
    hooks = ScriptedHooks()
    settings = hooked(HookPoint.WAITS_FOR_PERSON)
    asks = replace(OPEN, diff=Approval.ASK)
    async with a_stage(tmp_path, [RIGHT], approvals=asks, headless=True, hooks=hooks, settings=settings) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.PARKED
        async with reopened(stage) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.PARKED
    ((_, point, read),) = hooks.told
    assert point is HookPoint.WAITS_FOR_PERSON
    assert "diff" in json.dumps(read)


async def test_what_a_hook_asked_is_told_with_the_proposal_that_waits(tmp_path: Path) -> None:
    hooks = ScriptedHooks({SECRETS: [ASKS]})
    settings = hooked(HookPoint.DIFF_PROPOSED, HookPoint.WAITS_FOR_PERSON)
    async with a_stage(tmp_path, [RIGHT], approvals=OPEN, headless=True, hooks=hooks, settings=settings) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
    told = hooks.told[-1]
    assert told[1] is HookPoint.WAITS_FOR_PERSON
    assert told[2]["proposal"]["objections"] == ["hook secrets asks: a key is in it"]  # type: ignore[index,call-overload]


async def test_a_hook_that_hangs_ends_with_the_session(tmp_path: Path) -> None:
    hooks = ScriptedHooks(slow=[SECRETS])
    settings = hooked(HookPoint.TASK_DONE, seconds=0.01)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, hooks=hooks, settings=settings
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
    assert ending.exit_code is ExitCode.DONE
    assert hooks.stopped == [SECRETS]
