"""Detection of a project's interpreter, tests and linter from the files of its tools; nothing of it is run."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from agent_workbench.core.command_lines import programs_of
from agent_workbench.core.errors import StorageError
from agent_workbench.core.repo.project_commands import DetectedProject, ProjectCommand
from agent_workbench.system.programs import find_program
from agent_workbench.system.repo_files import read_inside

MAX_BYTES = 1_000_000
MAX_SCRIPT_CHARS = 10_000
"""A longer script of `package.json` is not looked into for the programs it needs."""
VENVS = (".venv", "venv")
MODULES = "node_modules"
_PYTHON_FILES = ("tox.ini", "setup.cfg", "requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
# A rule begins at the start of a line; `:=` and `::=` assign.
_MAKE_RULE = re.compile(r"^([^\s#:=][^#:=\n]*)::?(?![:=])", re.MULTILINE)
_JUST_RECIPE = re.compile(r"^@?([A-Za-z_][\w-]*)(?:\s[^:=\n]*)?:(?!=)", re.MULTILINE)
_MANAGERS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
# The parser of TOML takes hours for keys with many dots, and a table is all that is looked for.
_RUFF_TABLE = re.compile(r"^[ \t]*\[{1,2}[ \t]*tool[ \t]*\.[ \t]*ruff[ \t]*[\].]", re.MULTILINE)
_TEST_FILE = re.compile(r"(^|/)(test[^/]*|[^/]+_test)\.py$")
_IN_TESTS = re.compile(r"^tests?/(test[^/]*|[^/]+_test)\.py$")
_IS_TEST = re.compile(r"unittest|pytest|^[ \t]*(async )?def test", re.MULTILINE)
_MOST_TESTS = 20
_HAS_MODULE = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
# Words of a shell that are no programs.
_BUILT_IN = {
    *(":", "[", "cd", "command", "do", "done", "echo", "else", "env", "eval", "exec", "exit", "export", "false", "fi"),
    *("for", "if", "printf", "pwd", "set", "shift", "source", "test", "then", "trap", "true", "unset", "while"),
}
PYTHON, GO, RUST, NODE, RUNNER = "python", "go", "rust", "node", "runner"

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


class ProjectFolder:
    """A folder of the repository at `root`; programs are looked for on `path` and in what the project installed."""

    def __init__(self, root: Path, folder: str, path: str, python: str = "") -> None:
        """`folder` is relative to the root, empty for itself; `python` is the interpreter of the commands."""
        self._root = root
        self._folder = folder
        self._path = path
        self._python = python
        self._package = self._json("package.json")

    def tests(self, scripts: Sequence[str] = ()) -> Iterator[tuple[str, ProjectCommand]]:
        """Yield the commands of tests by the kind of tool, of each kind the best that starts.

        `scripts` are files of Python, which may be tests that no tool is named for.
        """
        yield from self._best(PYTHON, self._python_tests(scripts))
        if self._has("go.mod"):
            yield GO, self._command("go test ./...", "go.mod")
        if self._has("Cargo.toml"):
            yield RUST, self._command("cargo test", "Cargo.toml")
        yield from self._best(NODE, self._script("test"))
        yield from self._best(RUNNER, self._targets("test"))

    def lint(self) -> Iterator[tuple[str, ProjectCommand]]:
        """Yield the commands of linters by the kind of tool, of each kind the best that starts."""
        yield from self._best(PYTHON, self._python_lint())
        if self._has("go.mod"):
            yield GO, self._command("go vet ./...", "go.mod")
        if self._has("Cargo.toml"):
            yield RUST, self._command("cargo clippy -- -D warnings", "Cargo.toml", "cargo", "cargo-clippy")
        yield from self._best(NODE, self._script("lint"))
        yield from self._best(RUNNER, self._targets("lint"))

    @staticmethod
    def _best(kind: str, found: Iterator[ProjectCommand]) -> Iterator[tuple[str, ProjectCommand]]:
        """Yield the first command that starts, else the first."""
        commands = list(found)
        if commands:
            yield kind, next((each for each in commands if not each.missing), commands[0])

    def _python_tests(self, scripts: Sequence[str]) -> Iterator[ProjectCommand]:
        named = next((name for name in ("pyproject.toml", *_PYTHON_FILES) if "pytest" in self._text(name)), "")
        named = named or self._first("pytest.ini", "tests/conftest.py", "conftest.py")
        if named:
            yield self._python_command("pytest -q", named)
        if self._has("tox.ini"):
            yield self._python_command("tox -q", "tox.ini")
        if not named:
            yield from self._test_files(scripts)

    def _test_files(self, scripts: Sequence[str]) -> Iterator[ProjectCommand]:
        """Yield the command for files of tests that no tool is named for."""
        # Beside other languages, a test that is not in a folder of tests may be of a tool.
        pattern = _TEST_FILE if not self._first("package.json", "go.mod", "Cargo.toml") else _IN_TESTS
        named = sorted((each for each in scripts if pattern.search(each)), key=lambda path: (path.count("/"), path))
        texts = {path: self._text(path) for path in named[:_MOST_TESTS]}
        if not (tests := {path: text for path, text in texts.items() if _IS_TEST.search(text)}):
            return
        unittest = any("unittest" in text for text in tests.values())
        line = "pytest -q"
        if unittest and not any("pytest" in text for text in tests.values()):
            line = f"python -m unittest{self._start_folder(next(iter(tests)))}"
        yield self._python_command(line, next(iter(tests)))

    def _start_folder(self, test: str) -> str:
        """Return the words that let unittest find a test: alone it looks into the root and into packages only."""
        folders = PurePosixPath(test).parents[:-1]
        packages = all(self._has(f"{folder}/__init__.py") for folder in folders)
        return "" if packages else f" discover -s {shlex.quote(str(folders[0]))}"

    def _python_lint(self) -> Iterator[ProjectCommand]:
        named = "pyproject.toml" if _RUFF_TABLE.search(self._text("pyproject.toml")) else ""
        if named := named or self._first("ruff.toml", ".ruff.toml"):
            yield self._python_command("ruff check .", named)
        flake8 = (name for name in (".flake8", "setup.cfg", "tox.ini") if "[flake8]" in self._text(name))
        if named := next(flake8, ""):
            yield self._python_command("flake8", named)

    def _python_command(self, line: str, source: str) -> ProjectCommand:
        """Return a command of the interpreter in force, else of the environment in this folder."""
        program = line.partition(" ")[0]
        # Commands find `python3` under the name `python` too.
        names = (program, "python3") if program == "python" else (program,)
        if any(self._finds(name) for name in names):
            return self._named(line, source)
        for venv in VENVS:
            if self._folder and self._is_program(f"{venv}/bin/{program}"):
                return self._named(f"{venv}/bin/{line}", source)
        if program != "python" and self._has_module(program):
            return self._named(f"python -m {line}", source)
        return self._named(line, source, program)

    def _script(self, name: str) -> Iterator[ProjectCommand]:
        """Yield the command for a script of `package.json`, with the package manager of the nearest lock file."""
        scripts = self._package.get("scripts")
        script = scripts.get(name) if isinstance(scripts, dict) else None
        # `npm init` writes a placeholder.
        if not isinstance(script, str) or not script.strip() or "no test specified" in script:
            return
        manager = self._manager()
        # `bun test` is bun's own runner, whatever the script says.
        short = name == "test" and manager != "bun"
        known = programs_of(script) if len(script) <= MAX_SCRIPT_CHARS else ()
        programs = (each.partition(" ")[0] for each in known if each not in _BUILT_IN)
        missing = next((each for each in programs if not self._runs_in_script(each)), "")
        line = f"{manager} {name}" if short else f"{manager} run {name}"
        yield self._named(line, "package.json", "" if self._finds(manager) else manager, missing)

    def _manager(self) -> str:
        said = self._package.get("packageManager")
        named = said.partition("@")[0] if isinstance(said, str) else ""
        if named in _MANAGERS.values():
            return named
        for folder in self._above():
            for lock, manager in _MANAGERS.items():
                if (folder / lock).is_file():
                    return manager
        return "npm"

    def _runs_in_script(self, program: str) -> bool:
        """Return True if a script finds the program: in a package of this folder or one above, or on the PATH."""
        if "/" in program:
            return (self._root / self._folder / program).exists()
        installed = (folder / MODULES / ".bin" / program for folder in self._above())
        return any(os.access(each, os.X_OK) for each in installed) or self._finds(program)

    def _targets(self, name: str) -> Iterator[ProjectCommand]:
        """Yield the commands of runners that have such a target."""
        for files, rule, program in ((_MAKEFILES, _MAKE_RULE, "make"), (_JUSTFILES, _JUST_RECIPE, "just")):
            for file in files:
                if text := self._text(file):
                    if any(name in found[1].split() for found in rule.finditer(text)):
                        yield self._command(f"{program} {name}", file)
                    break

    def _command(self, line: str, source: str, *programs: str) -> ProjectCommand:
        wanted = programs or (line.partition(" ")[0],)
        return self._named(line, source, next((each for each in wanted if not self._finds(each)), ""))

    def _named(self, line: str, source: str, *missing: str) -> ProjectCommand:
        source = f"{self._folder}/{source}" if self._folder else source
        return ProjectCommand(line, source, self._folder, next(filter(None, missing), ""))

    def _finds(self, program: str) -> bool:
        folders = [str(self._root / self._python.rpartition("/")[0])] if self._python else []
        return find_program(program, os.pathsep.join([*folders, self._path])) is not None

    def _has_module(self, name: str) -> bool:
        """Return True if the interpreter of the machine has a module; one in the repo is not run."""
        program = None if self._python else find_program("python3", self._path, str(self._root))
        if program is None:
            return False
        question = (program, "-I", "-c", _HAS_MODULE, name)
        try:
            return subprocess.run(question, cwd="/", capture_output=True, timeout=30, check=False).returncode == 0
        except (OSError, subprocess.SubprocessError):
            return False

    def _is_program(self, name: str) -> bool:
        path = self._root / self._folder / name
        return path.is_file() and os.access(path, os.X_OK)

    def _above(self) -> Iterator[Path]:
        """Yield this folder and those around it, up to the root."""
        folder = self._root / self._folder
        yield folder
        if self._folder:
            yield from (each for each in folder.parents if each.is_relative_to(self._root))

    def _has(self, name: str) -> bool:
        return (self._root / self._folder / name).is_file()

    def _first(self, *names: str) -> str:
        return next((name for name in names if self._has(name)), "")

    def _json(self, name: str) -> Mapping[str, object]:
        try:
            found = json.loads(self._text(name) or "{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _text(self, name: str) -> str:
        try:
            return (read_inside(self._root / self._folder, name, MAX_BYTES) or b"").decode("utf-8", "replace")
        except StorageError:
            return ""


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
