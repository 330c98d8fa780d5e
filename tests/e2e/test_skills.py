"""The example of a skill with a script, as the README tells it: a chat with the real server, in the real sandbox."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.e2e.calc import calc_repo
from tests.e2e.machine import Machine
from tests.test_readme import block

CODE = "from scripts.calculate import calculate\n\nprint(calculate('2340 * 17.5%'))\n"
SCRIPT = json.dumps({"skill_name": "calculator", "script": CODE})
SAYINGS = (
    "Thought: I see which skills there are.\nAction: list_skills\n{}",
    'Thought: I read it.\nAction: get_skill\n{"skill_name": "calculator"}',
    f"Thought: I calculate.\nAction: run_python_script\n{SCRIPT}",
    "Answer: It is 409.5.",
)


@pytest.fixture
def repo(served: Machine) -> Path:
    made = calc_repo(served)
    shutil.copytree(ROOT / "examples" / "skills", made / "skills")
    assert served.agent("trust", "--yes", cwd=made).code == 0
    return made


@pytest.mark.slow
def test_a_chat_reads_the_skill_and_runs_a_script_with_it(served: Machine, repo: Path) -> None:
    words = shlex.split(block("calculator")[-1])[1:]
    asked = served.scripted({"chat:chat": SAYINGS}, *words, cwd=repo)
    assert asked.code == 0, asked.said
    assert "list_skills {}\n  ansible-playbooks: " in asked.out
    assert 'get_skill {"skill_name": "calculator"}\n  ---\n  name: calculator\n' in asked.out
    assert "exit code" not in asked.out, "nobody could be asked"
    served.environ["AGENT_APPROVALS__SCRIPT"] = "auto"
    if "no sandbox" in served.agent("doctor", cwd=repo).said:
        pytest.skip("machine lacks: a sandbox that holds")
    done = served.scripted({"chat:chat": SAYINGS}, *words, "--json", cwd=repo)
    assert done.code == 0, done.said
    results = [body["observation"] for body in done.of_kind("action_finished")]
    assert results[-1] == "exit code 0\nstdout:\n409.5"
    assert all(body["seconds"] >= 0 for body in done.of_kind("action_finished"))
    assert [body["text"] for body in done.of_kind("chat_replied")] == ["It is 409.5."]
    assert "4 prompts, 4 identical" in served.agent("replay", "--rerun", cwd=repo).out
