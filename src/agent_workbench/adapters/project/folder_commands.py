"""Commands of one folder of a project, read from the files of its tools; nothing of it is run."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_workbench.core.errors import StorageError
from agent_workbench.core.repo.project_commands import ProjectCommand
from agent_workbench.core.rules.command_lines import programs_of
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
# Words of a shell that are no programs.
_BUILT_IN = {
    *(":", "[", "cd", "command", "do", "done", "echo", "else", "env", "eval", "exec", "exit", "export", "false", "fi"),
    *("for", "if", "printf", "pwd", "set", "shift", "source", "test", "then", "trap", "true", "unset", "while"),
}
PYTHON, GO, RUST, NODE, RUNNER = "python", "go", "rust", "node", "runner"


class ProjectFolder:
    """A folder of the repository at `root`; programs are looked for on `path` and in what the project installed."""

    def __init__(self, root: Path, folder: str, path: str, python: str = "") -> None:
        """`folder` is relative to the root, empty for itself; `python` is the interpreter of the commands."""
        self._root = root
        self._folder = folder
        self._path = path
        self._python = python
        self._package = self._json("package.json")

    def tests(self) -> Iterator[tuple[str, ProjectCommand]]:
        """Yield the commands of tests by the kind of tool, of each kind the best that starts."""
        yield from self._best(PYTHON, self._python_tests())
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

    def _python_tests(self) -> Iterator[ProjectCommand]:
        named = next((name for name in ("pyproject.toml", *_PYTHON_FILES) if "pytest" in self._text(name)), "")
        named = named or self._first("pytest.ini", "tests/conftest.py", "conftest.py")
        if named:
            yield self._python_command("pytest -q", named)
        if self._has("tox.ini"):
            yield self._python_command("tox -q", "tox.ini")
        if not named and not self._folder:
            yield from self._test_files()

    def _test_files(self) -> Iterator[ProjectCommand]:
        """Yield the command for files of tests that no tool is named for."""
        for folder in ("tests", "test"):
            if files := sorted((self._root / folder).glob("test*.py"))[:20]:
                texts = [self._text(f"{folder}/{file.name}") for file in files]
                unittest = any("unittest" in text for text in texts) and not any("pytest" in text for text in texts)
                line = "python -m unittest" if unittest else "pytest -q"
                yield self._python_command(line, f"{folder}/{files[0].name}")
                return

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
