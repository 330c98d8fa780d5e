"""`agent skills setup`: what a person is told and asked, and a skill with an environment of thousands of files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.e2e.machine import Machine

SKILL = "---\nname: sums\ndescription: Add numbers.\n---\nUse `scripts.add`.\n"


@pytest.fixture
def repo(machine: Machine) -> Path:
    made = machine.new_repo("shop", {"README.md": "# A shop\n", "skills/sums/SKILL.md": SKILL})
    assert machine.agent("trust", "--yes", cwd=made).code == 0
    return made


@pytest.mark.slow
def test_nothing_is_installed_without_a_yes(machine: Machine, repo: Path) -> None:
    done = machine.agent("skills", "setup", "sums", cwd=repo)
    assert (done.code, done.out) == (0, "the skill sums declares no packages; its scripts run without a set-up\n")
    (repo / "skills" / "sums" / "requirements.txt").write_text("shout>=1\n")
    unknown = machine.agent("skills", "setup", "sums", cwd=repo)
    assert unknown.code == 2, "its new file is not trusted"
    assert "there is no skill 'sums'" in unknown.err
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    asked = machine.agent("skills", "setup", "sums", cwd=repo)
    assert asked.code == 3
    assert "  shout>=1" in asked.out.splitlines()
    assert "nothing was done; `agent skills setup sums --yes` does exactly this" in asked.err
    told = machine.agent("skills", "setup", "sums", "--json", cwd=repo)
    assert (told.code, told.events[0]["done"]) == (3, False)
    (repo / "skills" / "sums" / "requirements.txt").write_text("-r ../../other\n")
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    refused = machine.agent("skills", "setup", "sums", cwd=repo)
    assert refused.code == 2
    assert "requirements.txt:1: '-r ../../other' is not accepted" in refused.err


def test_a_command_of_the_agent_sets_nothing_up(machine: Machine, repo: Path) -> None:
    (repo / "skills" / "sums" / "requirements.txt").write_text("shout>=1\n")
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    refused = machine.agent("skills", "setup", "sums", "--yes", cwd=repo, environ={"AGENT_WORKBENCH_COMMAND": "[]"})
    assert (refused.code, "a command that the agent runs cannot" in refused.err) == (4, True), refused.said


@pytest.mark.slow
def test_a_skill_with_an_environment_stops_no_verb(machine: Machine, repo: Path) -> None:
    environment = repo / "skills" / "sums" / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for number in range(2_500):
        (packages / f"data_{number}").touch()
    for verb in (["trust", "--show"], ["skills", "list"]):
        done = machine.agent(*verb, cwd=repo)
        assert "more than 2000 files" not in done.said, verb
        assert "not trusted" not in done.said, "what tools install asks nothing again"
    accepted = machine.agent("skills", "setup", "sums", "--yes", cwd=repo)
    assert accepted.code == 0, accepted.said
    assert "brings an environment of its own" in accepted.out
    (packages / "data_1").write_text("import os\n")
    changed = machine.agent("skills", "setup", "sums", cwd=repo)
    assert changed.code == 3, "its content is another one"


def test_the_example_calculates(tmp_path: Path) -> None:
    folder = tmp_path / "calculator"
    shutil.copytree(ROOT / "examples" / "skills" / "calculator", folder)
    for file in (folder / "SKILL.md", folder / "examples" / "interest.md"):
        told = file.read_text()
        (code,) = [each.partition("```")[0] for each in told.split("```python\n")[1:]]
        said = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.split("\n")
        for line in filter(None, said):
            assert line in told, f"{file.name} does not tell {line!r}"
    wrong = ("__import__('os')", "1/0", "9**9**9", "x", "True", "", "a.b", "sum()", "(" * 400 + ")" * 400)
    program = (
        "from scripts.calculate import calculate\n"
        f"for wrong in {wrong!r}:\n"
        "    try:\n        print(calculate(wrong))\n    except ValueError as error:\n        print('refused:', error)\n"
    )
    refused = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert [line.partition(":")[0] for line in refused.stdout.splitlines()] == ["refused"] * len(wrong)
