import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core import events as e
from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.proposals import CHECKS, COMMIT, MERGE, ProposalStage, Verdict
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.repo.workspace import Checkpoint, MergeOutcome, WorkspaceFacts
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from tests.fakes.runs import made_of
from tests.strategies import events, recorded

SESSION = SessionId("20260102T030405-abc234")
T1, P1 = TaskId("T-1"), ProposalId("P-1")
BASE, TREE = CommitId("b" * 40), "t" * 40
START = e.SessionStarted(SESSION, "/repo", BASE, "0")


def task_started(*, checks: tuple[str, ...] = ("test",), required: int = 1) -> e.TaskStarted:
    facts = WorkspaceFacts("/w", "agent/T-1", BASE, TREE)
    return e.TaskStarted(T1, Task(T1, "It"), facts, checks, ("write_diff",), required)


def state_after(*given_: e.Event) -> SessionState:
    return fold_all(e.Recorded(seq, "now", event, f"h{seq}") for seq, event in enumerate((START, *given_)))


def run_after(*given_: e.Event, checks: tuple[str, ...] = ("test",)) -> TaskRun:
    run = state_after(task_started(checks=checks), *given_).run
    assert run is not None
    return run


def proposed(
    tool: str = "write_diff", kind: Permission = Permission.DIFF, purpose: CheckPurpose | None = None
) -> e.ActionProposed:
    return e.ActionProposed(made_of(kind, tool, "text", purpose=purpose))


def decided(verdict: Verdict) -> e.ActionDecided:
    return e.ActionDecided(P1, verdict, "user", "why" if verdict is Verdict.REJECT else "")


def finished(result: e.ActionResult = e.ActionResult.OK) -> e.ActionFinished:
    return e.ActionFinished(P1, result, "seen", 2.0)


def checked(code: int, purpose: CheckPurpose = CheckPurpose.AFTER_DIFF) -> e.TestsFinished:
    return e.TestsFinished(purpose, (CheckResult("test", code, "out", 1.0),))


APPLIED = e.PatchApplied(P1, ("a",), "sha", "u" * 40)
FINISH = (proposed("finish", Permission.READ), decided(Verdict.APPROVE), e.ActionStarted(P1), finished())


@given(recorded(30))
def test_folding_is_total_and_remembers_where_it_stands(story: tuple[e.Recorded, ...]) -> None:
    state = fold_all(story)
    assert state.seq == len(story) - 1
    assert (state.time, state.hash) == ((story[-1].time, story[-1].hash) if story else ("", ""))


@given(recorded(30), st.integers(0, 30))
def test_folding_goes_on_from_anywhere(story: tuple[e.Recorded, ...], place: int) -> None:
    assert fold_all(story[place:], fold_all(story[:place])) == fold_all(story)


@given(recorded(30).filter(lambda story: not any(isinstance(each.event, e.ChatStarted) for each in story)))
def test_a_run_remembers_all_that_happened_since_it_began(story: tuple[e.Recorded, ...]) -> None:
    """A chat takes no task, so stories with one are left out."""
    starts = [place for place, each in enumerate(story) if isinstance(each.event, e.TaskStarted)]
    state = fold_all(story)
    runs = [*state.past, *([state.run] if state.run else [])]
    ends = [*starts[1:], len(story)] if starts else []
    assert [tuple(run.history) for run in runs] == [story[begin:end] for begin, end in zip(starts, ends, strict=True)]


async def _live_and_read_back(folder: Path, story: list[e.Event]) -> tuple[SessionState, SessionState]:
    writer = await asyncio.to_thread(JournalWriter.open_new, folder, Redactor([("API_TOKEN", "0123456789")]))
    state = SessionState()
    for seq, event in enumerate(story):
        state = fold(state, await writer.append(seq, f"2026-01-02T03:04:05.{seq:06d}Z", event))
    await writer.close()
    return state, fold_all((await asyncio.to_thread(read_journal, folder)).events)


NOT_FIRST = events().filter(lambda event: not isinstance(event, e.SessionStarted))


