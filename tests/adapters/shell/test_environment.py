"""The worktree's code is what is tested: beside real editable installs of the user's checkout, in a real venv."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import editables
import pytest
from msgspec import Struct

from agent_workbench.adapters.shell import environment as environments
from agent_workbench.adapters.shell.environment import (
    WorktreeEnvironments,
    environment_for_tests,
    find_python,
    packages_of,
)
from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.settings import SandboxSettings

PROJECT = '[project]\nname = "sample"\nversion = "1"\n'
SETUPTOOLS = f'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n{PROJECT}'
HATCHLING = f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n{PROJECT}'
HATCH_WHEEL = "[tool.hatch.build.targets.wheel]\n"
# The first setuptools that makes wheels by itself.
SETUPTOOLS_NEEDED = (70, 1)

LAYOUTS = {
    "setuptools src": (SETUPTOOLS + '[tool.setuptools.packages.find]\nwhere = ["src"]\n', "src"),
    "setuptools flat": (SETUPTOOLS + '[tool.setuptools]\npackages = ["sample"]\n', ""),
    "hatchling src": (HATCHLING + HATCH_WHEEL + 'packages = ["src/sample"]\n', "src"),
    "hatchling flat": (HATCHLING + HATCH_WHEEL + 'packages = ["sample"]\n', ""),
    "hatchling exact": (HATCHLING + HATCH_WHEEL + 'packages = ["src/sample"]\ndev-mode-exact = true\n', "src"),
}


class Project(Struct):
    """A checkout that is installed in its own `.venv`, and a worktree of it beside."""

    checkout: Path
    worktree: Path
    python: str
    shell: SandboxedShell

    async def say_where(self, line: str, environment: Mapping[str, str]) -> str:
        outcome = await self.shell.run(Command(line, str(self.worktree), 60, environment), lambda text: None)
        assert outcome.exit_code == 0, outcome.output
        return outcome.output.strip()


def write_copy(folder: Path, pyproject: str, below: str) -> None:
    package = folder / below / "sample"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"WHERE = {folder.name!r}\n")
    (folder / "pyproject.toml").write_text(pyproject)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text("import sample\ndef test_it(): assert sample.WHERE == 'worktree'\n")


def make_venv(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin" / "python")


def install_editable(python: str, checkout: Path) -> None:
    """Install with what our own environment brings: neither the network nor a build environment is needed."""
    ours = [path for path in sys.path if path.endswith("site-packages")]
    argv = [
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-build-isolation",
        "--no-deps",
        "-e",
        str(checkout),
    ]
    environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(ours), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def setuptools_version() -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in version("setuptools").split(".")[:2])
    except PackageNotFoundError:
        return (0,)


@pytest.fixture(params=LAYOUTS, scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that is installed once for all tests that only look at it."""
    name = str(request.param)
    if name.startswith("setuptools") and setuptools_version() < SETUPTOOLS_NEEDED:
        pytest.skip("machine lacks: setuptools that makes wheels (70.1)")
    pyproject, below = LAYOUTS[name]
    place = tmp_path_factory.mktemp("project")
    checkout, worktree = place / "checkout", place / "state" / "worktree"
    for folder in (checkout, worktree):
        write_copy(folder, pyproject, below)
    python = make_venv(checkout / ".venv")
    install_editable(python, checkout)
    if "exact" in name:
        # What such an install depends on, and `--no-deps` left out.
        package = Path(editables.__file__).parent
        site = next((checkout / ".venv" / "lib").glob("python*/site-packages"))
        shutil.copytree(package, site / package.name)
    (worktree / ".venv").symlink_to(checkout / ".venv")
    return Project(checkout, worktree, python, SandboxedShell(SandboxSettings(), str(checkout), dict(os.environ)))


@pytest.mark.slow
@pytest.mark.xdist_group("editable")
async def test_the_worktrees_code_is_imported(project: Project) -> None:
    environment = await WorktreeEnvironments("", str(project.checkout)).of(str(project.worktree))
    where = "python -c 'import sample; print(sample.WHERE)'"
    assert await project.say_where(where, environment) == "worktree"
    # Else the user's checkout would be tested, and nobody would notice.
    assert await project.say_where(f"cd / && {where}", {**environment, "PYTHONPATH": ""}) == "checkout"
    linked = "cd tests && ../.venv/bin/python -c 'import sample; print(sample.WHERE)'"
    assert await project.say_where(linked, environment) == "worktree"


