"""What failed, as a tree in the steps, and the way from a failure to the diff or the file."""

from dataclasses import replace

from agent_workbench.core.checks import CheckPurpose, CheckResult
from agent_workbench.core.events import TestsFinished
from agent_workbench.core.intents import OpenFile
from agent_workbench.core.live import OpenedFile
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import driving

OLD = "tests/test_cart.py::test_the_quantity_counts"
NEW = "tests/test_cart.py::test_empty"
OUTPUT = f"""\
{runs.FAILURE.partition("====== short")[0]}
_______________________________ test_empty _______________________________

>       assert total([]) == 0
E       TypeError: no lines

shop/cart.py:17: TypeError
========== short test summary info ==========
FAILED {OLD} - AssertionError: assert 570 == 810
FAILED {NEW} - TypeError: no lines
"""


def failing() -> ScriptedSession:
    """Return a session whose diff broke a test beside one that failed before."""
    _, proposal = runs.diff_step(30, runs.WRONG)
    result = CheckResult(runs.PYTEST, 1, OUTPUT, 0.4, (OLD, NEW))
    checked = TestsFinished(CheckPurpose.AFTER_DIFF, (result,))
    return ScriptedSession(*runs.up_to_first_diff(), *runs.applied(proposal)[1:], checked)


async def test_a_failure_leads_to_the_diff_or_to_the_file() -> None:
    session = failing()
    async with driving(session, (160, 45)) as bench:
        await bench.press("2", "f")
        text = bench.text()
        assert "failed before, not ours" in text
        assert "E       TypeError: no lines" in text
        await bench.press("f")
        assert session.intents == [OpenFile("tests/test_cart.py", 13)]
        opened = OpenedFile("tests/test_cart.py", 13, "\n".join(f"line {n}" for n in range(1, 40)), 1)
        await bench.live(replace(session.newest.live, opened=opened))
        assert "▶ 13 line 13" in bench.text()
        await bench.press("escape", "2", "j", "f")
        assert bench.app.focused is bench.diff
        assert len(session.intents) == 1
