"""Detection of a repo's interpreter, tests and linter from its files, without running anything."""

import json
import os
import tomllib
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import StorageError
from agent_workbench.system.programs import find_program
from agent_workbench.system.repo_files import read_inside

MAX_BYTES = 1_000_000
# Usual paths of an interpreter inside the repo.
INTERPRETERS = (".venv/bin/python", "venv/bin/python")
LINKED = (".venv", "venv", "node_modules")


class DetectedProject(Struct, frozen=True):
    """Values for a first `.agent.yml`; empty if nothing was found.

    `absent` are commands whose program is not installed.
    """

    python: str = ""
    test_command: str = ""
    lint_command: str = ""
    link: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def detect_project(root: Path, path: str) -> DetectedProject:
    """Return the values detected in the repo at `root`; programs are searched on `path` and in the repo's venv.

    Blocks. Runs nothing and raises nothing.
    """
    project = _toml(root, "pyproject.toml")
    python = next((each for each in INTERPRETERS if (root / each).is_file()), "")
    commands = _test_command(root, project), _lint_command(root, project)
    folders = [str(root / python.rpartition("/")[0])] if python else []
    folders += [each for each in path.split(os.pathsep) if Path(each).is_absolute()]
    return DetectedProject(
        python=python,
        test_command=commands[0],
        lint_command=commands[1],
        link=tuple(each for each in LINKED if (root / each).is_dir()),
        absent=tuple(each for each in commands if each and not _is_installed(each, os.pathsep.join(folders))),
    )


def _is_installed(command: str, path: str) -> bool:
    program = command.split(maxsplit=1)[0]
    # Commands find `python3` under the name `python` too.
    names = ("python", "python3") if program == "python" else (program,)
    return any(find_program(name, path) for name in names)


def _test_command(root: Path, project: dict[str, object]) -> str:
    if "pytest" in _tool_text(root, project) or _exists(root, "pytest.ini", "tests/conftest.py", "conftest.py"):
        return "pytest -q"
    if _exists(root, "go.mod"):
        return "go test ./..."
    if _exists(root, "Cargo.toml"):
        return "cargo test"
    if _npm_script(root, "test"):
        return "npm test"
    for folder in ("tests", "test"):
        if found := sorted((root / folder).glob("test*.py")):
            return "python -m unittest" if _uses_unittest(root, found) else "pytest -q"
    return ""


def _lint_command(root: Path, project: dict[str, object]) -> str:
    tools = project.get("tool")
    has_ruff = isinstance(tools, dict) and "ruff" in tools
    if has_ruff or _exists(root, "ruff.toml", ".ruff.toml"):
        return "ruff check ."
    return "npm run lint" if _npm_script(root, "lint") else ""


def _tool_text(root: Path, project: dict[str, object]) -> str:
    """Return the texts in which a Python project names its tools."""
    names = ("tox.ini", "setup.cfg", "requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt")
    return str(project) + "".join(_text(root, name) for name in names)


def _uses_unittest(root: Path, files: list[Path]) -> bool:
    texts = [_text(root, str(file.relative_to(root))) for file in files[:20]]
    return any("unittest" in text for text in texts) and not any("pytest" in text for text in texts)


def _npm_script(root: Path, name: str) -> str:
    try:
        package = json.loads(_text(root, "package.json") or "{}")
    except (ValueError, RecursionError):
        return ""
    scripts = package.get("scripts") if isinstance(package, dict) else None
    script = scripts.get(name) if isinstance(scripts, dict) else None
    # `npm init` writes a placeholder.
    return script if isinstance(script, str) and "no test specified" not in script else ""


def _toml(root: Path, name: str) -> dict[str, object]:
    try:
        return tomllib.loads(_text(root, name))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _text(root: Path, name: str) -> str:
    try:
        return (read_inside(root, name, MAX_BYTES) or b"").decode("utf-8", "replace")
    except StorageError:
        return ""


def _exists(root: Path, *names: str) -> bool:
    return any((root / name).is_file() for name in names)
