"""`python -m bench [NAME ...] [--quick] [--json]`: medians and ratios; nothing is asserted, machines differ."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable

from msgspec import to_builtins

from bench import (
    audit,
    code_search,
    diff_faults,
    edits,
    first_paint,
    fleet,
    hops,
    index_scale,
    journal,
    journeys,
    knowledge,
    night,
    patches,
    prompt,
    prompt_tokens,
    repetition,
    replay,
    server_threads,
    skills,
    start_up,
    tui,
)
from bench.figures import Figure
from bench.tasks.command import main as tasks_main

Measure = Callable[[], list[Figure]]

BENCHES: dict[str, Measure] = {
    "start-up": start_up.measure,
    "first-paint": first_paint.measure,
    "journal": journal.measure,
    "journeys": journeys.measure,
    "tui": tui.measure,
    "hops": hops.measure,
    "prompt": prompt.measure,
    "prompt-tokens": prompt_tokens.measure,
    "replay": replay.measure,
    "patches": patches.measure,
    "patch-faults": diff_faults.measure,
    "edits": edits.measure,
    "repetition": repetition.measure,
    "search": code_search.measure,
    "index-scale": index_scale.measure,
    "server-threads": server_threads.measure,
    "skills": skills.measure,
    "knowledge": knowledge.measure,
    "audit": audit.measure,
    "night": night.measure,
    "fleet": fleet.measure,
}
# The same at sizes that take a few seconds in all; good for seeing that they work, and for little else.
QUICK: dict[str, Measure] = {
    "start-up": lambda: start_up.measure(rounds=1),
    "first-paint": lambda: first_paint.measure(rounds=1),
    "journal": lambda: journal.measure(appended=20, read=100, rounds=1, checks=2, check_mib=1),
    "journeys": lambda: journeys.measure(rounds=1, starts=journeys.STARTS[2:], whole=False),
    "tui": lambda: tui.measure(keys=4, steps=200, idle_seconds=1),
    "hops": hops.measure,
    "prompt": lambda: prompt.measure(steps=4),
    "prompt-tokens": lambda: prompt_tokens.measure(tasks=1),
    "replay": lambda: replay.measure(events=300, seeks=4, rounds=1),
    "patches": lambda: patches.measure(lines=100, hunks=5, files=3, rounds=1),
    "patch-faults": lambda: diff_faults.measure(commits=4, packages=False),
    "edits": lambda: edits.measure(seeds=10, lines=40, vocabulary=0, tokens=60),
    "repetition": lambda: repetition.measure(files=8, loops=20),
    "search": lambda: code_search.measure(package="unidiff"),
    "index-scale": lambda: index_scale.measure(chunks=600, queries=20),
    "server-threads": lambda: server_threads.measure(rounds=1, tokens=4, words=5, vocabulary=0),
    "skills": lambda: skills.measure(skills=10, rounds=1),
    "knowledge": lambda: knowledge.measure(notes=200, rounds=2),
    "audit": lambda: audit.measure(sessions=20, steps=4, rounds=1),
    "night": lambda: night.measure(night.SHORT, night.SHORT_CHAOS, tasks=3),
    "fleet": lambda: fleet.measure(fleet.SMALL, fleet.SMALL_CHAOS, 4.0, queued=200, workers=(1, 2)),
}


def main(arguments: list[str]) -> int:
    """Run what was named (all when nothing was) and print it; a bench that fails is told and makes the exit code 1."""
    if arguments[:1] == ["tasks"]:
        return tasks_main(arguments[1:])
    options = _parser().parse_args(arguments)
    benches = QUICK if options.quick else BENCHES
    report: dict[str, list[Figure]] = {}
    failed = False
    if not options.json:
        print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, load {_load():.1f}")
    for name in options.names or benches:
        try:
            report[name] = benches[name]()
        except Exception as error:
            failed = True
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if not options.json:
            print("\n".join([f"\n{name}", *(figure.line() for figure in report[name])]), flush=True)
    if options.json:
        print(
            json.dumps(
                {name: [to_builtins(figure) for figure in figures] for name, figures in report.items()}, indent=2
            )
        )
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="Measure what the workbench costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*BENCHES, []], help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything works")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def _load() -> float:
    return os.getloadavg()[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
