from agent_workbench.core.events import ModelObserved
from agent_workbench.core.model import ModelFacts
from agent_workbench.views.transcript.session_blocks import session_blocks


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
