"""How long until the panes of `agent tui` stand, which are its first frame, beside a Textual app with one word."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Figure, milliseconds, ratio
from bench.terminal import Painting, paint

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static

class Empty(App):
    def compose(self):
        yield Static("ready")

Empty().run()
"""
EMPTY = (sys.executable, "-c", EMPTY_APP)
WORKBENCH = (sys.executable, "-m", "agent_workbench", "tui")
EMPTY_MARKER = "ready"
# The title of the pane that is painted last.
PANES_MARKER = "5 retrieved code"


def measure(rounds: int = 7) -> list[Figure]:
    """Paint each in turn in a repository that is set up and trusted, `rounds` times after one that is not counted."""
    with tempfile.TemporaryDirectory(prefix="bench-paint-") as folder:
        environment = prepare(Path(folder))
        empty: list[Painting] = []
        panes: list[Painting] = []
        turns = ((EMPTY, EMPTY_MARKER, empty), (WORKBENCH, PANES_MARKER, panes))
        # Then all that any of them imports is in memory.
        paint(WORKBENCH, PANES_MARKER, f"{folder}/repo", environment)
        for _ in range(rounds):
            for command, marker, found in turns:
                found.append(paint(command, marker, f"{folder}/repo", environment))
    return [
        milliseconds("first screen of an empty Textual app", _times(empty)),
        milliseconds("panes of agent tui stand", _times(panes)),
        ratio("panes stand, of the empty app", _times(panes), _times(empty), "≤ 1.6"),
        milliseconds("first byte of agent tui", [each.first_byte_seconds for each in panes]),
    ]


def prepare(folder: Path) -> Mapping[str, str]:
    """Make a repository that is set up and trusted below `folder`; return the environment to start programs in."""
    # Of Python's own variables none: without bytecode, for one, every start would compile what changed. The size of the
    # screen is the terminal's.
    dropped = ("AGENT_", "COLUMNS", "GIT_", "LINES", "LLAMA_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environment = {**kept, "XDG_STATE_HOME": f"{folder}/state", "XDG_CACHE_HOME": f"{folder}/cache"}
    repo = folder / "repo"
    repo.mkdir()
    (repo / "hello.py").write_text('print("hello")\n')
    author = (("user.name", "bench"), ("user.email", "bench@example.invalid"), ("commit.gpgsign", "false"))
    settings = (("config", *each) for each in author)
    for words in (("init", "--quiet"), *settings, ("add", "--all"), ("commit", "--quiet", "-m", "hello")):
        subprocess.run(["git", *words], cwd=repo, env=environment, check=True)
    for verb in ("init", "trust"):
        command = (sys.executable, "-m", "agent_workbench", verb)
        subprocess.run(command, cwd=repo, env=environment, check=True, stdout=subprocess.DEVNULL)
    # The tour of a first start would cover the panes.
    mark = folder / "state" / "agent-workbench" / "welcomed"
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return environment


def _times(paintings: list[Painting]) -> list[float]:
    return [each.painted_seconds for each in paintings]
