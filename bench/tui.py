"""What it is like to live in the terminal UI: key to paint, memory over a long session, and the processor when idle.

The real `agent tui` on a real pseudo-terminal, beside an empty Textual app on the same one.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from bench.figures import Figure, ratio
from bench.key_to_paint import Keys, latencies, summed_up
from bench.terminal import NotPaintedError
from bench.tui_scenes import FLOODS, SESSION, STREAMS, Scene, add_session, make_scene, streaming_server, task_count
from bench.typed import WHOLE, Region, Typed

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static

class Empty(App):
    def compose(self):
        self.count = 0
        yield Static("ready 0")

    def on_key(self):
        self.count += 1
        self.query_one(Static).update(f"ready {self.count}")

Empty().run()
"""
EMPTY = (sys.executable, "-c", EMPTY_APP)
# At 120x40, without borders and scroll bars.
PLAN_PANE, STEPS_PANE = Region(1, 1, 20, 29), Region(1, 33, 34, 68)
# A hundred keys end where they began: at the plan's end a key would have no effect.
TASKS_THERE_AND_BACK = 25
OPENED_SECONDS, LIVED_SECONDS = 60.0, 600.0
MEGABYTES, IDLE = "target 300", "target 1"
SESSIONS, NEW_TAB = 8, "\x14"


def measure(keys: int = 100, steps: int = 10_000, idle_seconds: float = 30) -> list[Figure]:
    """Type so many keys in each situation, look at a session of so many steps, and on for so long when nothing is."""
    with tempfile.TemporaryDirectory(prefix="bench-tui-") as name, streaming_server() as address:
        folder = Path(name)
        empty = _empty(folder, keys)
        return [
            *summed_up("an empty Textual app", empty, ""),
            *_short(make_scene(folder / "streams", address, STREAMS), keys, idle_seconds, empty),
            *_eight(make_scene(folder / "eight", address, STREAMS), keys, empty),
            *_flooded(make_scene(folder / "floods", address, FLOODS), keys, empty),
            *_long(folder / "long", address, keys, steps, idle_seconds, empty),
            *_lived(folder, steps),
        ]


def _empty(folder: Path, keys: int) -> list[float]:
    with Typed(EMPTY, str(folder), os.environ) as program:
        program.until("ready")
        return latencies(program, Keys("x" * keys, WHOLE))


def _short(scene: Scene, keys: int, idle_seconds: float, empty: Sequence[float]) -> list[Figure]:
    """Measure a session that has just begun: when nothing happens, and while the model writes its first diff."""
    with scene.open() as program:
        program.until("start T-")
        idle = _idle("nothing happens", program, idle_seconds)
        program.type("1")
        still = latencies(program, _in_plan(keys))
        _start(program)
        program.type("1")
        streams = latencies(program, _in_plan(keys))
    return [*_named("nothing happens", still, empty), *_named("a model streams", streams, empty), idle]


def _eight(scene: Scene, keys: int, empty: Sequence[float]) -> list[Figure]:
    """Measure eight sessions in one window while the model streams in all of them."""
    with scene.open() as program:
        program.until("start T-")
        _start(program)
        for _ in range(SESSIONS - 1):
            program.type(NEW_TAB)
            program.until("start T-")
            _start(program)
        program.type("1")
        stream = latencies(program, _in_plan(keys))
        memory = program.process.memory_info().rss / 1e6
    when = f"a model streams in {SESSIONS} sessions"
    return [*_named(when, stream, empty), Figure(f"memory, {when}", memory, "MB", MEGABYTES)]


def _flooded(scene: Scene, keys: int, empty: Sequence[float]) -> list[Figure]:
    """Measure while the checks before a task print as fast as they can."""
    with scene.open() as program:
        program.until("start T-")
        program.type("\r")
        program.until("Running")
        program.type("1")
        return _named("a test run floods", latencies(program, _in_plan(keys)), empty)


def _long(
    folder: Path, address: str, keys: int, steps: int, idle_seconds: float, empty: Sequence[float]
) -> list[Figure]:
    """Measure a session of many steps that is taken up again."""
    scene = make_scene(folder, address, STREAMS, done=task_count(steps))
    add_session(folder, scene, steps)
    in_steps = Keys("k" * keys, STEPS_PANE)
    pages = Keys("\x02" * min(keys, steps // 20), STEPS_PANE)
    with scene.open("--session", SESSION) as program:
        program.until("start T-", OPENED_SECONDS)
        program.settle()
        idle = _idle(f"nothing happens, {steps:,} steps", program, idle_seconds)
        program.type("2")
        still = latencies(program, in_steps)
        paged = latencies(program, pages)
        _start(program)
        program.type("2")
        streams = latencies(program, in_steps)
        memory = program.process.memory_info().rss / 1e6
    return [
        *_named(f"{steps:,} steps", still, empty),
        *_named(f"{steps:,} steps, pages", paged, empty),
        *_named(f"{steps:,} steps and a model streams", streams, empty),
        idle,
        Figure(f"memory, {steps:,} steps taken up and one more", memory, "MB", MEGABYTES),
    ]


def _lived(folder: Path, steps: int) -> list[Figure]:
    """Measure memory while so many steps happen before the screen's eyes."""
    told = folder / "told"
    with Typed((sys.executable, "-m", "bench.lived", str(steps), str(told)), str(Path.cwd()), os.environ) as program:
        deadline = time.monotonic() + LIVED_SECONDS
        while not told.exists():
            if time.monotonic() > deadline or not program.process.is_running():
                raise NotPaintedError("the long session never came to its end")
            time.sleep(0.2)
    rows = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
    (half, before), (end, after) = rows[len(rows) // 2 - 1], rows[-1]
    return [
        Figure(f"memory, {end:,} steps lived", after / 1e6, "MB", MEGABYTES),
        Figure("it grows in the last half, for 1,000 steps", (after - before) / 1e6 / (end - half) * 1000, "MB"),
        Figure("the most for 1,000 steps", max(_growth(rows)), "MB"),
    ]


def _growth(rows: Sequence[tuple[int, ...]]) -> list[float]:
    return [(after[1] - before[1]) / 1e6 / (after[0] - before[0]) * 1000 for before, after in pairwise(rows)]


def _in_plan(count: int) -> Keys:
    there_and_back = "j" * TASKS_THERE_AND_BACK + "k" * TASKS_THERE_AND_BACK
    return Keys((there_and_back * (count // len(there_and_back) + 1))[:count], PLAN_PANE)


def _start(program: Typed) -> None:
    """Start the next task and wait until its diff is being written."""
    program.type("0")
    program.settle()
    program.type("\r")
    program.until("being written")


def _named(when: str, seconds: Sequence[float], empty: Sequence[float]) -> list[Figure]:
    return [*summed_up(when, seconds), ratio(f"{when}: median, of the empty app", seconds, empty)]


def _idle(when: str, program: Typed, seconds: float) -> Figure:
    """Return how much of a core the program takes when it is left alone."""
    program.settle()
    before, began = program.process.cpu_times(), time.perf_counter()
    time.sleep(seconds)
    after = program.process.cpu_times()
    used = max(0.0, after.user + after.system - before.user - before.system)
    return Figure(f"{when}: of a core", 100 * used / (time.perf_counter() - began), "%", IDLE)
