"""Choice of the tasks of a run: sets, samples that do not overlap, and tasks that are known to be possible."""

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.tasks.bed import Bed, Check
from bench.tasks.cases import Clone, TaskCase, quixbugs_cases
from bench.tasks.exercises import exercism_cases, polyglot_cases
from bench.tasks.history import history_cases

SETS: Mapping[str, Callable[[Clone], Iterator[TaskCase]]] = {
    "quixbugs": quixbugs_cases,
    "exercism": exercism_cases,
    "polyglot": polyglot_cases,
    "history": history_cases,
}


def read_cases(source: str) -> tuple[list[TaskCase], str]:
    """Return the tasks of `SET:FOLDER` in a stable order, and the commit that they come from."""
    kind, _, folder = source.partition(":")
    if kind not in SETS or not folder:
        raise SystemExit(f"{source} is no source; write SET:FOLDER, where SET is one of {', '.join(SETS)}")
    clone = Clone(Path(folder).expanduser())
    return sorted(SETS[kind](clone), key=lambda case: case.id), clone.commit


def exercise_name(task: str) -> str:
    """Return the name that an exercise has in every set and language."""
    return task.rpartition("/")[2]


def select(
    cases: Sequence[TaskCase], sample: int, seed: int, excluded: Sequence[tuple[int, int]], names: Sequence[str]
) -> list[TaskCase]:
    """Return a random sample (0: all) of the tasks that are in none of the `excluded` samples, of `names` if given.

    A sample is a number and a seed. It depends on the names of the tasks alone.
    """

    def drawn(of: Sequence[TaskCase], number: int, by: int) -> list[TaskCase]:
        return random.Random(by).sample(of, min(number, len(of))) if number else list(of)

    if missing := set(names) - {case.id for case in cases}:
        raise SystemExit(f"no such task: {', '.join(sorted(missing))}")
    gone = {case.id for number, by in excluded for case in drawn(cases, number, by)}
    left = [case for case in cases if case.id not in gone and (not names or case.id in names)]
    return drawn(left, sample, seed)


def possible_cases(cases: Sequence[TaskCase], check: Check, known: Path) -> list[TaskCase]:
    """Return the tasks whose check fails at first and passes with the known solution; `known` keeps what was found."""
    found: dict[str, bool] = json.loads(known.read_text()) if known.exists() else {}
    for number, case in enumerate(cases):
        key = f"{case.id} {check.plain(case)}"
        if key not in found:
            print(f"{number + 1} of {len(cases)}: is {case.id} possible?", file=sys.stderr, flush=True)
            found[key] = is_possible(case, check)
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(json.dumps(found, indent=1))
    return [case for case in cases if found[f"{case.id} {check.plain(case)}"]]


def is_possible(case: TaskCase, check: Check) -> bool:
    """Return True if the check fails at first, and passes with the known solution."""
    with tempfile.TemporaryDirectory(prefix="bench-possible-") as name:
        bed = Bed(Path(name) / "bed", case)
        return not bed.grade(bed.base, check) and bed.grade(bed.solution, check)
