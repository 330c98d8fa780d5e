"""Registered workers from the shell: list, drain, remove; what a session records of its routing and its commands."""

import json
from pathlib import Path

import pytest

from tests.e2e.calc import calc_repo
from tests.e2e.machine import Machine

TASK = """\
id: add
goal: Make add() add
needs: {tags: [lab]}
scope: {allowed_write_globs: [calc.py]}
edits: [{path: calc.py, find: left - right, replace: left + right}]
verify: [{command: python test_calc.py}]
"""
RULES = """\
approvals:
  commit: auto
  rules: [{kind: diff, paths: [calc.py]}, {kind: check, commands: [python test_calc.py]}]
"""


@pytest.fixture
def shared(machine: Machine, postgres_url: str) -> Machine:
    """The machine `box` with the tag `lab`, which shares a database."""
    machine.environ |= {
        "AGENT_DATABASE_URL": postgres_url,
        "AGENT_DATABASE__URL_ENV": "AGENT_DATABASE_URL",
        "AGENT_WORKER__NAME": "box",
        "AGENT_WORKER__TAGS": "[lab]",
        "AGENT_WORKER__PAUSE_BELOW_PERCENT": "0",
    }
    return machine


@pytest.mark.slow
def test_a_task_goes_to_the_worker_that_fits_and_its_session_says_why_and_what_it_used(
    shared: Machine, tmp_path: Path
) -> None:
    repo = calc_repo(shared)
    machine = shared
    machine.git(repo, "init", "-q", "--bare", str(tmp_path / "remote"))
    machine.git(repo, "remote", "add", "origin", str(tmp_path / "remote"))
    assert machine.agent("database", "migrate", cwd=repo).code == 0
    (repo / "add.yaml").write_text(TASK)
    added = machine.agent("worker", "add", "add.yaml", cwd=repo)
    assert "no worker can do it now: no worker is registered" in added.err
    (repo / "add.yaml").unlink()
    policy = machine.folder / "policy.yaml"
    policy.write_text(RULES)
    done = machine.agent("worker", "--once", "--unconfined", "--policy", str(policy), cwd=repo)
    assert (done.code, done.out.splitlines()[-1]) == (0, "add done: committed"), done.said

    (session,) = [each.name for each in (repo / "memory/sessions").iterdir() if each.is_dir()]
    document = json.loads(machine.agent("sessions", "export", session, "--format", "json", cwd=repo).out)
    assert (document["routed"]["worker"], document["routed"]["reasons"][0]) == ("box", "box has tag lab")
    used = document["tasks"][0]["resources"]
    assert used["cpu_seconds"] > 0
    assert used["wall_seconds"] > 0
    assert used["peak_memory_bytes"] > 1_000_000
    assert used["gpu_memory_bytes"] is None

    listed = json.loads(machine.agent("worker", "list", "--json", cwd=repo).out)
    (worker,) = listed["workers"]
    assert (worker["name"], worker["state"], worker["tags"], worker["jobs"]) == ("box", "offline", ["lab"], 0)
    assert worker["resources"]["cores"] >= 1
    large = machine.agent("worker", "list", "--min-vram", "10000", cwd=repo)
    assert (large.code, large.out) == (1, "")
    assert "no worker has 10000 GB of GPU memory" in large.err
    drained = machine.agent("worker", "drain", "bx", cwd=repo)
    assert (drained.code, "no worker 'bx' is registered" in drained.err) == (2, True)
    assert machine.agent("worker", "remove", "box", cwd=repo).out == "box is removed\n"


def test_without_a_database_no_workers_are_registered(machine: Machine) -> None:
    repo = calc_repo(machine)
    listed = machine.agent("worker", "list", cwd=repo)
    assert (listed.code, listed.err.splitlines()[0]) == (
        2,
        "agent: no database is set, so no workers are registered",
    )
