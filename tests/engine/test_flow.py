import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import CommitId, ProposalId, TaskId
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.patch.values import HunkFate
from agent_workbench.core.plan import Budget, Task, TaskStatus
from agent_workbench.core.proposal_kinds import DiffProposal, ExternalProposal, ReadProposal
from agent_workbench.core.proposals import ANSWER_SERVER, CHECKS, HunkVerdict, Verdict
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.settings import Limits
from agent_workbench.core.state.session_state import Phase, SessionState
from agent_workbench.core.state.work import Chat
from agent_workbench.engine import flow
from agent_workbench.engine.flow import next_move
from agent_workbench.engine.runtime.budget import spent
from tests.strategies import recorded

T1, P1 = TaskId("T-1"), ProposalId("P-1")
DIFF = DiffProposal(P1, "write_diff", "text", 1)
TROUBLE = e.TroubleMet("model", "gone", "")
APPROVED = (e.ActionProposed(DIFF), e.ActionDecided(P1, Verdict.APPROVE, "user"))
RUNNING = (*APPROVED, e.ActionStarted(P1))
APPLIED = e.PatchApplied(P1, ("a",), "sha", "u")
TO_STEPS = e.CodeRetrieved("q", ())
FILLED = e.ContextFilled(1, Purpose.EXECUTOR, 9, 9)
COMPACTED = e.ContextCompacted(1, "short", e.Author.MODEL, 1)
ANSWER = e.ModelAnswered(1, "Thought", AnswerFigures(), "")


def started(*, checks: tuple[str, ...] = ("test",), budget: Budget | None = None) -> e.TaskStarted:
    task = Task(T1, "It", budget=budget or Budget())
    return e.TaskStarted(T1, task, WorkspaceFacts("/w", "b", CommitId("c"), "t"), checks, (), len(checks))


def failing(purpose: CheckPurpose = CheckPurpose.AFTER_DIFF) -> e.TestsFinished:
    return e.TestsFinished(purpose, (CheckResult("test", 1, "", 1.0),))


def state_of(*story: e.Event) -> SessionState:
    return fold_all(e.Recorded(seq, "", event) for seq, event in enumerate(story))


@pytest.mark.parametrize(
    ("story", "move"),
    [
        ((), flow.Idle()),
        ((TROUBLE,), flow.Idle()),
        ((started(),), flow.ProposeChecks(CheckPurpose.BASELINE)),
        ((started(checks=()),), flow.Retrieve()),
        ((started(), TROUBLE), flow.AwaitRetry(TROUBLE)),
        ((started(), TROUBLE, e.RetryAsked()), flow.ProposeChecks(CheckPurpose.BASELINE)),
        ((started(), e.ActionProposed(DIFF)), flow.Decide(DIFF)),
        ((started(), e.ActionProposed(DIFF), TROUBLE), flow.AwaitRetry(TROUBLE)),
        ((started(), *APPROVED), flow.Execute(DIFF)),
        ((started(), *RUNNING), flow.Recover(DIFF)),
        ((started(), *RUNNING, e.AbortAsked("no")), flow.Recover(DIFF)),
        (
            (started(), *RUNNING, e.AbortAsked("no"), e.ActionFinished(P1, e.ActionResult.UNKNOWN, "")),
            flow.RollBack("no"),
        ),
        ((started(), failing(CheckPurpose.BASELINE)), flow.Retrieve()),
        ((started(), TO_STEPS), flow.Ask(Purpose.EXECUTOR)),
        ((started(), TO_STEPS, ANSWER), flow.ReadAnswer()),
        ((started(), TO_STEPS, ANSWER, e.ActionRejected(1, "no")), flow.Ask(Purpose.EXECUTOR)),
        ((started(), TO_STEPS, APPLIED), flow.ProposeChecks(CheckPurpose.AFTER_DIFF)),
        ((started(), TO_STEPS, APPLIED, failing()), flow.Ask(Purpose.REFLEXION)),
        ((started(), TO_STEPS, APPLIED, failing(), ANSWER), flow.ReadAnswer()),
        ((started(), TO_STEPS, APPLIED, failing(), e.ReflexionNoted(1, "")), flow.Ask(Purpose.EXECUTOR)),
        ((started(), TO_STEPS, FILLED), flow.Ask(Purpose.SUMMARY)),
        ((started(), TO_STEPS, FILLED, ANSWER), flow.ReadAnswer()),
        ((started(), TO_STEPS, FILLED, COMPACTED), flow.Ask(Purpose.EXECUTOR)),
        ((started(), TO_STEPS, APPLIED, failing(), FILLED, COMPACTED), flow.Ask(Purpose.REFLEXION)),
        ((started(), e.AbortAsked("enough")), flow.RollBack("enough")),
        ((started(), e.TaskRolledBack(T1, CommitId("c"), "r")), flow.Close()),
        ((started(), e.TaskCommitted(T1, CommitId("c"), "b", "m")), flow.Close()),
        ((started(), e.TaskFinished(T1, TaskStatus.DONE, "")), flow.Idle()),
        ((started(), e.TaskFinished(T1, TaskStatus.DONE, ""), e.ActionProposed(DIFF)), flow.Decide(DIFF)),
    ],
)
def test_what_comes_next(story: tuple[e.Event, ...], move: flow.Move) -> None:
    assert next_move(state_of(*story)) == move


