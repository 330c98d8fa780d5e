"""A model that says anything: whatever it does wrong is an observation, a refusal or a rejected step."""

from collections import Counter
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import calc_repo
from tests.e2e.machine import WHOLE, Machine, bodies, journal_lines

pytestmark = pytest.mark.slow

STEPS = 50
SETTINGS = """\
limits: {max_tool_calls_per_task: 50, max_reflexion_retries: 100, consecutive_failure_threshold: 100}
model: {answer_tokens: 160}
approvals: {command: deny}
tools_allowed: [read_file, list_files, grep, search_code, write_diff, run_tests, static_analyze, run_command, note]
"""


def test_fifty_free_steps_break_nothing(machine: Machine, tiny_model_path: Path) -> None:
    repo = calc_repo(machine, {".agent.yml": SETTINGS})
    before = fingerprint(repo, ["memory"])
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    machine.environ |= {"AGENT_MODEL__PATH": str(tiny_model_path), "AGENT_MODEL__CONTEXT_TOKENS": "32768"}
    done = machine.agent("run", "--task", "T-1", "--yes", "--json", cwd=repo)
    lines = journal_lines(repo)
    kinds = Counter(line["kind"] for line in lines)
    assert done.code == 1, done.err
    assert f"{STEPS} tool calls were made" in done.err
    answers = kinds["model_answered"] + kinds["model_interrupted"]
    assert answers >= STEPS
    cut = [each for each in bodies(lines, "model_interrupted") if each["cause"] == "length"]
    asked = [each for each in bodies(lines, "action_proposed") if each["proposal"]["tool"] not in {"checks", "commit"}]
    assert len(cut) + len(asked) + kinds["action_rejected"] == STEPS, kinds
    finished = {each["proposal_id"]: each["result"] for each in bodies(lines, "action_finished")}
    refused = {each["proposal_id"] for each in bodies(lines, "action_decided") if each["verdict"] != "approve"}
    assert all(each["proposal"]["id"] in finished.keys() | refused for each in asked), "each came to something"
    assert kinds["trouble_met"] == 0
    assert fingerprint(repo, ["memory"]) == before
    assert machine.agent("sessions", "verify", cwd=repo).code in WHOLE
