"""Every start of a process: the modules that may, and Python that takes no module from the current folder."""

import ast
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.architecture.source_tree import PACKAGE, ROOT, expect_none, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

# Who starts programs, and by which path.
STARTERS = {
    "adapters.demo": "git, found on the cleaned PATH",
    "adapters.git.detached_git": "the same git, in a repository of its own",
    "adapters.git.plumbing": "git, found on the cleaned PATH outside the repo",
    "adapters.project": "the machine's Python, found on the PATH outside the repo, asked for a module",
    "adapters.retrieval.worker_process": "our own Python",
    "adapters.shell.environment": "a Python found on the cleaned PATH outside the repo",
    "adapters.local_machine": "our own Python, nvidia-smi outside the repo, notify-send, osascript on the cleaned PATH",
    "cli.verbs.mcp": "the user's browser, at their word, as the desktop or `BROWSER` names it",
    "adapters.ssh_keygen": "ssh-keygen, found on the cleaned PATH outside the repo",
    "system.editor": "the user's editor, found on the cleaned PATH or named by its path",
    "system.supervisor": "the command that it was given, by its absolute path",
    "system.processes": "our own Python with the supervisor",
    "system.programs": "our own Python",
}
# `shutil.which` looks in the current folder where the PATH says so.
SEARCHERS = {"system.programs", "cli.verbs.demo"}
STARTS = (
    *("subprocess.", "asyncio.create_subprocess", "os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn"),
    *("os.startfile", "pty.spawn", "multiprocessing.", "webbrowser.", "concurrent.futures.ProcessPool"),
)
# A name in these is no start: what is caught, passed, or asked of a process.
NO_STARTS = {"subprocess.DEVNULL", "subprocess.PIPE", "subprocess.TimeoutExpired"}
# Flags that keep the current folder off `sys.path`.
SAFE = {"-P", "-I"}


def _calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)
        elif isinstance(node, ast.ImportFrom) and node.module in {"subprocess", "pty", "multiprocessing", "webbrowser"}:
            yield node.lineno, f"{node.module}.*"  # else the call would not show where the name is from


def test_processes_are_started_by_known_modules_alone() -> None:
    found = {
        module.name.removeprefix(f"{PACKAGE}."): f"{module.where}:{line}: {name}"
        for module in modules()
        for line, name in _calls(module.tree)
        if name.startswith(STARTS) and name not in NO_STARTS
    }
    expect_none(where for name, where in found.items() if name not in STARTERS)
    assert found.keys() == STARTERS.keys()


def test_programs_are_looked_for_in_one_place() -> None:
    expect_none(
        f"{module.where}:{line}: {name}; use host.programs.find_program"
        for module in modules()
        for line, name in _calls(module.tree)
        if name.endswith("which") and module.name.removeprefix(f"{PACKAGE}.") not in SEARCHERS
    )


def _python_starts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each list of words that begins with our interpreter: its line and the word after it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.List | ast.Tuple | ast.Call):
            continue
        words = node.args if isinstance(node, ast.Call) else node.elts
        for word, after in pairwise(words):
            if ast.unparse(word) == "sys.executable":
                yield node.lineno, ast.literal_eval(after) if isinstance(after, ast.Constant) else ""


def test_python_takes_no_module_from_the_current_folder() -> None:
    started = {module.path: list(_python_starts(module.tree)) for module in modules()}
    started |= {path: list(_python_starts(ast.parse(path.read_text()))) for path in (ROOT / "tests/e2e").glob("*.py")}
    assert sum(map(len, started.values())) > 10, "it looks at nothing"
    expect_none(
        f"{path.relative_to(ROOT)}:{line}: {word or 'a value'} behind sys.executable, not -P or -I"
        for path, found in started.items()
        for line, word in found
        if word not in SAFE
    )