def test_a_commit_is_offered_for_changes_only() -> None:
    finish = ReadProposal(P1, "finish", "{}", 1)
    end = (e.ActionProposed(finish), e.ActionFinished(P1, e.ActionResult.OK, ""))
    assert next_move(state_of(started(checks=()), *end)) == flow.ProposeEnd()
    assert next_move(state_of(started(checks=()), APPLIED, *end)) == flow.ProposeCommit()


LIMITS = Limits(max_tool_calls_per_task=4, max_reflexion_retries=2, consecutive_failure_threshold=3)


def steps(count: int) -> tuple[e.Event, ...]:
    """Return so many calls that went well."""
    read = ReadProposal(P1, "grep", "{}", 1)
    return (e.ActionProposed(read), e.ActionFinished(P1, e.ActionResult.OK, "")) * count


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (steps(3), ""),
        (steps(4), "4 tool calls were made (max_tool_calls_per_task)"),
        ((e.ActionRejected(1, ""),) * 2, ""),
        ((e.ActionRejected(1, ""),) * 3, "3 steps failed in a row (consecutive_failure_threshold)"),
        ((e.ActionProposed(replace(DIFF, tool=CHECKS)),) * 9, ""),
        ((APPLIED, failing(), e.ReflexionNoted(1, ""), APPLIED, failing()), ""),
        (
            (e.ReflexionNoted(1, ""),) * 2 + (APPLIED, failing()),
            "2 reflexions did not help (max_reflexion_retries)",
        ),
        ((e.ReflexionNoted(1, ""),) * 2, ""),
        ((*(e.ActionRejected(1, ""),) * 2, APPLIED, failing()), ""),
        ((*(e.ActionRejected(1, ""),) * 2, APPLIED, failing(), e.ReflexionNoted(1, "")), ""),
        (
            (*(e.ActionRejected(1, ""),) * 2, APPLIED, failing(), e.ReflexionNoted(1, ""), e.ActionRejected(1, "")),
            "4 steps failed in a row (consecutive_failure_threshold)",
        ),
        (
            (APPLIED, failing(), e.ReflexionNoted(1, ""), *(e.ActionRejected(1, ""),) * 2),
            "3 steps failed in a row (consecutive_failure_threshold)",
        ),
        ((APPLIED, failing(), e.ReflexionNoted(1, ""), *steps(1), *(e.ActionRejected(1, ""),) * 2), ""),
    ],
)
def test_limits(story: tuple[e.Event, ...], reason: str) -> None:
    run = state_of(started(), TO_STEPS, *story).run
    assert run is not None
    assert spent(run, LIMITS) == reason


@pytest.mark.parametrize(
    ("budget", "figures", "reason"),
    [
        (Budget(tokens=100), AnswerFigures(prompt_tokens=90, answer_tokens=9), ""),
        (Budget(tokens=100), AnswerFigures(prompt_tokens=90, answer_tokens=10), "100 tokens were used of the 100"),
        (Budget(minutes=1), AnswerFigures(prompt_seconds=29, answer_seconds=30), ""),
        (
            Budget(minutes=1),
            AnswerFigures(prompt_seconds=30, answer_seconds=30),
            "1.0 minutes of work were used of the 1",
        ),
        (Budget(dollars=0.5), AnswerFigures(dollars=0.49), ""),
        (Budget(dollars=0.5), AnswerFigures(dollars=0.5), "$0.5000 were spent of the $0.5"),
        (Budget(dollars=0.0), AnswerFigures(prompt_tokens=9), ""),
        (Budget(), AnswerFigures(10**9, 0, 10**9, 1e9, 1e9, 1e9), ""),
    ],
)
def test_budgets(budget: Budget, figures: AnswerFigures, reason: str) -> None:
    run = state_of(started(budget=budget), TO_STEPS, replace(ANSWER, figures=figures), e.ActionRejected(1, "")).run
    assert run is not None
    assert reason in spent(run, LIMITS)
    assert bool(spent(run, LIMITS)) == bool(reason)


def test_past_a_limit_the_task_is_rolled_back_but_an_answer_is_read_first() -> None:
    story = (started(), TO_STEPS, *(e.ActionRejected(1, ""),) * 5)
    assert isinstance(next_move(state_of(*story)), flow.RollBack)
    assert next_move(state_of(*story, ANSWER)) == flow.ReadAnswer()


def test_waiting_at_a_gate_costs_no_minutes() -> None:
    run = state_of(started(), e.ActionProposed(DIFF), e.ActionDecided(P1, Verdict.APPROVE, "user")).run
    assert run is not None
    assert run.working_seconds == 0.0


