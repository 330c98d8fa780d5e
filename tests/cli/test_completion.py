"""`agent completion`, asked as a shell asks it."""

import shutil
from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode
from tests.e2e.calc import calc_repo
from tests.e2e.conftest import machine
from tests.e2e.machine import Machine, write_files

__all__ = ["machine"]

PROBE = """\
eval "$(agent completion bash)"
COMP_LINE=$1
COMP_POINT=${#COMP_LINE}
COMP_WORDS=($1)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
[[ $1 == *" " ]] && COMP_CWORD=$((COMP_CWORD + 1))
_python_argcomplete agent
printf '%s\\n' "${COMPREPLY[@]}"
"""
AGENT = '#!/bin/sh\nexec "{python}" -P -m agent_workbench "$@"\n'


@pytest.fixture
def repo(machine: Machine) -> Path:
    return calc_repo(machine)


def offered(machine: Machine, repo: Path, line: str) -> list[str]:
    """Return what bash offers for a line."""
    program = machine.folder / "bin/agent"
    write_files(machine.folder, {"bin/agent": AGENT.format(python=machine.environ["AGENT_PYTHON"])})
    program.chmod(0o755)
    done = machine.run(
        ["bash", "--norc", "-c", PROBE, "bash", line], repo, {"PATH": f"{program.parent}:{machine.environ['PATH']}"}
    )
    assert done.code == 0, done.err
    return [word.strip() for word in done.out.split()]


@pytest.mark.slow
def test_bash_is_offered_verbs_tasks_and_sessions(machine: Machine, repo: Path) -> None:
    assert offered(machine, repo, "agent comp") == ["completion"]
    assert offered(machine, repo, "agent ne") == [], "a verb that another one replaced is not offered"
    assert {"fork", "verify"} <= set(offered(machine, repo, "agent sessions "))
    plan = repo / "memory/plans/PLAN.yaml"
    plan.write_text(f"{plan.read_text()}    applicable_skills: [no-such-skill]\n")
    for line in ("agent merge ", "agent run --task ", "agent inbox --task "):
        assert offered(machine, repo, line) == ["T-1"], "also with a plan that has a fault"
    plan.write_text(plan.read_text().replace("    applicable_skills: [no-such-skill]\n", ""))
    assert offered(machine, repo, "agent run --task T-1 ") == [], "words are no file"
    assert offered(machine, repo, "agent run --policy PLAN") == []
    assert "memory/" in offered(machine, repo, "agent run --policy mem")
    parked = machine.agent("run", "--task", "T-1", "--model-url", "http://127.0.0.1:1", cwd=repo)
    assert parked.code == ExitCode.PARKED
    (session,) = (each.name for each in (repo / "memory/sessions").iterdir())
    assert offered(machine, repo, "agent replay 2") == [session]


def test_outside_of_a_repository_only_verbs_are_offered(machine: Machine) -> None:
    folder = machine.folder / "nothing"
    folder.mkdir()
    assert offered(machine, folder, "agent merge ") == []
    assert offered(machine, folder, "agent merg") == ["merge"]
    assert offered(machine, folder, "agent model rm ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_can_read_its_script(machine: Machine, shell: str) -> None:
    done = machine.agent("completion", shell, cwd=machine.folder)
    assert done.code == ExitCode.DONE
    assert "agent" in done.out
    if program := shutil.which(shell):
        assert machine.run([program, "-n", "-c", done.out], machine.folder).said == ""


def test_an_unknown_shell_is_refused(machine: Machine) -> None:
    done = machine.agent("completion", "cmd", cwd=machine.folder)
    assert (done.code, "bash" in done.err) == (ExitCode.USAGE, True)
