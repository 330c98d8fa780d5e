"""An abort, or leaving, at moments at which it once was lost."""

import asyncio
import threading
from pathlib import Path

import pytest

from agent_workbench.adapters.git.working_trees.merge import CheckoutMerge
from agent_workbench.core.approval_rules import RuleScope
from agent_workbench.core.background import uninterrupted
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionResult,
    ActionStarted,
    PatchApplied,
    SessionLeft,
    TaskMerged,
    TaskRolledBack,
    TroubleMet,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    ChangeRule,
    Leave,
    RetryTrouble,
    StartTask,
    UndoStep,
)
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.proposals import Verdict, shown_sha
from agent_workbench.core.repo.workspace import MergeMethod, MergeOutcome, MergeTarget, WorkspaceRequest
from agent_workbench.core.settings import Approval, Approvals, Permission, Rule
from tests.engine.front import Front, handle_of, in_front_of
from tests.engine.stage import FINISH, T1, Stage, a_stage, change, hold_worktrees, reopened, task

CHECKS_OPEN = Approvals(check=Approval.AUTO)
ALL_BUT_DIFF = Approvals(check=Approval.AUTO, commit=Approval.AUTO)
RIGHT = change("wrong", "right")
CHECKS = Rule(Permission.CHECK, any=True)
SUMMARIES = Rule(Permission.SUMMARY, any=True)


def given_up(stage: Stage) -> None:
    """Check that the task failed with nothing of it applied."""
    events = stage.events
    assert stage.plan.plan.task(T1).status is TaskStatus.FAILED
    assert len([event for event in events if isinstance(event, TaskRolledBack)]) == 1
    assert not [event for event in events if isinstance(event, PatchApplied)]


async def test_an_abort_right_after_an_approval_carries_nothing_out(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.DIFF)
            await front.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
            await front.submit(AbortTask())
            await front.over()
        events = stage.events
        assert [event.verdict for event in events if isinstance(event, ActionDecided)][-1] is Verdict.APPROVE
        assert len([event for event in events if isinstance(event, AbortAsked)]) == 1
        assert waiting.id not in [event.proposal_id for event in events if isinstance(event, ActionStarted)]
        given_up(stage)


