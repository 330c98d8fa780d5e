"""The wheel in an environment with the base alone: it carries all that it needs, and names the extra that it lacks."""

import json
import re
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from agent_workbench.core.extras import Extra
from agent_workbench.core.version import __version__
from tests.e2e.calc import calc_repo
from tests.e2e.machine import CHECKOUT, Done, Machine

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

# Pages that are on the site alone, beside the decisions.
FOR_DEVELOPERS = {"architecture.md", "explanation/design.md", "explanation/safety.md"}
PIN = re.compile(r"^[^\s#]+==[^\\\n]+", re.MULTILINE)
CLOCK = {".mcp.json": '{"mcpServers": {"clock": {"command": "/bin/echo"}}}'}
DATABASE = {".agent.yml": "database: {url_env: SHARED}\n"}
VECTORS = {"AGENT_RETRIEVAL__EMBEDDINGS__PROVIDER": "server", "AGENT_RETRIEVAL__EMBEDDINGS__URL": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of an environment with the wheel, built from what git knows, and the libraries of the base lock.

    The libraries are links to those of the tests, so that no index is needed.
    """
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("agent_workbench-*.whl")
    venv.create(folder / "bare", symlinks=True)
    (site,) = folder.glob("bare/lib/python*/site-packages")
    for requirement in map(Requirement, PIN.findall((CHECKOUT / "requirements.lock").read_text())):
        if requirement.marker is None or requirement.marker.evaluate():
            found = distribution(requirement.name)
            for name in {each.parts[0] for each in found.files or ()} - {"..", "__pycache__"}:
                (site / name).symlink_to(str(found.locate_file(name)))
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(_program(site, "python"))]
    subprocess.run([*pip, *install], check=True, timeout=100)
    return site


def _program(installed: Path, name: str) -> Path:
    return installed.parents[2] / "bin" / name


def call(machine: Machine, installed: Path, *arguments: str, cwd: Path) -> Done:
    """Run the installed command."""
    assert "PYTHONPATH" not in machine.environ
    return machine.run([str(_program(installed, "agent")), *arguments], cwd)


def test_it_says_its_version(machine: Machine, installed: Path) -> None:
    done = call(machine, installed, "--version", cwd=machine.home)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"agent {__version__}\n"


def test_it_brings_what_is_not_python(installed: Path) -> None:
    source = CHECKOUT / "src/agent_workbench"
    kinds = {".html", ".md", ".tcss", ".typed"}
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.suffix in kinds}
    package = installed / "agent_workbench"
    assert [path for path in sorted(wanted) if not (package / path).exists()] == []
    skills = {path.parent.name for path in (CHECKOUT / "skills").glob("*/SKILL.md")}
    assert skills
    assert {path.parent.name for path in (package / "_data/skills").glob("*/SKILL.md")} == skills
    docs = {path.relative_to(CHECKOUT / "docs") for path in (CHECKOUT / "docs").rglob("*.md")}
    pages = {page for page in docs if page.parent.name != "decisions" and str(page) not in FOR_DEVELOPERS}
    shipped = [path for path in (package / "_data/docs").rglob("*") if path.is_file()]
    assert {path.relative_to(package / "_data/docs") for path in shipped} == pages
    assert not list(package.rglob("tests"))


def test_its_errors_name_pages_that_it_brings(machine: Machine, installed: Path) -> None:
    repo = machine.new_repo("typo", {".agent.yml": "tools_alowed: []\n"})
    done = call(machine, installed, "plan", "show", cwd=repo)
    assert done.code == 2, done.said
    address = done.err.splitlines()[-1].strip()
    assert address == (installed / "agent_workbench/_data/docs/reference/settings.md").as_uri()


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


def missing(extra: Extra, installed: Path) -> str:
    """Return how an extra is asked for. The environment has no pip, as one of uv."""
    return f"uv pip install --python {_program(installed, 'python')} 'agent-workbench[{extra}]'"


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("acp", Extra.ACP),
        ("mcp", Extra.MCP),
        ("mcp serve --http", Extra.MCP),
        ("tui --web", Extra.WEB),
    ],
)
def test_a_verb_names_the_extra_that_it_lacks(machine: Machine, installed: Path, command: str, extra: Extra) -> None:
    repo = calc_repo(machine)
    assert_refused(call(machine, installed, *command.split(), cwd=repo), extra, installed)
    assert call(machine, installed, *command.split()[:1], "--help", cwd=repo).code == 0


@pytest.mark.parametrize(
    "command",
    [
        "database migrate",
        "database check",
        "sessions list",
        "inbox",
        "worker status",
        "run --task T-1 --yes --unconfined",
    ],
)
def test_a_setting_of_a_database_names_the_extra(machine: Machine, installed: Path, command: str) -> None:
    repo = calc_repo(machine, DATABASE)
    machine.environ["SHARED"] = "postgresql://ada@127.0.0.1:1/agent"
    assert call(machine, installed, "trust", "--yes", cwd=repo).code == 0
    assert_refused(call(machine, installed, *command.split(), cwd=repo), Extra.FLEET, installed)


def assert_refused(done: Done, extra: Extra, installed: Path) -> None:
    assert done.code == 4, done.said
    assert f"the extra {extra} is not installed" in done.err
    assert missing(extra, installed) in done.err
    assert "_data/docs/how-to/install.md" in done.err
    assert "Traceback" not in done.said


def test_tool_servers_and_vectors_are_left_out_and_the_doctor_names_their_extras(
    machine: Machine, installed: Path
) -> None:
    repo = calc_repo(machine, CLOCK)
    assert call(machine, installed, "trust", "--yes", cwd=repo).code == 0
    machine.environ |= VECTORS
    examined = call(machine, installed, "doctor", cwd=repo)
    tested = call(machine, installed, "mcp", "test", cwd=repo)
    searched = call(machine, installed, "search", "add", cwd=repo)
    assert (tested.code, searched.code) == (4, 0)
    assert "calc.py" in searched.out
    for done, extra in (
        (examined, Extra.MCP),
        (examined, Extra.VECTORS),
        (tested, Extra.MCP),
        (searched, Extra.VECTORS),
    ):
        assert missing(extra, installed) in done.said
        assert "Traceback" not in done.said
