"""Steps are the same whatever was recorded in between, and each has all that was recorded of it."""

from collections.abc import Sequence

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ActionStarted,
    Author,
    Event,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    StepUndone,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import CHECKS, COMMIT, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.steps import decisions_of, newest_steps, proposals_of, steps_of
from tests.fakes import runs

FIRST = runs.proposed(Permission.COMMAND, "run_command", "P-1", "make")
EDITED = runs.proposed(Permission.COMMAND, "run_command", "P-1", "make all")
SECOND = runs.proposed(Permission.DIFF, "write_diff", "P-2", "--- a/x")


def recorded(events: Sequence[Event]) -> tuple[Recorded, ...]:
    return tuple(Recorded(seq, "", event) for seq, event in enumerate(events))


def test_a_step_has_its_answer_its_proposal_and_what_came_of_it() -> None:
    history = recorded(runs.up_to_done())
    steps = {step.proposal.tool: step for step in steps_of(history)}
    diff = next(step for step in steps.values() if step.applied is not None)
    assert diff.answer is not None
    assert diff.answer.event.text.startswith("Thought:")
    assert diff.applied is not None
    assert diff.tree == diff.applied.event.tree
    assert diff.result is not None
    assert diff.result.event.result is ActionResult.OK
    assert diff.started is not None
    assert history[diff.seq].event == ActionProposed(diff.first)
    # What the workbench proposes itself follows the answer before it.
    assert steps[CHECKS].decisions
    assert steps[COMMIT].answer is not None


def test_steps_are_the_newest_first_and_read_as_far_as_asked() -> None:
    history = recorded(runs.up_to_done())
    newest = next(newest_steps(history))
    assert newest == steps_of(history)[-1]
    assert [step.seq for step in newest_steps(history)] == [step.seq for step in reversed(steps_of(history))]
    proposals = [each.event.proposal.id for each in history if isinstance(each.event, ActionProposed)]
    assert list(proposals_of(history)) == proposals


def test_a_decision_is_about_what_was_shown_then() -> None:
    approve = ActionDecided(FIRST.id, Verdict.APPROVE, "user")
    history = recorded((ActionProposed(FIRST), approve, ProposalReplaced(EDITED, "edited", Author.USER)))
    (step,) = steps_of(history)
    assert (step.first, step.proposal, step.by) == (FIRST, EDITED, "user")
    assert step.decision is None
    again = recorded(
        (*(each.event for each in history), ActionDecided(FIRST.id, Verdict.REJECT, "policy:x", "no")),
    )
    (step,) = steps_of(again)
    assert step.decision is not None
    assert step.decision.event.verdict is Verdict.REJECT
    assert [each.proposal for each in decisions_of(again)] == [FIRST, EDITED]


def test_events_of_two_steps_may_take_turns() -> None:
    events = (
        *runs.answered(1, "Thought: x"),
        ActionProposed(FIRST),
        ActionProposed(SECOND),
        ActionDecided(SECOND.id, Verdict.APPROVE, "user"),
        ActionDecided(FIRST.id, Verdict.SKIP, "user"),
        ActionStarted(SECOND.id),
        PatchApplied(SECOND.id, ("x",), "sha", "tree"),
        ActionFinished(SECOND.id, ActionResult.OK, "applied"),
        StepUndone(SECOND.id, 1, ("x",), "base"),
    )
    first, second = steps_of(recorded(events))
    assert (first.started, first.result, first.by) == (None, None, "user")
    assert second.undone is not None
    assert second.answer == first.answer
    assert [each.event.proposal_id for each in decisions_of(recorded(events))] == [SECOND.id, FIRST.id]


def test_a_decision_whose_proposal_is_elsewhere_makes_no_step() -> None:
    history = recorded((ActionDecided(ProposalId("P-9"), Verdict.APPROVE, "user"),))
    assert steps_of(history) == ()
    assert [each.proposal for each in decisions_of(history)] == [None]