async def test_an_abort_at_a_gate_ends_the_trouble_too(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await stage.session.record(TroubleMet("storage", "the disk was full", ""))
            await front.submit(AbortTask())
            assert (await front.over()).state.trouble is None
        given_up(stage)


async def test_an_abort_while_the_workspace_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
        async with reopened(stage) as again, in_front_of(again) as front:
            open_ = again.ports.workspaces.open

            async def broken(_: WorkspaceRequest) -> Workspace:
                raise WorkspaceError("the worktree is on a disk that is away")

            monkeypatch.setattr(again.ports.workspaces, "open", broken)
            await front.approve(Permission.DIFF)
            assert (await front.trouble()).state.trouble == TroubleMet(
                "carry", "the worktree is on a disk that is away", ""
            )
            await front.submit(AbortTask())
            met = await front.until(lambda it: it.state.trouble and it.state.trouble.source == "rollback")
            assert met.state.run is not None
            assert met.state.run.reason == "aborted by the user"
            monkeypatch.setattr(again.ports.workspaces, "open", open_)
            await front.submit(RetryTrouble())
            await front.over()
        given_up(stage)


async def test_an_abort_at_the_merge_skips_the_merge_and_nothing_else(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.DIFF)
            await front.gate(Permission.MERGE)
            await front.submit(AbortTask())
            await front.over()
        assert [event.verdict for event in stage.events if isinstance(event, ActionDecided)][-1] is Verdict.SKIP
        assert not [event for event in stage.events if isinstance(event, AbortAsked | TaskRolledBack)]
        assert stage.plan.plan.task(T1).status is TaskStatus.DONE
        assert stage.git("show", "agent/T-1:answer.txt") == "right"
        assert stage.git("show", "main:answer.txt") == "wrong"


class HeldMerge:
    """The merge of a stage, which begins and then waits until `go` is set."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = asyncio.Event(), threading.Event()
        merging, loop = CheckoutMerge.merge, asyncio.get_running_loop()

        def held(
            whole: CheckoutMerge, commit: str, message: str, target: MergeTarget, method: MergeMethod | None
        ) -> MergeOutcome:
            loop.call_soon_threadsafe(self.begun.set)
            assert self.go.wait(20)
            return merging(whole, commit, message, target, method)

        monkeypatch.setattr(CheckoutMerge, "merge", held)


def merged_on_record(stage: Stage) -> None:
    """Check that the merge was made, and that its record says so."""
    assert stage.git("show", "main:answer.txt") == "right"
    events = stage.events
    (finished,) = [event for event in events if isinstance(event, ActionFinished)][-1:]
    assert (finished.result, "main is at" in finished.observation) == (ActionResult.OK, True)
    assert [event for event in events if isinstance(event, TaskMerged)]
    assert not [event for event in events if isinstance(event, TaskRolledBack)]


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("intent", [Leave(), AbortTask(), UndoStep()], ids=["leave", "abort", "undo"])
async def test_a_merge_that_runs_is_brought_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intent: Leave | AbortTask | UndoStep
) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.DIFF)
            held = HeldMerge(stage, monkeypatch)
            await front.approve(Permission.MERGE)
            await held.begun.wait()
            if isinstance(intent, Leave):
                await front.submit(intent)
            else:
                said = await front.notice(intent)
                assert "T-1" in said
                assert "is being merged" in said or isinstance(intent, UndoStep)
            held.go.set()
            await front.until(lambda it: it.ended or (it.state.run and it.state.run.merged))
        merged_on_record(stage)


async def test_a_merge_is_brought_to_its_end_where_the_session_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a signal, or when the terminal is closed."""
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage:
        session = handle_of(stage)
        front, life = Front(session), asyncio.create_task(session.run())
        await front.start()
        await front.approve(Permission.DIFF)
        held = HeldMerge(stage, monkeypatch)
        await front.approve(Permission.MERGE)
        await held.begun.wait()
        life.cancel()
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await life
        merged_on_record(stage)


async def test_a_merge_that_does_not_end_is_given_up_in_the_end(tmp_path: Path) -> None:
    never = asyncio.Event()
    work = asyncio.create_task(uninterrupted(never.wait(), 0.0))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_a_checkout_that_moves_while_the_merge_begins_has_it_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        held = HeldMerge(stage, monkeypatch)
        shown = await front.approve(Permission.MERGE)
        await held.begun.wait()
        stage.git("switch", "--quiet", "--create", "other")
        held.go.set()
        again = await front.gate(Permission.MERGE)
        assert again.id != shown.id
        assert "into other" in again.text
        await front.told("nothing was merged: the merge was shown for main at")
        assert stage.git("show", "main:answer.txt", "other:answer.txt") == "wrong\nwrong"
        await front.approve(Permission.MERGE)
        await front.over()
        assert stage.git("show", "other:answer.txt") == "right"


@pytest.mark.parametrize("intent", [Leave(), AbortTask()], ids=["leave", "abort"])
async def test_the_making_of_a_worktree_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intent: Leave | AbortTask
) -> None:
    async with a_stage(tmp_path, tasks=(task(), task("T-2"))) as stage:
        open_ = stage.ports.workspaces.open
        making = hold_worktrees(stage, monkeypatch)
        async with in_front_of(stage) as front:
            await front.start()
            await making.wait()
            assert "finish or abort it first" in await front.notice(StartTask(TaskId("T-2")))
            aborted = front.session.submit(intent)
            if isinstance(intent, AbortTask):
                assert await aborted == Refused("no task is being worked on")
                monkeypatch.setattr(stage.ports.workspaces, "open", open_)
                await front.start()
                await front.gate(Permission.CHECK)
        assert isinstance(stage.events[-1], SessionLeft)


async def test_always_counts_until_the_session_is_left(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=Approvals(diff=Approval.AUTO)) as stage:
        async with in_front_of(stage) as front:
            await front.submit(ChangeRule(CHECKS, RuleScope.SESSION))
            await front.submit(ChangeRule(SUMMARIES, RuleScope.EVERYWHERE))
            await front.start()
            await front.gate(Permission.COMMIT)
        assert [each.rule for each in stage.state.rules] == [CHECKS, SUMMARIES]
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.gate(Permission.COMMIT)
            assert [each.rule for each in again.state.rules] == [SUMMARIES]


async def test_after_a_resumption_the_gate_asks_again(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT]) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.CHECK)
            await front.submit(ChangeRule(CHECKS, RuleScope.SESSION))
            await front.gate(Permission.DIFF)
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.approve(Permission.DIFF)
            await front.gate(Permission.CHECK)
