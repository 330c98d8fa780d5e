"""The final review: every change with the steps behind it, and the way to them."""

from agent_workbench.tui.panes.steps import StepsPane
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import driving


async def test_a_change_leads_to_the_step_that_made_it_also_in_a_recording() -> None:
    async with driving(ScriptedSession(*runs.up_to_done()).as_replay(seq=90)) as bench:
        await bench.press("R")
        text = bench.text()
        assert "step 2: The quantity is never used." in text
        assert "step 3: A line costs its price times its quantity." in text
        await bench.press("down", "enter")
        steps = bench.app.workbench.query_one(StepsPane)
        assert bench.app.focused is steps
        assert steps.selected is not None
        assert "A line costs its price" in steps.selected.blocks[1].text