@settings(max_examples=60)
@given(st.lists(NOT_FIRST, max_size=12))
@pytest.mark.slow
def test_live_and_read_back_are_the_same(story: list[e.Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live, back = asyncio.run(_live_and_read_back(Path(folder) / SESSION, [START, *story]))
    assert live == back


def test_a_session_begins() -> None:
    state = state_after()
    assert (state.session, state.repo, state.base, state.seq, state.hash) == (SESSION, "/repo", BASE, 0, "h0")
    assert state.run is None
    assert not state.unfinished


def test_trouble_is_over_after_a_retry_a_resumption_or_an_abort() -> None:
    trouble = e.TroubleMet("model", "gone", "")
    assert state_after(trouble).trouble == trouble
    for cure in (e.RetryAsked(), e.SessionResumed()):
        assert state_after(trouble, cure).trouble is None
    assert state_after(task_started(), trouble, e.AbortAsked("why")).trouble is None
    assert state_after(trouble, task_started()).trouble is None


def test_leaving_and_coming_back() -> None:
    assert state_after(e.SessionLeft("lunch")).left == "lunch"
    assert state_after(e.SessionLeft("lunch"), e.SessionResumed()).left == ""


def test_a_kind_is_opened_once_and_closed() -> None:
    old = e.ApprovalChanged(Permission.DIFF, always=True)
    assert [each.rule for each in state_after(old, old).rules] == [Rule(Permission.DIFF, any=True)]
    assert state_after(old, e.ApprovalChanged(Permission.DIFF, always=False)).rules == ()
    kept = e.ApprovalChanged(Permission.READ, always=True, rule=Rule(Permission.READ, tool="grep"), kept=RuleScope.USER)
    assert state_after(old, kept, e.SessionResumed()).rules == (
        StoredRule(Rule(Permission.READ, tool="grep"), RuleScope.USER),
    )


def test_model_plan_and_scratchpads_are_the_newest() -> None:
    facts = ModelFacts("url", "name", 10)
    plan = Plan((Task(T1, "It"),))
    state = state_after(
        e.ModelObserved(facts),
        e.PlanRead("p", plan),
        e.TaskStatusChanged(T1, TaskStatus.DONE),
        e.ScratchpadChanged(T1, "a", e.Author.USER),
        e.ScratchpadChanged(T1, "b", e.Author.MODEL),
    )
    assert state.model == facts
    assert state.plan.task(T1).status is TaskStatus.DONE
    assert state.scratchpad(T1) == "b"
    assert state.scratchpad(TaskId("T-2")) == ""


def test_a_task_with_checks_begins_with_its_baseline() -> None:
    assert run_after().phase is Phase.BASELINE
    assert run_after(checks=()).phase is Phase.RETRIEVING
    assert state_after(task_started()).unfinished


@pytest.mark.parametrize(
    ("purpose", "verdict", "phase"),
    [
        (CheckPurpose.BASELINE, Verdict.REJECT, Phase.RETRIEVING),
        (CheckPurpose.BASELINE, Verdict.SKIP, Phase.RETRIEVING),
        (CheckPurpose.AFTER_DIFF, Verdict.REJECT, Phase.STEPPING),
        (CheckPurpose.AFTER_DIFF, Verdict.SKIP, Phase.STEPPING),
        (CheckPurpose.FINAL, Verdict.REJECT, Phase.STEPPING),
        (CheckPurpose.FINAL, Verdict.SKIP, Phase.COMMITTING),
        (CheckPurpose.ASKED, Verdict.REJECT, Phase.STEPPING),
    ],
)
def test_where_a_check_that_was_refused_leads(purpose: CheckPurpose, verdict: Verdict, phase: Phase) -> None:
    run = run_after(proposed(CHECKS, Permission.CHECK, purpose), decided(verdict))
    assert (run.phase, run.gate.stage) == (phase, ProposalStage.REFUSED)


@pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.SKIP])
def test_where_other_refusals_lead(verdict: Verdict) -> None:
    assert run_after(proposed(COMMIT, Permission.COMMIT), decided(verdict)).phase is Phase.STEPPING
    assert run_after(proposed(MERGE, Permission.MERGE), decided(verdict)).phase is Phase.OVER


