"""Environment of commands: a minimal set of variables, the interpreter, and the worktree's code first on `sys.path`."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from agent_workbench.core.errors import ConfigError
from agent_workbench.system.command_bounds import COMMAND_MARK
from agent_workbench.system.programs import child_environment, clean_path

# Tool chains live below the home folder. Commands get another home, so these variables tell where.
_TOOL_CHAINS = {
    "ASDF_DATA_DIR": ".asdf",
    "CARGO_HOME": ".cargo",
    "GOMODCACHE": "go/pkg/mod",
    "MISE_DATA_DIR": ".local/share/mise",
    "PYENV_ROOT": ".pyenv",
    "RUSTUP_HOME": ".rustup",
}
_HAS_PYTEST = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"
_PROBE_SECONDS = 10.0


def clean_environment(parent: Mapping[str, str], path: str, home: str, temporary: str, bounds: str) -> dict[str, str]:
    """Return the whole environment of a command; of the parent's it keeps only the folders of tool chains.

    `home` and `temporary` are folders of the command, `bounds` names all of its own ones. Blocks: it looks for the tool
    chains.
    """
    locale = "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8"
    environment = {
        COMMAND_MARK: bounds,
        "HOME": home,
        "LANG": locale,
        "LC_ALL": locale,
        "PATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        # SIGABRT, which a command gets that has used its time, has a Python print where it hangs.
        "PYTHONFAULTHANDLER": "1",
        "TERM": "dumb",
        "TMPDIR": temporary,
    }
    user_home = Path(parent.get("HOME") or "/nonexistent")
    for name, below in _TOOL_CHAINS.items():
        folder = Path(parent.get(name) or user_home / below)
        if folder.is_absolute() and os.path.isdir(folder):  # noqa: PTH112 - pathlib raises where we may not look
            environment[name] = str(folder)
    return environment


def find_python(wanted: str, checkout: str, path: str = "") -> str:
    """Return the absolute path of the interpreter that runs the tests of `checkout`.

    `wanted` is the setting `python`: a path (relative to the checkout), a name on `path`, or empty. Empty means
    `.venv/bin/python` of the checkout, else a `python3` on `path` that has pytest; the workbench's own interpreter only
    if it alone has pytest. `path` defaults to the parent's. Blocks for as long as the interpreters take to start.
    Raises `ConfigError` if there is none.
    """
    path = clean_path(path or os.environ.get("PATH", ""), checkout)
    if wanted:
        return _configured_python(wanted, checkout, path)
    own = Path(checkout) / ".venv" / "bin" / "python"
    if _is_program(own):
        return str(own)
    found = list(dict.fromkeys(_pythons_on(path)))
    theirs = [python for python in found if not _is_ours(python)]
    for python in [*theirs, sys.executable]:
        if _has_pytest(python):
            return python
    if not found:
        raise ConfigError("no python3 was found on PATH", advice="name an interpreter in .agent.yml: `python: <path>`")
    return (theirs or found)[0]


def _configured_python(wanted: str, checkout: str, path: str) -> str:
    if os.sep not in wanted:
        candidates = [Path(folder) / wanted for folder in path.split(os.pathsep)]
    else:
        # Not resolved: the path of the symlink identifies a venv.
        candidates = [Path(os.path.normpath(Path(checkout) / Path(wanted).expanduser()))]
    for candidate in candidates:
        if _is_program(candidate):
            return str(candidate)
    raise ConfigError(
        f"the interpreter {wanted!r} was not found, or cannot be executed",
        advice="correct `python:` in .agent.yml; a relative path starts at the repository",
    )


def _is_program(path: Path) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - pathlib raises where we may not look


def _is_ours(python: str) -> bool:
    # A venv belongs to the workbench, a shared interpreter does not.
    return Path(python).parent.parent.resolve() == Path(sys.prefix).resolve()


def _pythons_on(path: str) -> Iterator[str]:
    for name in ("python3", "python"):
        for folder in path.split(os.pathsep):
            if _is_program(Path(folder) / name):
                yield str(Path(folder) / name)


def _has_pytest(python: str) -> bool:
    try:
        # Not `-P`, which Python before 3.11 does not know.
        probe = subprocess.run(
            [python, "-c", _HAS_PYTEST],
            cwd="/",
            env=child_environment(os.environ, *_TOOL_CHAINS),
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def packages_of(worktree: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder for `PYTHONPATH` (`src` if it contains code, else the root), and its packages."""
    for folder in (Path(worktree) / "src", Path(worktree)):
        packages = tuple(sorted(each.parent.name for each in folder.glob("*/__init__.py")))
        modules = tuple(sorted(each.stem for each in folder.glob("*.py")))
        if packages or (modules and folder.name == "src"):
            return str(folder), packages or modules
    return str(worktree), ()


class WorktreeEnvironments:
    """Environments of commands in worktrees of `checkout`; the interpreter is searched on first use.

    `python` is the setting of that name, `path` the `PATH` to search (default: the parent's). If there is no `python`
    beside the interpreter, as on Debian, a link with that name is created in a folder below `names`.
    """

    def __init__(self, python: str, checkout: str, path: str = "", names: Path | None = None) -> None:
        self._wanted = python
        self._checkout = checkout
        self._names = names
        self._path = path
        self._finding: asyncio.Task[str] | None = None

    async def python(self) -> str:
        """Return the absolute path of the interpreter; raise `ConfigError` if there is none."""
        if self._finding is None or (self._finding.done() and (self._finding.cancelled() or self._finding.exception())):
            work = asyncio.to_thread(find_python, self._wanted, self._checkout, self._path)
            self._finding = asyncio.ensure_future(work)
        return await asyncio.shield(self._finding)

    async def of(self, folder: str) -> Mapping[str, str]:
        """Return the variables for commands in the worktree `folder`; raise `ConfigError` without an interpreter."""
        python = await self.python()
        return await asyncio.to_thread(lambda: environment_for_tests(folder, self._named(python), self._path))

    def _named(self, python: str) -> str:
        if self._names is None or os.access(Path(python).parent / "python", os.F_OK):
            return python
        named = self._names / sha256(os.fsencode(python)).hexdigest()[:12] / "python"
        try:
            named.parent.mkdir(parents=True, exist_ok=True)
            for name in ("python", "python3"):
                with contextlib.suppress(FileExistsError):
                    (named.parent / name).symlink_to(python)
        except OSError as error:
            raise ConfigError(
                f"{named} could not be created: {error.strerror}", advice="set `python:` to a venv"
            ) from error
        return str(named)


def environment_for_tests(worktree: str, python: str, path: str = "") -> dict[str, str]:
    """Return variables with which `python`, `pytest` and imports are those of the worktree. Blocks.

    `python` is the absolute path of the interpreter; its folder is put before `path` (default: the parent's `PATH`).
    Relative entries and those inside the worktree are left out. The worktree's code comes first on `PYTHONPATH`, before
    editable installs of the user's checkout.
    """
    folder = Path(python).parent
    rest = clean_path(path or os.environ.get("PATH", ""), worktree)
    environment = {
        "PATH": os.pathsep.join([str(folder), *(each for each in rest.split(os.pathsep) if each != str(folder))]),
        "PYTHONPATH": packages_of(worktree)[0],
    }
    if os.access(folder.parent / "pyvenv.cfg", os.F_OK):
        environment["VIRTUAL_ENV"] = str(folder.parent)
    return environment
