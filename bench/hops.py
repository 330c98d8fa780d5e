"""How many functions and modules of ours hand on a key press: to the journal line, and to the repaint.

Key `a` is pressed at a waiting diff in the real `agent tui` on a pseudo-terminal, which traces itself
(`bench.hop_trace`). `python -m bench.hops` prints the functions.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure
from bench.hop_trace import KEY, Way
from bench.terminal import DEADLINE_SECONDS, NotPaintedError
from bench.tui_scenes import STREAMS, make_scene, streaming_server
from bench.typed import POLL_SECONDS, Typed

DIFF_LINES = 12
SEEN_SECONDS = 2.0
TARGETS = {"journal line": ("≤ 14", "≤ 9"), "repaint": ("≤ 25", "≤ 15")}


def measure() -> list[Figure]:
    """Press the key once and count."""
    figures = []
    for (name, targets), way in zip(TARGETS.items(), trace(), strict=True):
        figures += [
            Figure(f"key to {name}: functions", len(way.functions), "", targets[0]),
            Figure(f"key to {name}: modules", len(way.modules), "", targets[1]),
            Figure(f"key to {name}: calls meanwhile", way.calls, ""),
            Figure(f"key to {name}: of them on the way", way.calls_on_way, ""),
        ]
    return figures


def trace() -> list[Way]:
    """Return the way to the journal line and the way to the repaint."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-hops-") as name,
        streaming_server("--lines", str(DIFF_LINES)) as address,
    ):
        scene = make_scene(Path(name) / "hops", address, STREAMS)
        told = Path(name) / "told"
        command = (sys.executable, "-m", "bench.hop_trace", str(told), "tui")
        environment = {**scene.environment, "PYTHONPATH": str(Path.cwd())}
        with Typed(command, str(scene.repo), environment) as program:
            program.until("start T-")
            program.type("\r")
            program.until(f"approve: {KEY}")
            return _ways(program, told)


def _ways(program: Typed, told: Path) -> list[Way]:
    """Press the key until it decides: all of the diff has to be on the screen for a moment before."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pressed_at = time.monotonic()
    while time.monotonic() < deadline:
        lines = told.read_text().splitlines(keepends=True) if told.exists() else []
        if len(lines) == len(TARGETS) and lines[-1].endswith("\n"):
            return [Way(*json.loads(line)) for line in lines]
        if not lines and time.monotonic() - pressed_at > SEEN_SECONDS:
            program.type(KEY)
            pressed_at = time.monotonic()
        time.sleep(POLL_SECONDS)
    raise NotPaintedError("the key had no effect:\n" + "\n".join(program.draw()))


if __name__ == "__main__":
    for way in trace():
        print("\n  ".join([f"{len(way.functions)} functions in {len(way.modules)} modules", *way.functions]))
