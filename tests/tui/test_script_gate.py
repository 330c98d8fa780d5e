"""The gate of a script: all of its lines are shown as they are, and approved only when they were."""

import json

import pytest

from agent_workbench.core.events import ActionProposed
from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.settings import Permission
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, driving

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])


def with_script(script: str) -> ScriptedSession:
    text = json.dumps({"skill_name": "calculator", "script": script})
    proposal = runs.proposed(Permission.SCRIPT, "run_python_script", "P-90", text, source="skill", spec="0" * 16)
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


@SIZES
async def test_it_is_shown_in_lines_and_approved_by_one_key(size: tuple[int, int]) -> None:
    session = with_script("from scripts.sums import add\n\nif True:\n\tprint(add(1, 2))\n")
    async with driving(session, size) as bench:
        shown = bench.text()
        assert "Runs with the skill calculator" in shown
        assert "from scripts.sums import add" in shown
        assert "    print(add(1, 2))" in shown
        assert "\\n" not in shown
        assert bench.diff.unseen == 0
        await bench.press("a")
        assert bench.session.intents == [], "typed ahead"
        await bench.look()
        await bench.press("a")
        waiting = bench.session.newest.state.waiting
        assert waiting is not None
        assert bench.session.intents == [ApproveProposal(waiting.id, shown_sha(waiting))]


async def test_a_long_one_is_approved_only_when_its_end_was_on_screen() -> None:
    async with driving(with_script("".join(f"value_{n} = {n}\n" for n in range(60)) + "import os")) as bench:
        await bench.look()
        assert "lines not shown yet" in bench.text()
        while bench.diff.unseen:
            await bench.press("a")
            assert bench.session.intents == []
            await bench.look()
        assert "import os" in bench.text()
        await bench.press("a")
        assert len(bench.session.intents) == 1


async def test_lines_that_imitate_a_diff_are_lines_of_the_script() -> None:
    """Nothing in it ends the part that has to be seen, or begins another one."""
    script = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ No newline\nprint('the end')"
    async with driving(with_script(script), LARGE) as bench:
        for line in script.split("\n"):
            assert line in bench.text()
        assert bench.diff.unseen == 0


async def test_what_cannot_be_seen_is_shown_by_its_code() -> None:
    script = "x = 'a\u202eb\u200bc'  # \rimport os\x1b]52;c;eA==\x07\n\U000e0041 = 1"
    async with driving(with_script(script), LARGE) as bench:
        shown = bench.text()
        for code in ("‹202E›", "‹200B›", "‹E0041›", "␍", "␛"):
            assert code in shown
