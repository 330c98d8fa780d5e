"""`agent acp` as an editor sees it: real processes, the SDK's client, and a model that says a plan."""

import pytest
from acp import schema as wire

from tests.e2e.acp_client import editor
from tests.e2e.calc import CALC, GOOD, RIGHT, calc_repo, diff_step
from tests.e2e.machine import Machine, bodies, journal_lines

CHECKED = {"AGENT_TEST_COMMAND": "python test_calc.py"}
WRONG = diff_step({"calc.py": CALC}, {"calc.py": CALC.replace("left - right", "left * right")})
TASK = "Make add() add in @calc.py"
# The SDK is slow to import: one worker of the tests does it.
pytestmark = pytest.mark.xdist_group("mcp")


async def test_a_prompt_becomes_a_task_whose_gates_are_asked_to_the_merge(served: Machine) -> None:
    repo = calc_repo(served)
    async with editor(served, repo, {"T-2": GOOD}, environ=CHECKED) as window:
        session = await window.new(repo)
        assert await window.prompt(session, TASK) == "end_turn"
        assert "I change it." in window.said("agent_thought_chunk")
        assert "add() adds now." in window.said("agent_message_chunk")
        titles = [call.title for call, _ in window.asked]
        assert [str(title).split(":")[0] for title in titles[1:]] == ["checks", "diff", "commit", "fast-forward"]
        (diff,) = [each for each in window.asked[2][0].content or () if isinstance(each, wire.FileEditToolCallContent)]
        assert (diff.path, diff.old_text, diff.new_text) == (f"{repo}/calc.py", CALC, RIGHT)
        assert "diff of calc.py: always in this session" in [each.name for each in window.asked[2][1]]
        assert all(each.kind != "allow_always" for each in window.asked[-1][1])
        states = {each.tool_call_id: each.status for each in window.of_kind("tool_call_update") if each.status}
        assert set(states.values()) == {"completed"}
        assert window.of_kind("plan")[-1].entries[-1].status == "completed"
    assert (repo / "calc.py").read_text() == RIGHT
    decided = bodies(journal_lines(repo, session), "action_decided")
    assert [each["by"] for each in decided if not each["by"].startswith("policy:")] == ["acp:test editor"] * 4
    verified = served.agent("verify", "HEAD", cwd=repo)
    assert verified.code == 0, verified.said
    assert "acp:test editor" in verified.out
