import asyncio
import threading
from pathlib import Path
from typing import cast

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.api.sessions.session_handle import UpdateFeed
from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.errors import ModelUnavailable, PlanError, RepoError, StorageError, TrustError
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    InterruptCause,
    ModelInterrupted,
    ProposalReplaced,
    ScratchpadChanged,
    SessionLeft,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
)
from agent_workbench.core.history.past_actions import PastAction
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    ChangeRule,
    EditProposal,
    EditScratchpad,
    Leave,
    ListPastActions,
    MergeTask,
    RetryTrouble,
    StartTask,
    StepReplay,
)
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import PastActionsFound, Refused
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.proposals import Verdict, shown_sha
from agent_workbench.core.repo.workspace import MergeMethod, MergePreview, WorkspaceRequest
from agent_workbench.core.settings import Approval, Approvals, Permission, Rule, Settings
from agent_workbench.core.state.session_state import Phase
from tests.adapters.git.fingerprint import fingerprint
from tests.engine.front import Front, handle_of, in_front_of
from tests.engine.stage import FINISH, SESSION, T1, Stage, a_stage, call, change, diff, reopened, task
from tests.fakes.ports import Break, Hang, HeldRules

CHECKS_OPEN = Approvals(check=Approval.AUTO)
ALL_BUT_DIFF = Approvals(check=Approval.AUTO, commit=Approval.AUTO, command=Approval.AUTO)
RIGHT = change("wrong", "right")
CHECKS = Rule(Permission.CHECK, any=True)


def said(stage: Stage, request: int = -1) -> str:
    """Return the last message of what the model was asked."""
    return stage.model.requests[request].messages[-1].text


async def test_a_decision_is_published_once_it_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[SessionUpdate] = []
    publish = UpdateFeed.publish

    def noted(feed: UpdateFeed, update: SessionUpdate) -> None:
        published.append(update)
        publish(feed, update)

    monkeypatch.setattr(UpdateFeed, "publish", noted)
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        await front.until(lambda update: update.live.waits, "the wait for a decision")
        published.clear()
        await front.submit(ApproveProposal(proposal.id, shown_sha(proposal)))
        await front.passed(proposal)
        at_gate = [update for update in published if update.state.waiting == proposal]
        assert all(update.live.waits for update in at_gate), "the screen was told of the key before it was recorded"
        first = next(update for update in published if update.state.waiting != proposal)
        assert not first.live.waits


