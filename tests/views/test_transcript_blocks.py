from agent_workbench.core.events import ModelObserved, TaskRouted
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.task_routing import RoutingDecision, RoutingOutcome, WorkerScore, bounded
from agent_workbench.views.transcript_blocks import session_blocks


def test_who_was_passed_stands_below_who_answers() -> None:
    facts = ModelFacts("laptop (embedded)", "small", 8192, passed=("gpu: nothing answers\x1b[31m", "hosted: too dear"))
    met, passed = session_blocks(ModelObserved(facts))
    assert met.text == "small, at laptop (embedded), 8,192 tokens"
    assert passed.label == "Skipped"
    assert [line.split(":")[0] for line in passed.text.splitlines()] == ["gpu", "hosted"]
    assert "\x1b" not in passed.text


def test_where_nobody_was_passed_nothing_is_said_of_it() -> None:
    (met,) = session_blocks(ModelObserved(ModelFacts("http://x", "small", 8192)))
    assert met.text == "small, 8,192 tokens"


def test_why_a_worker_got_the_task_is_shown_within_bounds_and_without_control_characters() -> None:
    score = WorkerScore("box", 1.0, 0.5, 0.5, 0.65)
    forged = RoutingDecision("T-1", RoutingOutcome.ASSIGNED, "box\x1b[2J", (score,) * 90, ("x\n\x1b" * 900,) * 90)
    event = TaskRouted(bounded(forged))
    assert len(event.decision.scores) == 5
    assert len(event.decision.reasons) == 8
    given, *reasons = session_blocks(event)
    assert (given.label, given.text.startswith("T-1 was given to box")) == ("Routed", True)
    assert len(reasons) == 8
    assert all("\x1b" not in each.text and "\n" not in each.text for each in (given, *reasons))
    assert "T-1 was given to box" in (log_line(event) or "")
