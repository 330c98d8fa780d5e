"""The modules of any subject may be missing: the product starts, does tasks, replays, and says what is not there."""

import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import modules, subject_of
from tests.e2e.machine import Done, Machine

# What a session asks for; the others are loaded by their verbs, screens and tools alone.
OF_SESSIONS = ("audit", "hooks", "inbox", "knowledge", "playbooks", "queue", "skills")
SUBJECTS = sorted({subject_of(module.name) for module in modules()} - {""})
# Behind the wall no module of these subjects is found; then the command, or the screen that `agent tui` shows.
WALL = """
import runpy, sys
from importlib.abc import MetaPathFinder

class Wall(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.rpartition(".")[0] != "agent_workbench.subjects":
            return
        if any(name.split(".")[2] == each or name.split(".")[2].startswith(f"{each}_") for each in walled):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

walled = sys.argv.pop(1).split(",")
sys.meta_path.insert(0, Wall())
if sys.argv[1:] == ["screen"]:
    import agent_workbench.cli.front_end, agent_workbench.tui.app
else:
    runpy.run_module("agent_workbench", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("walled", [*OF_SESSIONS, ",".join(SUBJECTS)])
def test_the_product_works_without_a_subject(walled: str, tmp_path: Path) -> None:
    machine, repo = Machine(tmp_path / "machine"), tmp_path / "shop"

    def behind_the_wall(*arguments: str) -> Done:
        return machine.run([sys.executable, "-P", "-c", WALL, walled, *arguments], repo if repo.exists() else tmp_path)

    assert behind_the_wall("screen").said == ""
    done = behind_the_wall("demo", "--headless", "--folder", str(repo))
    assert (done.code, done.out.splitlines()[-1]) == (0, "T-2 done: committed"), done.err
    again = behind_the_wall("replay", "--rerun")
    assert (again.code, again.out.splitlines()[-1]) == (0, "9 prompts, 9 identical"), again.err


def test_a_verb_of_a_missing_subject_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    repo = machine.new_repo("repo", {"a.py": "x = 1\n"})
    done = machine.run([sys.executable, "-P", "-c", WALL, "audit", "audit", "query"], repo)
    assert (done.code, done.out) == (4, "")
    assert "the part audit of agent-workbench is missing here" in done.err
