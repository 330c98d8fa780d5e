"""Consultations on the screen: asked by a key, followed in a pane beside the diff, stopped, and left by a finding."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.consult_requests import AttemptVerdict, ConsultAttempt, EndpointTier
from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultStatus
from agent_workbench.core.intents import AskConsultant, RejectProposal, StopConsultation
from agent_workbench.core.live import Consulting, Live, Streaming
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import driving

SIZES = [(160, 45), (80, 24)]
REVIEW = """\
I read the diff.

CRITICAL shop/cart.py:17 - the sum [bold]forgets[/] the quantity \x1b]52;c;aGk=\x07

SUGGESTION name the loop variable

1 critical, 0 warnings, 1 suggestions"""


def reviewed(text: str = REVIEW, about: str = "") -> tuple[ConsultantAsked, ConsultantAnswered]:
    """Return a question and its answer."""
    asked = ConsultantAsked(1, "review", "review", "phase: review", "p", "d", paths=("shop/cart.py",), about=about)
    attempt = ConsultAttempt("model", "tiny", EndpointTier.LOCAL, 1200, warm_start=True, verdict=AttemptVerdict.ACCEPT)
    return asked, ConsultantAnswered(1, ConsultStatus.OK, text, "tiny", 1200, (attempt,))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
async def test_the_waiting_diff_is_reviewed_beside_it(size: tuple[int, int]) -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, size) as bench:
        assert "6 Advice" not in bench.text()
        await bench.press("C")
        waiting = session.newest.state.waiting
        assert waiting is not None
        assert session.intents == [AskConsultant("review", waiting.id)]
        asked, answered = reviewed()
        await bench.live(Live(consulting=Consulting("review")))
        await bench.record(asked)
        await bench.live(Live(consulting=Consulting("review", Streaming("I read the", tokens=3))))
        text = bench.text()
        assert "6 review …" in text
        assert "I read the" in text
        assert bench.app.focused is bench.pane("advice")
        await bench.press("escape")
        assert session.intents[-1] == StopConsultation()
        await bench.record(answered)
        await bench.live(Live())
        text = bench.text()
        assert "6 review: 1 critical, 0 warnings, 1 suggestions" in text
        assert "[bold]forgets[/]" in text
        assert "\x1b]52" not in text
        await bench.press("n", "enter")
        assert bench.app.focused is bench.pane("diff")
        await bench.press("6", "x")
        assert "6 review" not in bench.text()


async def test_the_question_follows_the_focus() -> None:
    session = ScriptedSession(*runs.up_to_failures())
    async with driving(session, (160, 45)) as bench:
        await bench.press("2", "C")
        assert session.intents == [AskConsultant("debug")]
        await bench.press("1", "G", "C")
        asked = session.intents[-1]
        assert isinstance(asked, AskConsultant)
        assert asked.skill in {"spec", "debug"}


async def test_without_anything_to_ask_it_is_said() -> None:
    session = ScriptedSession(*runs.opening())
    async with driving(session, (80, 24)) as bench:
        await bench.press("0", "C")
        assert session.intents == []
        assert "nothing to ask about" in bench.text()


async def test_a_commit_shows_what_its_review_found() -> None:
    session = ScriptedSession(*runs.up_to_commit())
    run = session.newest.state.run
    assert run is not None
    async with driving(session, (160, 45)) as bench:
        await bench.record(*reviewed(about=run.tree))
        assert "Review: 1 critical, 0 warnings, 1 suggestions" in bench.text()


async def test_what_a_review_found_is_offered_as_the_reason_of_a_rejection() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    waiting = session.newest.state.waiting
    assert waiting is not None
    text = "CRITICAL shop/cart.py:17 - the sum forgets\nWARNING shop/cart.py:900 - no\nSUGGESTION a name"
    asked, answered = reviewed(text, about=waiting.id)
    contents = "### shop/cart.py (20 lines)\n\n    1 | ### shop/cart.py (999 lines)\n"
    async with driving(session, (160, 45)) as bench:
        await bench.record(replace(asked, contents=contents), answered)
        assert "there is no line 900: shop/cart.py has 20 lines" in bench.text()
        assert "no line 17" not in bench.text()
        await bench.press("r", "enter")
        assert session.intents == [RejectProposal(waiting.id, "a review found: shop/cart.py:17 - the sum forgets")]


async def test_a_question_that_is_refused_gives_the_focus_back() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, (80, 24)) as bench:
        await bench.press("C")
        await bench.live(Live(consulting=Consulting("review")))
        assert bench.app.focused is bench.pane("advice")
        await bench.live(Live())
        assert bench.app.focused is not None
        assert bench.app.focused.id == "gate"
        assert "Advice" not in bench.text()