REWRITTEN = replace(DIFF, tool="rewrite")
CHOSEN = replace(REWRITTEN, hunks=(HunkVerdict("a", HunkFate.LEFT),))


@pytest.mark.parametrize(
    ("diffs", "begins"),
    [
        ((REWRITTEN,), True),
        ((REWRITTEN, REWRITTEN), True),
        ((replace(REWRITTEN, edited=True), REWRITTEN), False),
        ((REWRITTEN, CHOSEN), False),
        ((DIFF, REWRITTEN), False),
    ],
)
@pytest.mark.parametrize(
    ("by", "wording"),
    [("user", e.SHORT_DOCSTRINGS), ("policy:diff=auto", e.SHORT_DOCSTRINGS), ("policy:diff=auto", e.FAILING_FIRST)],
)
def test_an_attempt_is_given_up_only_if_the_change_is_as_the_model_wrote_it(
    by: str, wording: int, diffs: tuple[DiffProposal, ...], *, begins: bool
) -> None:
    move = after_failing(by, wording, diffs)
    assert isinstance(move, flow.StartAfresh if begins else flow.Ask), move


def test_a_session_of_1_0_goes_on_from_what_a_person_approved() -> None:
    assert after_failing("user", e.FAILING_FIRST, (REWRITTEN,)) == flow.Ask(Purpose.REFLEXION)


def after_failing(by: str, wording: int, diffs: tuple[DiffProposal, ...]) -> flow.Move:
    """Return the move after these diffs were approved and applied, and the checks failed after each."""
    story: list[e.Event] = [replace(started(), wording=wording), failing(CheckPurpose.BASELINE), TO_STEPS]
    for number, each in enumerate(diffs):
        diff = replace(each, id=ProposalId(f"P-{number}"))
        decided = e.ActionDecided(diff.id, Verdict.APPROVE, by)
        applied = e.PatchApplied(diff.id, ("a",), f"sha {number}", f"u{number}")
        done = e.ActionFinished(diff.id, e.ActionResult.OK, "applied")
        story += [e.ActionProposed(diff), decided, e.ActionStarted(diff.id), applied, done, failing()]
        story += [] if number + 1 == len(diffs) else [e.ReflexionNoted(1, "")]
    return next_move(state_of(*story))


@settings(max_examples=50)
@given(recorded(25))
@pytest.mark.slow
def test_there_is_a_move_from_every_state(story: tuple[e.Recorded, ...]) -> None:
    state = SessionState()
    for each in story:
        state = fold(state, each)
        move = next_move(state)
        if state.open_planning is not None:
            assert not isinstance(move, flow.Idle)
        elif isinstance(state.main, Chat):
            idle = not state.main.due and state.main.gate.waiting is None and state.open_note_offer is None
            assert not isinstance(move, flow.Idle) or idle
        elif state.run is None or (
            state.run.phase is Phase.OVER and state.run.gate.waiting is None and not state.trouble
        ):
            notes = flow.ProposeNotes | flow.WriteNotes | flow.Decide
            assert isinstance(move, flow.Idle | flow.Execute | flow.Recover | flow.AwaitRetry | notes)
            assert state.open_note_offer is not None or not isinstance(move, notes | flow.AwaitRetry)
        else:
            assert not isinstance(move, flow.Idle)


ANSWERING = ExternalProposal(P1, ANSWER_SERVER, "{}", 1)
DECLINED = (e.ActionProposed(ANSWERING), e.ActionDecided(P1, Verdict.REJECT, "user"))
SENT = (*DECLINED, e.ActionStarted(P1), e.ActionFinished(P1, e.ActionResult.OK, ""))
CHAT = (e.ChatStarted(1, ()), e.UserSaid("hello"))
STOP = e.AbortAsked("stop")


@pytest.mark.parametrize(
    ("story", "move"),
    [
        ((started(), TO_STEPS, *DECLINED), flow.Execute(ANSWERING)),
        ((started(), TO_STEPS, *SENT), flow.Ask(Purpose.EXECUTOR)),
        ((started(), TO_STEPS, *SENT, STOP), flow.RollBack("stop")),
        ((started(), TO_STEPS, *DECLINED, STOP), flow.RollBack("stop")),
        ((*CHAT, *DECLINED), flow.Execute(ANSWERING)),
        ((*CHAT, *SENT, STOP), flow.Idle()),
        ((*CHAT, *SENT, STOP, e.UserSaid("again")), flow.Ask(Purpose.CHAT)),
        ((*CHAT, *DECLINED, STOP), flow.Idle()),
    ],
)
def test_a_server_is_told_once_that_its_question_is_declined(story: tuple[e.Event, ...], move: flow.Move) -> None:
    """Not again when the user ends the task, or stops the model in a chat."""
    assert next_move(state_of(*story)) == move
