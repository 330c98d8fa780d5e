"""What failed, as a tree in the steps, and the way from a failure to the diff or the file."""

from agent_workbench.core.intents import OpenFile
from agent_workbench.core.outcomes import FileOpened
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import driving


async def test_a_failure_leads_to_the_diff_or_to_the_file() -> None:
    session = ScriptedSession(*runs.up_to_failures())
    async with driving(session, (160, 45)) as bench:
        await bench.steps.go_to_failure()
        text = bench.text()
        assert "failed before the change" in text
        assert "E       TypeError: no lines" in text
        await bench.press("f")
        assert bench.app.focused is bench.diff.pane
        assert session.intents == []
        await bench.press("2", "j", "f")
        assert session.intents == [OpenFile("tests/test_cart.py", 13)]
        await bench.answer(FileOpened("tests/test_cart.py", 13, "\n".join(f"line {n}" for n in range(1, 40))))
        assert "▶ 13 line 13" in bench.text()
