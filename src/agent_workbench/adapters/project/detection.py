"""Detection of a project's interpreter, tests and linter in all its folders, without running anything of it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_workbench.adapters.project.folder_commands import GO, MODULES, RUNNER, VENVS, ProjectFolder
from agent_workbench.core.repo.project_commands import DetectedProject, ProjectCommand

DEPTH = 3
MOST_ENTRIES = 5_000
MOST_FOLDERS = 8
"""Most folders whose commands are joined; a repository with more has a runner at its root, or needs one."""
_PYTHON_MANIFESTS = {"pyproject.toml", "tox.ini", "setup.cfg"}
_MANIFESTS = {*_PYTHON_MANIFESTS, "package.json", "go.mod", "Cargo.toml", "Makefile", "justfile"}
# Folders of installed or made files, and of samples.
_SKIPPED = {
    *(MODULES, "vendor", "third_party", "dist", "build", "target", "env", "venv", "__pycache__", "site-packages"),
    *("testdata", "fixtures", "examples", "example", "templates", "docs", "memory", "skills"),
}
_Found = list[tuple[str, ProjectCommand]]


def detect_project(root: Path, path: str) -> DetectedProject:
    """Return what the files of the repo at `root` say; programs are searched on `path` and in what is installed there.

    Blocks. Runs nothing of the repo and raises nothing.
    """
    files = list(_walk(root))
    folders = _project_folders(files)
    others = tuple(f"{folder}/" for folder, name in files if folder and name in _PYTHON_MANIFESTS)
    paths = (f"{folder}/{name}".lstrip("/") for folder, name in files)
    scripts = [path for path in paths if path.endswith(".py") and not path.startswith(others)]
    python = _interpreter(root, folders)
    tests: _Found = []
    lint: _Found = []
    for folder in ("", *folders):
        project = ProjectFolder(root, folder, path, python)
        _add(tests, list(project.tests(scripts if not folder else ())))
        _add(lint, list(project.lint()))
    link = [f"{folder}/{name}".lstrip("/") for folder in ("", *folders) for name in (*VENVS, MODULES)]
    return DetectedProject(
        python,
        tuple(command for _, command in tests),
        tuple(command for _, command in lint),
        tuple(each for each in link if (root / each).is_dir()),
    )


def _add(found: _Found, here: _Found) -> None:
    """Add the commands of a folder that no command of a folder around it covers."""
    tools = [each for each in here if each[0] != RUNNER]
    # A runner calls the tools of its folder; those can be read more exactly.
    starting = [each for each in tools if not each[1].missing]
    for kind, command in starting or [each for each in here if each[0] == RUNNER] or tools:
        if not any(_covers(other, around, kind, command) for other, around in found):
            found.append((kind, command))


def _covers(other: str, around: ProjectCommand, kind: str, command: ProjectCommand) -> bool:
    """Return True if a command of a folder runs what another one below it would run."""
    if around.missing or not f"{command.folder}/".startswith(f"{around.folder}/" if around.folder else ""):
        return False
    # A Go module ends where another one begins.
    return RUNNER in {other, kind} or (other == kind and kind != GO)


def _interpreter(root: Path, folders: tuple[str, ...]) -> str:
    """Return the interpreter in the root's environment, else that of the only folder that has one; empty without."""
    names = [f"{venv}/bin/python" for venv in VENVS]
    for name in names:
        if (root / name).is_file():
            return name
    found = [f"{folder}/{name}" for folder in folders for name in names if (root / folder / name).is_file()]
    return found[0] if len(found) == 1 else ""


def _project_folders(files: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the folders below the root that have a file of a tool, by path."""
    return tuple(sorted({folder for folder, name in files if folder and name in _MANIFESTS}))[:MOST_FOLDERS]


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of the root and of the folders below it as folder and name, the nearest first."""
    left = MOST_ENTRIES
    waiting = [("", 0)]
    while waiting:
        folder, depth = waiting.pop(0)
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return
                    if entry.is_file(follow_symlinks=False):
                        yield folder, entry.name
                    if depth < DEPTH and _is_searched(entry):
                        waiting.append((f"{folder}/{entry.name}".lstrip("/"), depth + 1))
        except OSError:
            continue


def _is_searched(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name in _SKIPPED or name.startswith((".", "-")) or not name.isprintable() or any(each in "()" for each in name):
        return False
    return entry.is_dir(follow_symlinks=False)
