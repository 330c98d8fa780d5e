"""How long the command takes until it answers, beside an interpreter that does nothing."""

import os
import subprocess
import sys
import time
from statistics import median

from bench.figures import Figure, milliseconds, ratio

Command = tuple[str, ...]
PASS: Command = (sys.executable, "-c", "pass")
HELP: Command = (sys.executable, "-m", "agent_workbench", "--help")
VERSION: Command = (sys.executable, "-m", "agent_workbench", "--version")
SHOWN_IMPORTS = 6


def measure(rounds: int = 7) -> list[Figure]:
    """Return medians over `rounds`; the commands take turns, so that a busy moment hits all of them."""
    for command in (PASS, HELP, VERSION):
        _seconds(command)
    times: dict[Command, list[float]] = {PASS: [], HELP: [], VERSION: []}
    for _ in range(rounds):
        for command, found in times.items():
            found.append(_seconds(command))
    return [
        milliseconds("python -c pass", times[PASS]),
        milliseconds("agent --version", times[VERSION]),
        milliseconds("agent --help", times[HELP], "< 250 where python -c pass takes 20"),
        ratio("agent --help, of python -c pass", times[HELP], times[PASS], "< 12.5"),
        Figure("agent --help, less python -c pass", (median(times[HELP]) - median(times[PASS])) * 1000, "ms"),
        *slowest_imports(),
    ]


def slowest_imports(count: int = SHOWN_IMPORTS) -> list[Figure]:
    """Return the modules whose own import takes longest in `agent --help`, as the interpreter itself tells."""
    command = (sys.executable, "-X", "importtime", *HELP[1:])
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment()).stderr
    own = []
    for line in told.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if len(parts) == 3 and parts[0].strip().isdigit():
            own.append((int(parts[0]) / 1000, parts[2].strip()))
    return [Figure(f"import of {name} alone", value, "ms") for value, name in sorted(own, reverse=True)[:count]]


def _seconds(command: Command) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=_environment())
    return time.perf_counter() - started


def _environment() -> dict[str, str]:
    # What a shell would set for everybody, and nothing that slows one interpreter and not another.
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
