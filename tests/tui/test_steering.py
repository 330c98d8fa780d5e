"""Pause and undo at the screen: what the bar says, which key does it, and what is asked before."""

from agent_workbench.core.events import PauseChanged, StepUndone
from agent_workbench.core.intents import PauseTask, UndoStep
from agent_workbench.core.live import Live
from agent_workbench.views.gate.gate_bar import GateAct, GateMode, view_gate
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, driving

FIRST = runs.diff_step(30, runs.WRONG)[1]


async def test_p_pauses_after_the_step_and_goes_on() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    async with driving(session, SMALL) as bench:
        await bench.live(Live("thinking"))
        await bench.press("0")
        assert "pause after this step: p" in bench.text()
        await bench.press("p")
        await bench.record(PauseChanged(paused=True))
        assert "pauses before the next step" in bench.text()
        assert "do not pause: p" in bench.text()
        await bench.live(Live())
        assert view_gate(session.newest).mode is GateMode.PAUSED
        assert "the model is not asked" in bench.text()
        assert "go on: p │ undo: u │ abort: X" in bench.text()
        await bench.press("p")
        assert session.intents == [PauseTask(), PauseTask(paused=False)]


async def test_u_asks_which_diff_goes_and_names_it() -> None:
    session = ScriptedSession(*runs.up_to_commit())
    async with driving(session, SMALL) as bench:
        await bench.press("u")
        shown = bench.text()
        assert "shop/cart.py" in shown
        assert "+1 −1" in shown
        assert "The pending proposal was made on these files, and is rejected." in shown
        bench.clock.advance(1.0)
        await bench.press("y")
        (undo,) = session.intents
        assert isinstance(undo, UndoStep)
        assert undo.proposal is not None
        assert undo.proposal != FIRST.id, "the second diff was applied last"


async def test_without_a_diff_there_is_nothing_to_undo() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, SMALL) as bench:
        await bench.press("u")
        assert "no diff is applied" in bench.text()
        assert session.intents == []


def test_a_diff_that_was_taken_back_is_not_the_one_applied_last() -> None:
    session = ScriptedSession(*runs.up_to_reflexion(), StepUndone(FIRST.id, 2, ("shop/cart.py",), "t0"))
    session.record(PauseChanged(paused=True))
    view = view_gate(session.newest)
    assert view.mode is GateMode.PAUSED
    assert GateAct.UNDO not in view.acts
