"""The journeys of a new user: from a clone to the demo, and from a wheel to a commit in a repository of their own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.calc import CALC, GOOD, TEST_CALC
from tests.e2e.journey import Journey, journey
from tests.e2e.machine import CHECKOUT
from tests.fakes.scripted_server import scripted_server
from tests.llama_fixtures import LlamaServer

WORDS = "make add() add"
# The port of llama-server, at which a first start looks for one.
LLAMA_PORT = 8080
ANSWERS = ("Accept: python3 test_calc.py", *GOOD)
FILES = {"calc.py": CALC, "test_calc.py": TEST_CALC, ".gitignore": "__pycache__/\n"}
AUTHOR = (("config", "user.name", "user"), ("config", "user.email", "user@example.invalid"))
WHEEL = (sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir")


@contextmanager
def clone_to_demo(folder: Path) -> Iterator[Journey]:
    """Clone, run the demo and merge its first task; give the journey while the workbench is still open."""
    with journey(folder, folder) as user:
        user.command(f"git clone --quiet {CHECKOUT} agent-workbench")
        user.command("cd agent-workbench")
        user.command("make run")
        user.press("Escape", "1 of 5", "skip the tour: Esc")
        user.press("Enter", "start T-1: Enter")
        user.answer("a", "before any change", "approve: a")
        user.answer("Enter", "what is sent first", "send: Enter")
        user.answer("a", "line.cents + line.quantity", "approve: a")
        user.answer("a", "line.cents * line.quantity", "approve: a")
        user.answer("a", "Commit · waits", "approve: a")
        user.answer("a", "Merge · waits", "approve: a")
        user.arrive("merged into main")
        yield user


@contextmanager
def wheel_to_commit(folder: Path, server: LlamaServer) -> Iterator[Journey]:
    """Install the wheel, set up a repository and have a task of it done; give the journey once it is committed.

    The model's server runs already, where `agent init` finds it. Raises `OSError` if another one is there.
    """
    built = folder / "wheel"
    subprocess.run([*WHEEL, str(built), str(CHECKOUT)], check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    repo = new_repo(folder / "calc")
    programs = folder / "home" / "agent"
    with scripted_server(server, ANSWERS, LLAMA_PORT), journey(folder, repo, f"{programs}/bin") as user:
        user.command("python3 -m venv ~/agent")
        user.command(f"~/agent/bin/pip install --quiet {wheel}")
        user.command("agent init")
        user.answer("Enter", "Use which of them", "n for none")
        user.command(f"agent tui '{WORDS}'")
        to_commit(user)
        yield user


def to_commit(user: Journey) -> None:
    """Press what leads from the words of a first task to its commit."""
    user.press("Escape", "1 of 5", "skip the tour: Esc")
    user.answer("Enter", "New task T-1", "start it: Enter")
    user.answer("a", "Must pass: $ python3 test_calc.py", "approve: a")
    user.press("a", "a again: tasks must pass python3 test_calc.py")
    user.answer("a", "before any change", "approve: a")
    user.answer("Enter", "what is sent first", "send: Enter")
    user.answer("a", "return left + right", "approve: a")
    user.answer("a", "Commit · waits", "approve: a")
    user.arrive("Merge · waits")


def new_repo(folder: Path) -> Path:
    """Make a repository with one commit, by a user whose name git knows only there."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for words in (("init", "--quiet"), *AUTHOR, ("add", "--all"), ("commit", "--quiet", "-m", "start")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder
