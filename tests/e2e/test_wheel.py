"""The wheel, installed outside of the checkout: it carries all that it needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.machine import CHECKOUT, Done, Machine

pytestmark = pytest.mark.slow

# The package is imported from where the wheel was put, and the libraries from where they are installed.
CALL = """
import sys
import agent_workbench
if not agent_workbench.__file__.startswith(sys.argv[1]):
    sys.exit(f"this is {agent_workbench.__file__}")
from agent_workbench.cli.main import main
sys.argv = ["agent", *sys.argv[2:]]
main()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, built from a copy of what git knows."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("agent_workbench-*.whl")
    site = folder / "site"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, "-P", "-m", "pip", *install], check=True, timeout=100)
    return site


def call(machine: Machine, installed: Path, *arguments: str, cwd: Path) -> Done:
    """Run the installed command."""
    command = [sys.executable, "-P", "-c", CALL, str(installed), *arguments]
    return machine.run(command, cwd, {"PYTHONPATH": str(installed)})


@pytest.mark.xdist_group("wheel")
def test_it_says_its_version(machine: Machine, installed: Path) -> None:
    done = call(machine, installed, "--version", cwd=machine.home)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("agent 0.")
    assert (installed / "bin/agent").exists()


@pytest.mark.xdist_group("wheel")
def test_it_brings_what_is_not_python(installed: Path) -> None:
    source = CHECKOUT / "src/agent_workbench"
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.suffix in {".tcss", ".typed", ".md"}}
    package = installed / "agent_workbench"
    assert [path for path in sorted(wanted) if not (package / path).exists()] == []
    skills = {path.parent.name for path in (CHECKOUT / "skills").glob("*/SKILL.md")}
    assert skills
    assert {path.parent.name for path in (package / "_data/skills").glob("*/SKILL.md")} == skills
    pages = {path.relative_to(CHECKOUT / "docs") for path in (CHECKOUT / "docs").rglob("*.md")}
    shipped = [path for path in (package / "_data/docs").rglob("*") if path.is_file()]
    assert {path.relative_to(package / "_data/docs") for path in shipped} == pages
    assert not list(installed.rglob("tests"))


@pytest.mark.xdist_group("wheel")
def test_its_errors_name_pages_that_it_brings(machine: Machine, installed: Path) -> None:
    repo = machine.new_repo("typo", {".agent.yml": "tools_alowed: []\n"})
    done = call(machine, installed, "plan", "show", cwd=repo)
    assert done.code == 2, done.said
    address = done.err.splitlines()[-1].strip()
    assert address == (installed / "agent_workbench/_data/docs/reference/settings.md").as_uri()


@pytest.mark.xdist_group("wheel")
def test_its_demo_runs_and_finds_the_skills(machine: Machine, installed: Path) -> None:
    repo = machine.folder / "shop"
    done = call(machine, installed, "demo", "--headless", "--folder", str(repo), cwd=machine.home)
    assert done.code == 0, done.said
    assert "T-2 done: committed" in done.out
    assert call(machine, installed, "sessions", "verify", cwd=repo).code == 0
    shown = call(machine, installed, "skills", "show", "git-workflow", "--json", cwd=repo)
    assert shown.code == 0, shown.said
    skill = json.loads(shown.out)
    assert skill["origin"] == "package"
    assert "_data/skills/git-workflow" in skill["folder"]
    assert len(skill["text"]) > 200
