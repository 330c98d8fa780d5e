"""A journal that another machine wrote approves nothing on this one."""

import pytest

from agent_workbench.core import events as e
from agent_workbench.core.approval_rules import is_foreign
from agent_workbench.core.events import ActionDecided, ActionStarted, Event, Recorded, SessionResumed
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import reference_to, refusal
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.proposals import USER, Verdict
from agent_workbench.engine.flow import Decide, Execute, Recover, next_move
from tests.fakes import runs

HERE, ELSEWHERE = SessionResumed(), SessionResumed(arrived=True)


def recorded(*events: Event) -> tuple[Recorded, ...]:
    return tuple(Recorded(seq, "2026-01-02T03:04:05.000000Z", each, "h") for seq, each in enumerate(events))


def approved() -> tuple[Event, ...]:
    """Return the events up to the approval of the first diff."""
    before = runs.up_to_first_diff()
    proposed = before[-1]
    assert isinstance(proposed, e.ActionProposed)
    return (*before, ActionDecided(proposed.proposal.id, Verdict.APPROVE, USER))


def test_what_was_approved_and_not_begun_waits_again_on_another_machine() -> None:
    assert isinstance(next_move(fold_all(recorded(*approved(), HERE))), Execute)
    assert isinstance(next_move(fold_all(recorded(*approved(), ELSEWHERE))), Decide)


def test_what_was_begun_is_recovered_and_not_asked_again() -> None:
    decided = approved()[-1]
    assert isinstance(decided, ActionDecided)
    begun = (*approved(), ActionStarted(decided.proposal_id))
    assert isinstance(next_move(fold_all(recorded(*begun, ELSEWHERE))), Recover)


def test_a_person_can_decide_again_what_waits_again() -> None:
    state = fold_all(recorded(*approved(), ELSEWHERE))
    assert state.waiting is not None
    reference = reference_to(SessionId("20260102T030405-abc234"), state.waiting)
    assert reference is not None
    assert "decided already" in refusal(recorded(*approved(), HERE), reference)
    assert "decided already" not in refusal(recorded(*approved(), ELSEWHERE), reference)


@pytest.mark.parametrize(("resumed", "origin"), [(HERE, TaskOrigin.LOCAL), (ELSEWHERE, TaskOrigin.DATABASE)])
def test_a_task_that_came_from_another_machine_is_not_the_user_s_own(
    resumed: SessionResumed, origin: TaskOrigin
) -> None:
    run = fold_all(recorded(*approved(), resumed)).run
    assert run is not None
    assert run.definition.origin is origin
    assert is_foreign(run.definition) is (resumed is ELSEWHERE)


@pytest.mark.parametrize("arrived", [False, True])
def test_the_fork_of_another_machine_s_session_is_as_foreign(arrived: bool) -> None:
    run = fold_all(recorded(*approved(), e.SessionForked("0.1.0", arrived=arrived))).run
    assert run is not None
    assert is_foreign(run.definition) is arrived
    assert bool(run.approved_checks) is not arrived


def test_checks_that_were_approved_elsewhere_are_not_approved_once_for_all() -> None:
    before = recorded(*approved())
    run = fold_all(before).run
    assert run is not None
    assert run.approved_checks
    after = fold_all((*before, Recorded(len(before), "2026-01-02T03:05:00.000000Z", ELSEWHERE, "h"))).run
    assert after is not None
    assert not after.approved_checks
