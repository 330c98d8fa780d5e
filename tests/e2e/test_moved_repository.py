"""A repository whose folder is renamed: what waits in it is found, decided and ended there, on the same branch."""

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine
from tests.e2e.test_inbox import RUN, reference


def branches(machine: Machine, repo: Path) -> str:
    return machine.git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/agent")


@pytest.mark.slow
def test_a_parked_task_is_brought_to_its_end_where_the_repository_was_moved(served: Machine) -> None:
    repo = calc_repo(served)
    assert served.scripted(SCRIPTS, *RUN, cwd=repo).code == 3
    copy = repo.with_name("copy")
    shutil.copytree(repo, copy, symlinks=True)
    assert "not started here" in served.agent("sessions", "list", cwd=copy).out
    assert f"{copy} is a copy of {repo}" in served.agent("doctor", cwd=copy).out
    moved = repo.rename(repo.with_name("moved"))
    assert "not started here" not in served.agent("sessions", "list", cwd=moved).out
    assert "agent/T-1" in served.agent("clean", cwd=moved).out
    assert str(repo) not in served.agent("doctor", cwd=moved).out
    # Trust is bound to the path: it is asked again, and only then is something run here.
    assert served.agent("trust", "--yes", cwd=moved).code == 0
    kinds = []
    while served.scripted(SCRIPTS, *RUN, cwd=moved).code == 3:
        (item,) = json.loads(served.agent("inbox", "--json", cwd=moved).out)
        kinds.append(item["kind"])
        assert served.agent("inbox", "approve", reference(served, moved), cwd=moved).code == 0
    assert kinds == ["check", "diff", "commit"]
    assert branches(served, moved) == "agent/T-1"
    assert served.git(moved, "log", "-1", "--format=%s", "agent/T-1") == "[Agent] Complete T-1: Make add() add"
    assert len(list(served.state.glob("worktrees/*"))) == 1
