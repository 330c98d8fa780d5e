"""`python -m bench.tui_faults`: what terminals do to a program, done to the workbench; says for each whether it held.

What is looked at is that no key is lost and that the screen is whole afterwards.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.terminal import COLUMNS, ROWS, NotPaintedError
from bench.tui_scenes import STREAMS, Scene, make_scene, streaming_server
from bench.typed import Typed

DELAY_SECONDS = 0.2
KEYS = 7


def storm(program: Typed) -> None:
    """Change the size a hundred times within a second, and type meanwhile."""
    for number in range(100):
        program.resize(COLUMNS - number % 60, ROWS - number % 16)
        if number % 10 == 0:
            program.type("j" if number < KEYS * 10 else "")
        time.sleep(0.01)
    program.resize(COLUMNS, ROWS)


def focus(program: Typed) -> None:
    """Say fifty times that the terminal lost and got the focus, with keys in between."""
    for number in range(50):
        program.type("\x1b[O\x1b[I")
        if number < KEYS:
            program.type("j")


def slow_line(program: Typed) -> None:
    """Type as over a line that takes 200 ms: keys come in lumps, escape sequences torn in two."""
    time.sleep(DELAY_SECONDS)
    program.type("jjj\x1b[")
    program.type("Bjj")
    time.sleep(DELAY_SECONDS)
    program.type("j")


FAULTS: dict[str, Callable[[Typed], None]] = {
    "100 sizes within a second": storm,
    "focus events": focus,
    "a line that is slow and lumps keys": slow_line,
}


def held(scene: Scene, fault: Callable[[Typed], None], *, streams: bool) -> str:
    """Return what was lost, empty for nothing: the keys typed meanwhile select the eighth task, and `o` shows it."""
    with scene.open("--new") as program:
        program.until("start T-")
        if streams:
            program.type("\r")
            program.until("being written")
        program.type("1g")
        time.sleep(1)
        fault(program)
        time.sleep(1.5)
        program.type("o")
        try:
            program.until(f"id: T-{KEYS + 1}", 10)
        except NotPaintedError as error:
            return str(error)
    return ""


def closed(scene: Scene) -> str:
    """Return what was lost when the terminal went away while the model wrote, empty for nothing."""
    with scene.open("--new") as program:
        program.until("start T-")
        program.type("\r")
        program.until("being written")
        program.hang_up()
        program.process.wait(10)
    journal = max((scene.repo / "memory/sessions").glob("*/journal.jsonl"), key=os.path.getmtime)
    return "" if b"SIGHUP" in journal.read_bytes() else "the journal does not say why the session was left"


def main() -> int:
    """Do everything to a session in which nothing happens, and to one in which the model writes."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bench-faults-") as name, streaming_server() as address:
        tried: dict[str, Callable[[Scene], str]] = {"the terminal is closed": closed}
        for words, fault in FAULTS.items():
            for streams in (False, True):
                when = "while the model writes" if streams else "while nothing happens"
                tried[f"{words}, {when}"] = lambda scene, fault=fault, streams=streams: held(
                    scene, fault, streams=streams
                )
        for number, (words, attempt) in enumerate(tried.items()):
            lost = attempt(make_scene(Path(name) / str(number), address, STREAMS))
            failed += bool(lost)
            print(f"{'LOST' if lost else 'held'}  {words}" + (f"\n{lost}" if lost else ""), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
