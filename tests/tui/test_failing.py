"""How the screen ends when it fails itself."""

import subprocess
import sys

PROGRAM = """\
from agent_workbench.tui.terminal_app import TerminalApp

class Failing(TerminalApp[None]):
    def on_ready(self) -> None:
        held = "nobody wants " + "to read this"
        raise ValueError(len(held))

Failing().run(headless=True)
"""


def test_it_says_where_it_failed_and_no_values() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert "ValueError: 25" in done.stderr
    assert "nobody wants to read this" not in done.stderr