async def test_a_task_from_plan_to_commit(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH]) as stage:
        before = fingerprint(stage.user.root, ("memory",))
        async with in_front_of(stage) as front:
            await front.start()
            baseline = await front.approve(Permission.CHECK)
            assert baseline.commands == ("grep -q right answer.txt",)
            shown = await front.approve(Permission.DIFF)
            assert shown.diff.endswith("-wrong\n+right\n")
            await front.approve(Permission.CHECK)
            commit = await front.approve(Permission.COMMIT)
            assert commit.diff == shown.diff
            assert commit.text.startswith("[Agent] Complete T-1: Make the answer right")
            await front.skip(Permission.MERGE)
            await front.over()
        assert stage.plan.statuses == [(T1, TaskStatus.IN_PROGRESS), (T1, TaskStatus.DONE)]
        (committed,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert stage.git("show", f"{committed.commit}:answer.txt") == "right"
        assert fingerprint(stage.user.root, ("memory",)) == before


async def test_merging_is_a_gate_of_its_own_and_the_last_one(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        await front.approve(Permission.MERGE)
        update = await front.over()
        assert update.state.run is not None
        assert update.state.run.merged is not None
        assert stage.git("show", "main:answer.txt") == "right"
        assert [type(event) for event in stage.events if isinstance(event, TaskMerged | TaskFinished)] == [
            TaskFinished,
            TaskMerged,
        ]


async def test_a_merge_that_was_refused_can_be_asked_for_again(tmp_path: Path) -> None:
    tasks = (task(), task("T-2", accept=("true",)))
    stage_of = a_stage(tmp_path, [RIGHT, FINISH, Hang("Thought: I")], approvals=ALL_BUT_DIFF, tasks=tasks)
    async with stage_of as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        first = await front.reject(Permission.MERGE, "not today")
        await front.over()
        await front.submit(MergeTask(T1))
        assert (await front.gate(Permission.MERGE)).id != first.id
        assert "nothing to merge of T-9" in await front.notice(MergeTask(TaskId("T-9")))
        assert "a merge waits at the gate" in await front.notice(StartTask(T1))
        await front.reject(Permission.MERGE, "not yet")
        await front.over()
        await front.submit(StartTask(TaskId("T-2")))
        assert "a task is being started; merge with `agent merge T-1`" in await front.notice(MergeTask(T1))


async def test_a_rejection_and_its_reason_reach_the_model(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [change("wrong", "rigth"), RIGHT], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.reject(Permission.DIFF, "that is misspelt")
        assert "+right" in (await front.gate(Permission.DIFF)).diff
        assert said(stage) == "The user rejected that: that is misspelt"
        assert stage.state.run is not None
        assert not stage.state.run.changed


async def test_a_skipped_command_does_not_run(tmp_path: Path) -> None:
    command = call("run_command", '{"command": "touch ran"}')
    settings = Settings(tools_allowed=("run_command", "write_diff"))
    async with (
        a_stage(tmp_path, [command, RIGHT], approvals=CHECKS_OPEN, settings=settings) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.skip(Permission.COMMAND)
        await front.gate(Permission.DIFF)
        assert said(stage) == "The user skipped that."
        assert "touch ran" not in stage.shell.lines


async def test_an_edited_diff_is_shown_again_and_is_what_is_applied(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [change("wrong", "rigth"), FINISH], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        edited = await front.edit(Permission.DIFF, diff("wrong", "right, of course"))
        assert edited.edited
        assert "+right, of course" in edited.diff
        await front.approve(Permission.DIFF)
        assert "+right, of course" in (await front.gate(Permission.COMMIT)).diff
        told = stage.model.requests[-1].messages[-1].text
        assert told.startswith("The user edited your diff before it was applied.\nApplied to answer.txt.")


async def test_an_edit_that_fits_nowhere_leaves_what_waits(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        assert "answer.txt" in await front.notice(EditProposal(waiting.id, diff("nowhere", "right")))
        assert await front.gate(Permission.DIFF) == waiting


async def test_an_edited_command_and_an_edited_message(tmp_path: Path) -> None:
    command = call("run_command", '{"command": "echo one"}')
    settings = Settings(tools_allowed=("run_command", "write_diff", "finish"))
    async with (
        a_stage(tmp_path, [command, RIGHT, FINISH], approvals=CHECKS_OPEN, settings=settings) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        assert (await front.edit(Permission.COMMAND, "echo two")).commands == ("echo two",)
        await front.approve(Permission.COMMAND)
        await front.approve(Permission.DIFF)
        assert "echo two" in stage.shell.lines
        assert "echo one" not in stage.shell.lines
        told = [message.text for message in stage.model.requests[1].messages][-1]
        assert told.startswith("The user edited that before it was carried out; it reads now: echo two\nexit code 0")
        await front.edit(Permission.COMMIT, "Say it right")
        await front.approve(Permission.COMMIT)
        await front.skip(Permission.MERGE)
        await front.over()
        assert stage.git("log", "-1", "--format=%s", "agent/T-1") == "Say it right"


async def test_an_empty_commit_message_is_not_taken(tmp_path: Path) -> None:
    approvals = Approvals(check=Approval.AUTO, diff=Approval.AUTO)
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=approvals) as stage, in_front_of(stage) as front:
        await front.start()
        waiting = await front.gate(Permission.COMMIT)
        assert "message" in await front.notice(EditProposal(waiting.id, "  \n"))
        assert await front.gate(Permission.COMMIT) == waiting


async def test_checks_cannot_be_edited_away(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage, in_front_of(stage) as front:
        await front.start()
        waiting = await front.gate(Permission.CHECK)
        assert "cannot be edited" in await front.notice(EditProposal(waiting.id, "true"))
        assert await front.gate(Permission.CHECK) == waiting


async def test_edited_arguments_are_held_to_the_schema(tmp_path: Path) -> None:
    approvals = Approvals(read=Approval.ASK, check=Approval.AUTO)
    sayings = [call("read_file", '{"path": "answer.txt"}'), RIGHT]
    async with a_stage(tmp_path, sayings, approvals=approvals) as stage, in_front_of(stage) as front:
        await front.start()
        waiting = await front.gate(Permission.READ)
        assert "not one line of JSON" in await front.notice(EditProposal(waiting.id, "answer.txt"))
        assert await front.gate(Permission.READ) == waiting
        await front.edit(Permission.READ, '{"path": "README.md"}')
        await front.approve(Permission.READ)
        await front.gate(Permission.DIFF)
        assert "README.md, lines 1 to 1" in said(stage)


async def test_an_approval_counts_for_what_was_shown_only(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        shown = await front.gate(Permission.DIFF)
        edited = await front.edit(Permission.DIFF, diff("wrong", "left"))
        assert edited.id == shown.id
        assert "look again" in await front.notice(ApproveProposal(shown.id, shown_sha(shown)))
        assert "no longer waits" in await front.notice(ApproveProposal(type(shown.id)("P-999"), shown_sha(shown)))
        assert await front.gate(Permission.DIFF) == edited


async def test_always_opens_a_kind_for_the_session(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=Approvals(diff=Approval.AUTO)) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.CHECK)
            await front.submit(ChangeRule(CHECKS, RuleScope.SESSION))
            await front.gate(Permission.COMMIT)
        decided = [event for event in stage.events if isinstance(event, ActionDecided)]
        assert {event.by for event in decided} == {
            "policy:any check",
            "policy:diff=auto",
            "policy:read=auto",
        }


async def test_a_rule_that_cannot_be_written_does_not_count(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT]) as stage, in_front_of(stage) as front:
        rules = cast("HeldRules", stage.ports.rules)
        rules.broken = TrustError("the repo is not trusted")
        await front.start()
        await front.gate(Permission.CHECK)
        assert "not trusted" in await front.notice(ChangeRule(CHECKS, RuleScope.REPO))
        assert "cannot be kept" in await front.notice(ChangeRule(Rule(Permission.COMMAND, any=True), RuleScope.REPO))
        assert (stage.state.rules, rules.rules) == ((), ())
        rules.broken = None
        await front.submit(ChangeRule(CHECKS, RuleScope.REPO))
        await front.gate(Permission.DIFF)
        assert rules.rules == (StoredRule(CHECKS, RuleScope.REPO),)
        rules.actions = (PastAction(SESSION, await front.gate(Permission.DIFF), Verdict.REJECT, "user"),)
        found = await front.outcome(ListPastActions(Permission.DIFF))
        assert isinstance(found, PastActionsFound)
        assert found.past.actions == rules.actions


async def test_always_never_merges(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage, in_front_of(stage) as front:
        await front.start()
        await front.submit(ChangeRule(Rule(Permission.MERGE, any=True), RuleScope.SESSION))
        await front.approve(Permission.DIFF)
        await front.gate(Permission.MERGE)


async def test_always_can_be_taken_back(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT]) as stage, in_front_of(stage) as front:
        await front.submit(ChangeRule(CHECKS, RuleScope.SESSION))
        await front.submit(ChangeRule(CHECKS, RuleScope.SESSION, always=False))
        await front.start()
        await front.gate(Permission.CHECK)


def given_up(stage: Stage) -> None:
    """Check that the task was rolled back and is failed."""
    events = stage.events
    assert [event.status for event in events if isinstance(event, TaskFinished)] == [TaskStatus.FAILED]
    assert len([event for event in events if isinstance(event, TaskRolledBack)]) == 1
    assert stage.plan.plan.task(T1).status is TaskStatus.FAILED


async def test_abort_while_thinking_stops_the_stream(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm", dollars=0.25)], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.dollars == 0.25)
            await front.submit(AbortTask())
            await front.over()
            assert stage.model.streams_ended == 1
        (broken,) = [event for event in stage.events if isinstance(event, ModelInterrupted)]
        assert (broken.cause, broken.partial) == (InterruptCause.STOPPED, "Thought: hm")
        assert broken.figures.dollars == 0.25
        assert not [event for event in stage.events if isinstance(event, ActionProposed) and event.proposal.step]
        given_up(stage)


async def test_abort_at_a_gate(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await front.submit(AbortTask())
            await front.over()
        assert [event.verdict for event in stage.events if isinstance(event, ActionDecided)][-1] is Verdict.ABORT
        given_up(stage)


async def test_abort_while_checks_run_ends_them(tmp_path: Path) -> None:
    slow = task(accept=("echo begun; sleep 1000",))
    async with a_stage(tmp_path, tasks=(slow,), approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.running and "begun" in it.live.running.tail)
            await front.submit(AbortTask())
            update = await front.over()
            assert update.live.running is None
        (finished,) = [event for event in stage.events if isinstance(event, ActionFinished)]
        assert finished.result is ActionResult.UNKNOWN
        given_up(stage)


async def test_abort_in_trouble(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [ModelUnavailable("it is gone")], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.trouble()
            await front.submit(AbortTask())
            await front.over()
        given_up(stage)


async def test_abort_keeps_what_was_tried(tmp_path: Path) -> None:
    approvals = Approvals(check=Approval.AUTO, diff=Approval.AUTO)
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=approvals) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.COMMIT)
            await front.submit(AbortTask())
            update = await front.over()
            assert update.state.run is not None
            checkpoint = update.state.run.checkpoint
        assert checkpoint is not None
        assert stage.git("show", f"{checkpoint.ref}:answer.txt") == "right"
        given_up(stage)


async def test_abort_comes_too_late_for_a_task_that_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage:
        closing, go_on = asyncio.Event(), asyncio.Event()
        set_status = stage.plan.set_status

        async def slowly(wanted: TaskId, status: TaskStatus) -> None:
            if status is TaskStatus.DONE and not closing.is_set():
                closing.set()
                await go_on.wait()
            await set_status(wanted, status)

        monkeypatch.setattr(stage.plan, "set_status", slowly)
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.DIFF)
            await closing.wait()
            assert "T-1 is over" in await front.notice(AbortTask())
            go_on.set()
            await front.skip(Permission.MERGE)
            await front.over()
        assert stage.plan.plan.task(T1).status is TaskStatus.DONE
        assert not [event for event in stage.events if isinstance(event, AbortAsked | TaskRolledBack)]


async def test_nothing_to_abort(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage, in_front_of(stage) as front:
        assert await front.notice(AbortTask()) == "no task is being worked on"
        assert "does not fit" in await front.notice(RetryTrouble())
        assert "does not fit" in await front.notice(StepReplay(1))


async def test_trouble_waits_for_a_retry(tmp_path: Path) -> None:
    async with (
        a_stage(
            tmp_path, [ModelUnavailable("it is gone", advice="start it"), Break("Thou"), RIGHT], approvals=CHECKS_OPEN
        ) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        trouble = (await front.trouble()).state.trouble
        assert trouble is not None
        assert (trouble.source, trouble.what, trouble.advice) == ("model", "it is gone", "start it")
        await front.submit(RetryTrouble())
        await front.until(lambda it: it.state.trouble is None)
        trouble = (await front.trouble()).state.trouble
        assert trouble is not None
        assert "no end" in trouble.what
        await front.submit(RetryTrouble())
        await front.gate(Permission.DIFF)
        assert len({request.messages for request in stage.model.requests}) == 1


async def test_leaving_while_streaming_is_taken_up_again(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert stage.model.streams_ended == 1
        assert stage.model.closed
        assert isinstance(stage.events[-1], SessionLeft)
        asked = stage.model.requests[0].messages
        async with reopened(stage, [RIGHT]) as again, in_front_of(again) as front:
            assert "+right" in (await front.gate(Permission.DIFF)).diff
            assert again.model.requests[0].messages == asked


async def test_leaving_while_a_check_runs_shows_it_as_unknown(tmp_path: Path) -> None:
    slow = task(accept=("echo begun >> ../begun; touch stray; test -e ../go || sleep 1000",))
    async with a_stage(tmp_path, tasks=(slow,), approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.activity == "running 1 check")
            await front.until(lambda it: it.state.run and it.state.run.gate.stage == "running")
        run = stage.state.run
        assert run is not None
        worktree = Path(run.workspace.path)
        (worktree.parent / "go").touch()
        async with reopened(stage, [RIGHT]) as again, in_front_of(again) as front:
            await front.gate(Permission.DIFF)
            finished = [event for event in again.events if isinstance(event, ActionFinished)]
            assert [event.result for event in finished] == [ActionResult.UNKNOWN, ActionResult.OK]
            assert not (worktree / "stray").exists()


async def test_a_waiting_proposal_still_waits_after_a_resumption(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            shown = await front.gate(Permission.DIFF)
        async with reopened(stage) as again, in_front_of(again) as front:
            assert await front.gate(Permission.DIFF) == shown
            one, other = await asyncio.gather(again.session.workspace(), again.session.workspace())
            assert one is other, "opened once, whoever wants it meanwhile"
            await front.approve(Permission.DIFF)


async def test_the_scratchpad_takes_what_both_wrote(tmp_path: Path) -> None:
    sayings = [call("note", '{"text": "from the model"}'), RIGHT]
    async with a_stage(tmp_path, sayings, approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
        await front.submit(EditScratchpad(T1, "", "from the user\n"))
        update = await front.until(lambda it: "from the user" in it.state.scratchpad(T1))
        assert "- from the model" in update.state.scratchpad(T1)
        assert (stage.user.root / "memory/scratch/T-1.md").read_text() == update.state.scratchpad(T1)
        changed = [event.by for event in stage.events if isinstance(event, ScratchpadChanged)]
        assert changed == ["model", "user"]


async def test_the_scratchpad_can_be_edited_while_the_model_speaks(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        await front.submit(EditScratchpad(T1, "", "mind the gap\n"))
        update = await front.until(lambda it: it.state.scratchpad(T1) == "mind the gap\n")
        assert update.live.streaming is not None
        assert stage.model.streams_ended == 0


async def test_starting_while_busy_is_refused(tmp_path: Path) -> None:
    tasks = (task(), task("T-2"))
    async with (
        a_stage(tmp_path, [Hang("Thought: hm")], tasks=tasks, approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert "finish or abort it first" in await front.notice(StartTask(TaskId("T-2")))
        assert stage.model.streams_ended == 0


async def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage, in_front_of(stage) as front:
        assert "has no task 'T-7'" in await front.notice(StartTask(TaskId("T-7")))
        assert stage.state.run is None


async def test_a_second_task_follows_the_first(tmp_path: Path) -> None:
    tasks = (task(), task("T-2", accept=("grep -q better answer.txt",)))
    sayings = [RIGHT, FINISH, change("wrong", "better")]
    async with (
        a_stage(tmp_path, sayings, tasks=tasks, approvals=ALL_BUT_DIFF) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.DIFF)
        await front.skip(Permission.MERGE)
        await front.over()
        await front.submit(StartTask())
        update = await front.until(lambda it: it.state.run and it.state.run.task == "T-2")
        assert [run.task for run in update.state.past] == [T1]
        await front.gate(Permission.DIFF)
        assert "(T-2)" in said(stage)
        assert len(stage.model.requests[-1].messages) == 2


async def test_nothing_is_said_to_be_done_while_the_gate_waits_or_all_is_over(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:

        def idle(update: SessionUpdate) -> bool:
            live = update.live
            return not live.activity and live.running is None and live.streaming is None

        await front.start()
        for kind in (Permission.DIFF, Permission.COMMIT, Permission.MERGE):
            await front.gate(kind)
            await front.until(idle, f"quiet at {kind}")
            await front.approve(kind)
        await front.over()
        await front.until(idle, "quiet at the end")


async def test_a_plan_that_cannot_be_read_is_said_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_stage(tmp_path, []) as stage:

        async def missing() -> Plan:
            raise PlanError("there is no plan", advice="write one")

        monkeypatch.setattr(stage.plan, "read", missing)
        async with in_front_of(stage) as front:
            update = await front.until(lambda it: it.live.no_plan)
            assert update.live.no_plan == "there is no plan (write one)"
            assert update.live.no_plan in await front.notice(StartTask(T1)), "it is read again, and is not there yet"


async def test_a_merge_that_cannot_even_be_offered_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage, in_front_of(stage) as front:

        async def broken(_: CommitId, _method: MergeMethod | None) -> MergePreview:
            raise RepoError("HEAD is unreadable", advice="look at it")

        monkeypatch.setattr(stage.ports.workspaces, "merge_preview", broken)
        await front.start()
        await front.approve(Permission.DIFF)
        update = await front.told("HEAD is unreadable")
        assert update.state.run is not None
        assert update.state.run.phase is Phase.OVER
        assert not update.ended


async def test_a_merge_waits_until_the_task_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage, in_front_of(stage) as front:
        set_status = stage.plan.set_status

        async def full(wanted: TaskId, status: TaskStatus) -> None:
            if status is TaskStatus.DONE:
                raise StorageError("the disk is full")
            await set_status(wanted, status)

        monkeypatch.setattr(stage.plan, "set_status", full)
        await front.start()
        await front.approve(Permission.DIFF)
        await front.trouble()
        assert "nothing to merge" in await front.notice(MergeTask(T1))
        monkeypatch.setattr(stage.plan, "set_status", set_status)
        await front.submit(RetryTrouble())
        await front.skip(Permission.MERGE)
        await front.over()
        assert stage.plan.plan.task(T1).status is TaskStatus.DONE


async def test_the_end_says_how_to_go_on(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        session = handle_of(stage)
        front = Front(session)
        life = asyncio.create_task(session.run())
        await front.start()
        await front.gate(Permission.CHECK)
        await front.submit(Leave())
        ended = await front.until(lambda it: it.ended)
        await life
        assert "agent tui" in ended.farewell


async def test_two_sessions_on_one_task(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT]) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.CHECK)
        assert not [event for event in stage.events if isinstance(event, ProposalReplaced)]
        other = stage.session.ports.workspaces
        request = stage.user.request(session=stage.state.session)
        with pytest.raises(Exception, match="T-1 is being worked on by session"):
            await other.open(request)


@pytest.mark.parametrize("intent", [AbortTask(), Leave()])
async def test_a_start_that_is_given_up_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intent: AbortTask | Leave
) -> None:
    async with a_stage(tmp_path, [RIGHT]) as stage:
        repository = stage.ports.workspaces
        assert isinstance(repository, Repository)
        opening, go_on = threading.Event(), threading.Event()
        open_ = repository._open

        def slowly(request: WorkspaceRequest) -> GitWorkspace:
            opening.set()
            go_on.wait()
            return open_(request)

        monkeypatch.setattr(repository, "_open", slowly)
        async with in_front_of(stage) as front:
            await front.start()
            await asyncio.to_thread(opening.wait)
            aborted = front.session.submit(intent)
            go_on.set()
            if isinstance(intent, AbortTask):
                assert await aborted == Refused("no task is being worked on")
                await front.start()
                await front.gate(Permission.CHECK)
        workspace = await repository.open(stage.user.request(session=stage.state.session))
        await workspace.release(keep=False)


async def test_a_merge_goes_where_it_was_shown_to_go(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=ALL_BUT_DIFF) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        shown = await front.gate(Permission.MERGE)
        assert "into main" in shown.text
        stage.git("switch", "--quiet", "--create", "other")
        await front.approve(Permission.MERGE)
        again = await front.gate(Permission.MERGE)
        assert "into other" in again.text
        assert stage.git("show", "other:answer.txt") == "wrong"
        await front.approve(Permission.MERGE)
        await front.over()
        assert stage.git("show", "other:answer.txt") == "right"
        assert stage.git("show", "main:answer.txt") == "wrong"