def test_an_abort_at_the_gate_rolls_back() -> None:
    run = run_after(proposed(), decided(Verdict.ABORT))
    assert (run.phase, run.gate.stage, run.reason) == (Phase.ROLLING_BACK, ProposalStage.REFUSED, "aborted")


def test_a_proposal_from_the_gate_to_its_end() -> None:
    approved = (proposed(), decided(Verdict.APPROVE))
    assert run_after(proposed()).gate.waiting == proposed().proposal
    assert run_after(*approved).gate.stage is ProposalStage.APPROVED
    assert run_after(*approved).gate.waiting is None
    assert run_after(*approved, e.ActionStarted(P1)).gate.stage is ProposalStage.RUNNING
    done = run_after(*approved, e.ActionStarted(P1), finished())
    assert (done.gate.stage, done.working_seconds, done.tool_calls) == (ProposalStage.FINISHED, 2.0, 1)
    unknown = run_after(*approved, e.ActionStarted(P1), finished(e.ActionResult.UNKNOWN))
    assert (unknown.gate.stage, unknown.failures) == (ProposalStage.UNKNOWN, 1)


def test_what_replaces_a_proposal_waits_again() -> None:
    other = DiffProposal(P1, "write_diff", "other", 1)
    run = run_after(proposed(), decided(Verdict.APPROVE), e.ProposalReplaced(other, "moved", e.Author.WORKBENCH))
    assert run.gate.waiting == other


def test_only_the_models_calls_are_counted() -> None:
    assert run_after(proposed(CHECKS, Permission.CHECK)).tool_calls == 0
    assert run_after(proposed()).tool_calls == 1
    assert run_after(e.ActionRejected(1, "no")).tool_calls == 1
    cut = e.ModelInterrupted(1, "x", e.InterruptCause.LENGTH)
    assert (run_after(cut).tool_calls, run_after(cut).failures, run_after(cut).answered_step) == (1, 1, 1)
    stopped = e.ModelInterrupted(1, "x", e.InterruptCause.STOPPED)
    assert (run_after(stopped).tool_calls, run_after(stopped).failures, run_after(stopped).answered_step) == (0, 0, 0)


def test_answers_cost() -> None:
    figures = AnswerFigures(100, 60, 20, 1.0, 2.0)
    run = run_after(
        e.PromptBuilt(1, Purpose.EXECUTOR, 2, 100, "sha", (e.PromptPart("rules", 100),)),
        e.ModelAnswered(1, "Thought", figures, "url"),
    )
    assert (run.tokens, run.working_seconds, run.step, run.answered_step) == (120, 3.0, 1, 1)
    assert run.prompt_parts == 1
    assert run.answer is not None
    assert run_after(e.ModelAnswered(1, "x", figures, "url"), proposed()).answer is None


def test_an_applied_diff_is_checked_if_there_are_checks() -> None:
    run = run_after(APPLIED)
    assert (run.phase, run.check_purpose, run.tree, run.changed) == (
        Phase.CHECKING,
        CheckPurpose.AFTER_DIFF,
        "u" * 40,
        True,
    )
    assert run_after(APPLIED, checks=()).phase is Phase.STEPPING


def test_failing_checks_lead_to_a_reflexion_and_passing_ones_on() -> None:
    failed = run_after(APPLIED, checked(1), finished())
    assert (failed.phase, failed.failures) == (Phase.REFLECTING, 1)
    thought = run_after(APPLIED, checked(1), finished(), e.ReflexionNoted(1, "so"))
    assert (thought.phase, thought.failures, thought.reflexions) == (Phase.STEPPING, 1, 1)
    passed = run_after(APPLIED, checked(1), finished(), e.ReflexionNoted(1, "so"), APPLIED, checked(0), finished())
    assert (passed.phase, passed.failures) == (Phase.STEPPING, 0)


