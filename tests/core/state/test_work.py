"""The one work and the one gate of a session, whatever kind of work is open."""

from agent_workbench.core import events as e
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import CommitId, ProposalId, TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.proposals import OFFER_NOTES, PROPOSE_PLAN, ProposalStage, Verdict
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.work import Chat, Gate, NoteOffer, Planning

T1 = TaskId("T-1")
SPACE = WorkspaceFacts("/w", "agent/T-1", CommitId("b" * 40), "t")
STARTED = e.TaskStarted(T1, Task(T1, "It"), SPACE, (), ("grep",), 0)
OVER = e.TaskFinished(T1, TaskStatus.FAILED, "limits")
OFFERED = e.NotesOffered((e.OfferedNote("names", "Names are nouns.\n"),), "a client")
ASKED = e.PlanAsked("sums are right", 1)


def state_after(*told: e.Event) -> SessionState:
    return fold_all(e.Recorded(seq, "now", event, f"h{seq}") for seq, event in enumerate(told))


def proposed(number: int, tool: str, kind: Permission = Permission.READ) -> e.ActionProposed:
    return e.ActionProposed(KINDS[kind](ProposalId(f"P-{number}"), tool, "text", 1))


def decided(number: int, verdict: Verdict) -> e.ActionDecided:
    return e.ActionDecided(ProposalId(f"P-{number}"), verdict, "user")


NOTES = proposed(1, OFFER_NOTES, Permission.KNOWLEDGE)


def test_one_work_is_open_at_a_time() -> None:
    assert (state_after().work, state_after().gate) == (None, Gate())
    assert isinstance(state_after(STARTED).work, TaskRun)
    assert isinstance(state_after(STARTED, OFFERED).work, TaskRun)
    assert isinstance(state_after(STARTED, OFFERED, OVER).work, NoteOffer)
    assert isinstance(state_after(STARTED, OVER).work, TaskRun)
    assert isinstance(state_after(STARTED, OVER, ASKED).work, Planning)
    assert isinstance(state_after(e.ChatStarted(1), OFFERED).work, NoteOffer)
    assert isinstance(state_after(e.ChatStarted(1), OFFERED, e.UserSaid("why?")).work, Chat)


def test_the_gate_is_that_of_the_open_work() -> None:
    plan = proposed(2, PROPOSE_PLAN, Permission.PLAN)
    planned = state_after(STARTED, proposed(1, "grep"), decided(1, Verdict.SKIP), OVER, ASKED, plan)
    assert planned.waiting == plan.proposal
    assert planned.run_at_gate is None
    assert planned.run is not None
    assert planned.run.gate.stage is ProposalStage.REFUSED
    skipped = state_after(STARTED, OVER, ASKED, plan, decided(2, Verdict.SKIP))
    assert isinstance(skipped.work, TaskRun)
    asked = state_after(STARTED, proposed(1, "grep"))
    assert asked.run_at_gate is asked.run


def test_notes_stay_at_the_gate_while_a_message_is_answered() -> None:
    said = (e.ChatStarted(1), OFFERED, NOTES, e.UserSaid("why?"))
    assert state_after(*said).waiting == NOTES.proposal
    call = proposed(2, "grep")
    assert state_after(*said, call).waiting == call.proposal
    done = (decided(2, Verdict.APPROVE), e.ActionStarted(ProposalId("P-2")))
    assert state_after(*said, call, *done).waiting == NOTES.proposal
    ended = e.ActionFinished(ProposalId("P-2"), e.ActionResult.OK, "seen", 1.0)
    assert state_after(*said, call, *done, ended, decided(1, Verdict.SKIP)).waiting is None