@pytest.mark.slow
async def test_pytest_of_the_venv_tests_the_worktree(tmp_path: Path) -> None:
    """The venv sees our pytest through a path file, as `--system-site-packages` would show the system's."""
    write_copy(tmp_path / "worktree", "", "src")
    python = make_venv(tmp_path / "checkout" / ".venv")
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    site = next((tmp_path / "checkout" / ".venv" / "lib").glob("python*/site-packages"))
    (site / "ours.pth").write_text(ours + "\n")
    (tmp_path / "worktree" / "pytest.ini").write_text("[pytest]\n")
    shell = SandboxedShell(SandboxSettings(), str(tmp_path / "checkout"), dict(os.environ), readable=(ours,))
    environment = await WorktreeEnvironments(python, str(tmp_path / "checkout")).of(str(tmp_path / "worktree"))
    command = Command("python -m pytest -q -p no:cacheprovider", str(tmp_path / "worktree"), 60, environment)
    outcome = await shell.run(command, lambda text: None)
    assert outcome.exit_code == 0, outcome.output
    assert "1 passed" in outcome.output


def test_the_interpreter_is_first_on_the_path(tmp_path: Path) -> None:
    python = make_venv(tmp_path / ".venv")
    environment = environment_for_tests(str(tmp_path), python, path=f"/usr/bin:relative:{tmp_path}/bin:/bin")
    assert environment["PATH"] == f"{tmp_path}/.venv/bin:/usr/bin:/bin"
    assert environment["VIRTUAL_ENV"] == str(tmp_path / ".venv")
    assert "VIRTUAL_ENV" not in environment_for_tests(str(tmp_path), "/usr/bin/python3")


@pytest.mark.parametrize(
    ("files", "folder", "packages"),
    [
        (["src/a/__init__.py", "src/b/__init__.py", "tests/__init__.py"], "src", ("a", "b")),
        (["src/single.py"], "src", ("single",)),
        (["a/__init__.py", "src/readme"], "", ("a",)),
        (["single.py"], "", ()),
        ([], "", ()),
    ],
)
def test_where_the_packages_are(files: list[str], folder: str, packages: tuple[str, ...], tmp_path: Path) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert packages_of(str(tmp_path)) == (str(tmp_path / folder), packages)


def make_program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_named_interpreter_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    inside = make_program(checkout / "env" / "bin" / "python", "")
    make_program(checkout / ".venv" / "bin" / "python", "")
    named = make_program(tmp_path / "bin" / "python3.99", "")
    monkeypatch.setenv("HOME", str(checkout))
    assert find_python("env/bin/python", str(checkout)) == inside
    assert find_python("./env/bin/python", str(checkout)) == inside
    assert find_python("~/env/bin/python", "/") == inside
    assert find_python(inside, "/") == inside
    assert find_python("python3.99", str(checkout), str(tmp_path / "bin")) == named
    with pytest.raises(ConfigError, match="none/bin/python"):
        find_python("none/bin/python", str(checkout))
    (checkout / "env" / "bin" / "python").chmod(0o644)
    with pytest.raises(ConfigError, match="cannot be executed"):
        find_python("env/bin/python", str(checkout))


def test_without_a_name_the_venv_then_one_with_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    without = make_program(tmp_path / "a" / "python3", "exit 1")
    having = make_program(tmp_path / "b" / "python3", "exit 0")
    path = f"{tmp_path}/a:{tmp_path}/b"
    assert find_python("", str(checkout), path) == having
    # Our own interpreter has pytest here: better than one with which no test can run.
    assert find_python("", str(checkout), str(tmp_path / "a")) == sys.executable
    # Also when our venv is active and so stands first on PATH.
    assert find_python("", str(checkout), f"{Path(sys.prefix) / 'bin'}:{tmp_path}/b") == having
    monkeypatch.setattr(environments, "_has_pytest", lambda python: False)
    assert find_python("", str(checkout), path) == without
    with pytest.raises(ConfigError, match="no python3"):
        find_python("", str(checkout), str(tmp_path))
    own = make_program(checkout / ".venv" / "bin" / "python", "")
    assert find_python("", str(checkout), path) == own


async def test_an_interpreter_that_is_missing_is_looked_for_again(tmp_path: Path) -> None:
    found = WorktreeEnvironments("env/bin/python", str(tmp_path), "/usr/bin:/bin")
    with pytest.raises(ConfigError, match="env/bin/python"):
        await found.of(str(tmp_path))
    python = make_program(tmp_path / "env" / "bin" / "python", "")
    assert await found.python() == python
    assert (await found.of(str(tmp_path)))["PATH"] == f"{tmp_path}/env/bin:/usr/bin:/bin"


async def test_an_interpreter_without_a_python_beside_it_gets_the_name(tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "python3.99"
    alone.parent.mkdir()
    alone.symlink_to(sys.executable)
    environments = WorktreeEnvironments(str(alone), str(tmp_path), path="/usr/bin", names=tmp_path / "names")
    first, again = [(await environments.of(str(tmp_path)))["PATH"].split(":")[0] for _ in range(2)]
    assert first == again
    assert Path(first, "python").resolve() == Path(first, "python3").resolve() == Path(sys.executable).resolve()
