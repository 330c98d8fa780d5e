"""`agent rules check` and `explain`: a policy is checked, and tried before it is relied on."""

import json

import pytest

from tests.e2e.calc import calc_repo
from tests.e2e.machine import Machine

POLICY = """\
approvals:
  diff: auto
  check: auto
  rules:
    - {kind: check, commands: [make test]}
"""
QUEUED = "goal: make add() add\nverify: [make test, make evil]\n"


def test_a_faulty_policy_is_named_with_its_line(machine: Machine) -> None:
    repo = calc_repo(machine)
    faults = {
        "approvals:\n  diff: always\n": "p.yml:2:9: approvals.diff: expected auto, ask, once or deny",
        "approvals:\n  dif: auto\n": "p.yml:2:3: unknown key 'dif' in approvals; did you mean 'diff'?",
        "limits: {}\nmodel: {name: x}\n": "p.yml:2:15: model.name does not belong in a policy",
        "approvals: {rules: [{kind: command, any: true}]}\n": "p.yml:1:21: approvals.rules: a rule for command needs",
    }
    for text, message in faults.items():
        (repo / "p.yml").write_text(text)
        done = machine.agent("rules", "check", "p.yml", cwd=repo)
        assert (done.code, done.out) == (2, "")
        assert message in done.err
    (repo / "p.yml").write_text(POLICY)
    done = machine.agent("rules", "check", "p.yml", cwd=repo)
    assert done.code == 0
    assert done.out.splitlines() == [
        "approvals.diff: auto",
        "approvals.check: auto",
        "approvals.rules: [check make test]",
    ]


@pytest.mark.slow
def test_a_policy_is_explained_for_a_task_of_the_plan_and_a_queue_file(machine: Machine) -> None:
    repo = calc_repo(machine, {"p.yml": POLICY, "tasks/queue/default/theirs.yaml": QUEUED})
    (repo / "tasks/queue/default/mine.yaml").write_text(QUEUED)
    own = machine.agent("rules", "explain", "T-1", "--policy", "p.yml", cwd=repo)
    assert own.code == 0, own.said
    assert "  pass    checks  python test_calc.py: policy:check=auto" in own.out
    assert "no session is recorded that the policy could be tried on" in own.out
    found = {}
    for name in ("mine", "theirs"):
        path = f"tasks/queue/default/{name}.yaml"
        done = machine.agent("rules", "explain", path, "--policy", "p.yml", "--json", cwd=repo)
        assert done.code == 0, done.said
        found[name] = json.loads(done.out)
    assert (found["mine"]["origin"], found["mine"]["checks"]["fate"]) == ("local", "pass")
    assert (found["theirs"]["origin"], found["theirs"]["checks"]["fate"]) == ("repository", "park")
    assert found["theirs"]["checks"]["why"].endswith("no rule names: make evil")
    named = machine.agent("rules", "explain", "mine", "--policy", "p.yml", "--json", cwd=repo)
    assert (named.code, json.loads(named.out or "{}")) == (0, found["mine"]), named.said
    (repo / "tasks/queue/default/mine.yaml").write_text(f"id: JOB-1\n{QUEUED}")
    by_id = machine.agent("rules", "explain", "JOB-1", "--policy", "p.yml", "--json", cwd=repo)
    assert (by_id.code, json.loads(by_id.out or "{}")) == (0, {**found["mine"], "task": "JOB-1"}), by_id.said
    unknown = machine.agent("rules", "explain", "T-9", cwd=repo)
    assert (unknown.code, "T-9" in unknown.err) == (2, True), unknown.said