def test_a_success_ends_a_row_of_failures() -> None:
    assert run_after(e.ActionRejected(1, "no"), e.ActionRejected(2, "no")).failures == 2
    assert run_after(e.ActionRejected(1, "no"), proposed("read_file", Permission.READ), finished()).failures == 0
    assert run_after(proposed(), finished(e.ActionResult.REFUSED)).failures == 1


def test_finishing_is_decided_by_checks_of_what_now_stands() -> None:
    assert run_after(*FINISH).phase is Phase.CHECKING
    assert run_after(*FINISH).check_purpose is CheckPurpose.FINAL
    assert run_after(*FINISH, checks=()).phase is Phase.COMMITTING
    assert run_after(APPLIED, checked(0), *FINISH).phase is Phase.COMMITTING
    assert run_after(APPLIED, checked(1), e.ReflexionNoted(1, "so"), *FINISH).phase is Phase.CHECKING
    stale = e.PatchApplied(P1, ("a",), "sha", "v" * 40)
    assert run_after(APPLIED, checked(0), stale, *FINISH).phase is Phase.CHECKING
    last = (*FINISH, proposed(CHECKS, Permission.CHECK, CheckPurpose.FINAL))
    assert run_after(*last, checked(0, CheckPurpose.FINAL), finished()).phase is Phase.COMMITTING
    assert run_after(*last, checked(1, CheckPurpose.FINAL), finished()).phase is Phase.REFLECTING


def test_checks_the_model_asked_for_decide_nothing() -> None:
    assert run_after(checked(1, CheckPurpose.ASKED)) == run_after(checked(1, CheckPurpose.ASKED))
    asked = run_after(APPLIED, checked(0), checked(1, CheckPurpose.ASKED))
    assert asked.results is not None
    assert asked.results[0].passed
    assert asked.phase is Phase.STEPPING


def test_a_baseline_is_kept_and_blames_nobody() -> None:
    run = run_after(checked(1, CheckPurpose.BASELINE), finished())
    assert (run.phase, run.failures) == (Phase.RETRIEVING, 0)
    assert run.baseline is not None


def test_required_checks_must_pass_and_the_others_get_no_worse() -> None:
    facts = WorkspaceFacts("/w", "agent/T-1", BASE, TREE)
    started = e.TaskStarted(T1, Task(T1, "It"), facts, ("accept", "lint"), (), 1)

    def results(accept: int, lint: int) -> tuple[CheckResult, ...]:
        return (CheckResult("accept", accept, "", 1.0), CheckResult("lint", lint, "", 1.0))

    for before, after, fine in [
        ((1, 0), (0, 0), True),
        ((1, 0), (0, 1), False),
        ((1, 1), (0, 1), True),
        ((1, 0), (1, 0), False),
    ]:
        run = state_after(started, e.TestsFinished(CheckPurpose.BASELINE, results(*before))).run
        assert run is not None
        assert run.acceptable(results(*after)) is fine
    bare = state_after(started).run
    assert bare is not None
    assert bare.acceptable(results(0, 0))
    assert not bare.acceptable(results(0, 1))


def test_the_ends_of_a_task() -> None:
    committed = run_after(e.TaskCommitted(T1, CommitId("c"), "agent/T-1", "m"))
    assert (committed.phase, committed.status, committed.commit) == (Phase.CLOSING, TaskStatus.DONE, "c")
    back = run_after(APPLIED, e.TaskRolledBack(T1, BASE, "limits"))
    assert (back.phase, back.status, back.reason) == (Phase.CLOSING, TaskStatus.FAILED, "limits")
    assert (back.changed, back.gate.proposal) == (False, None)
    over = state_after(task_started(), e.TaskFinished(T1, TaskStatus.DONE, "so"))
    assert over.run is not None
    assert over.run.phase is Phase.OVER
    assert not over.unfinished
    merged = run_after(e.TaskMerged(T1, MergeOutcome(CommitId("m"), "main", "merge")))
    assert merged.merged is not None
    kept = run_after(e.CheckpointTaken(1, Checkpoint("refs/agent/x/1", CommitId("k"), "t")))
    assert kept.checkpoint is not None


def test_the_next_task_puts_the_last_one_behind() -> None:
    state = state_after(task_started(), e.ActionRejected(1, "no"), task_started())
    assert [run.failures for run in state.past] == [1]
    assert state.run is not None
    assert (state.run.failures, len(state.run.history)) == (0, 1)
    assert state.run_of(T1) is state.run
    assert state.run_of(TaskId("T-2")) is None


FILLED = e.ContextFilled(2, Purpose.EXECUTOR, 9, 9)
COMPACTED = e.ContextCompacted(2, "short", e.Author.MODEL, 5)
SUMMARY = (
    proposed("compact", Permission.SUMMARY),
    decided(Verdict.APPROVE),
    e.ActionStarted(P1),
    COMPACTED,
    finished(),
)


def test_a_compaction_goes_back_to_where_it_came_from() -> None:
    failing = (APPLIED, checked(1), finished())
    full = run_after(*failing, FILLED)
    assert (full.phase, full.compacts_for) == (Phase.COMPACTING, Phase.REFLECTING)
    assert run_after(*failing, FILLED, FILLED).compacts_for is Phase.REFLECTING
    done = run_after(*failing, FILLED, *SUMMARY)
    assert (done.phase, done.compactions, done.prompt_parts, done.last_figures) == (Phase.REFLECTING, 1, 0, None)


def test_a_compaction_is_no_call_no_failure_and_no_success() -> None:
    before = (e.ActionRejected(1, "no"), FILLED)
    cut = e.ModelInterrupted(1, "Summary: on and", e.InterruptCause.LENGTH)
    for story in ((cut,), (e.ActionRejected(1, "no summary"),), SUMMARY):
        run = run_after(*before, *story)
        assert (run.tool_calls, run.failures) == (1, 1), story


def test_a_summary_can_only_be_done_without_if_the_user_wanted_it() -> None:
    asked = e.CompactionAsked()
    assert run_after(asked).compaction_asked
    wanted = e.ContextFilled(2, Purpose.EXECUTOR, 9, 9, by=e.Author.USER)
    waits = proposed("compact", Permission.SUMMARY)
    for filled, verdict, phase in (
        (wanted, Verdict.SKIP, Phase.RETRIEVING),
        (wanted, Verdict.REJECT, Phase.COMPACTING),
        (FILLED, Verdict.SKIP, Phase.COMPACTING),
        (FILLED, Verdict.REJECT, Phase.COMPACTING),
    ):
        run = run_after(asked, filled, waits, decided(verdict), checks=())
        assert (run.phase, run.gate.stage) == (phase, ProposalStage.REFUSED)
        assert run.compaction_asked is (filled is wanted and phase is Phase.COMPACTING)
    assert not run_after(asked, wanted, *SUMMARY).compaction_asked


def test_code_is_pinned_or_dropped_never_both() -> None:
    chunk = Chunk("a.py", 1, 2, "a\nb", 1.0)
    pinned, dropped = e.ChunkPinned(chunk), e.ChunkDropped(chunk.place)
    assert run_after(pinned, pinned).pinned == (chunk,)
    assert run_after(pinned, e.ChunkPinned(chunk, pinned=False)).pinned == ()
    run = run_after(pinned, dropped, dropped)
    assert (run.pinned, run.dropped) == ((), (chunk.place,))
    run = run_after(dropped, pinned)
    assert (run.pinned, run.dropped) == ((chunk,), ())
    assert run_after(pinned, FILLED, *SUMMARY).pinned == (chunk,)


def test_a_switch_to_another_model_is_that_of_the_task() -> None:
    switched = e.ModelSwitched("main", "other")
    assert state_after(task_started(), switched).switched == switched
    assert state_after(task_started(), switched, e.ModelSwitched()).switched is None
    assert state_after(e.ChatStarted(1, ()), switched).in_chat
    assert state_after(switched).main is None
