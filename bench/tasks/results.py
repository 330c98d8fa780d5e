"""Results of attempts, and their statistics."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct
from msgspec import json as msgspec_json

from bench.tasks.agents import Attempt
from bench.tasks.proxy import Exchange, looped_chars

LOOP = "loop"
CONTEXT_FULL = "context full"
TIME = "time"
WRONG_EDIT = "wrong edit"
REFUSED = "refused"
MALFORMED = "malformed"
NO_EDIT = "no edit"


class Row(Struct, frozen=True):
    """Result of one agent on one task.

    `run` identifies the configuration. `passed` says of each change if the check passes after it, `answers_at` which
    answer it came from. Tokens: `prompt` were sent, `read` of them processed by the server, `again` of these although
    an earlier request of the task had sent them; `loop_tokens` were written into loops. `shown`: the first request had
    the place that has to change; that can be measured with the smallest model.
    """

    run: str
    source: str
    task: str
    agent: str
    version: str
    model: str
    table: str
    first: bool
    within: bool
    solved: bool
    why: tuple[str, ...] = ()
    answers: int = 0
    malformed: int = 0
    refused: int = 0
    requests: int = 0
    prompt: int = 0
    first_prompt: int = 0
    read: int = 0
    again: int = 0
    written: int = 0
    loop_tokens: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    passed: tuple[bool, ...] = ()
    answers_at: tuple[int, ...] = ()
    touched: tuple[str, ...] = ()
    shown: bool = False
    right_file: bool = False
    right_function: bool = False
    end: str = ""
    time: str = ""
    load: float = 0.0


class Store:
    """Rows in a file, one line of JSON each, written as soon as an attempt has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def rows(self) -> list[Row]:
        """Return the rows. A torn last line, of a run that was killed, is left out."""
        lines = self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []
        return [msgspec_json.decode(line, type=Row) for line in lines if line.endswith(b"\n")]

    def add(self, row: Row) -> None:
        """Append a row."""
        torn = self._path.exists() and (before := self._path.read_bytes()) and not before.endswith(b"\n")
        if torn:
            self._path.write_bytes(before[: before.rfind(b"\n") + 1])
        with self._path.open("ab") as file:
            file.write(msgspec_json.encode(row) + b"\n")


def reasons(attempt: Attempt) -> tuple[str, ...]:
    """Return why an attempt failed, the main reason first."""
    exchanges = attempt.exchanges
    found = []
    if attempt.ended.timed_out:
        found.append(TIME)
    if any(each.overflowed for each in exchanges):
        found.append(CONTEXT_FULL)
    if attempt.repetitions or any(looped_chars(each.answer) for each in exchanges):
        found.append(LOOP)
    if attempt.changes:
        found.append(WRONG_EDIT)
    if attempt.refused:
        found.append(REFUSED)
    if attempt.malformed:
        found.append(MALFORMED)
    return tuple(found) or (NO_EDIT,)


def tokens(exchanges: Sequence[Exchange]) -> dict[str, int]:
    """Return the counts of tokens of a row."""
    return {
        "requests": len(exchanges),
        "prompt": sum(each.prompt for each in exchanges),
        "first_prompt": exchanges[0].prompt if exchanges else 0,
        "read": sum(each.read for each in exchanges),
        "again": sum(each.again for each in exchanges),
        "written": sum(each.written for each in exchanges),
        "loop_tokens": sum(each.loop_tokens for each in exchanges),
    }


def wilson(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson's score."""
    if not trials:
        return 0.0, 1.0
    share, weight = successes / trials, z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of the exact test of McNemar for the pairs in which one alone succeeded."""
    pairs = only_first + only_second
    tail: float = sum(math.comb(pairs, number) for number in range(min(only_first, only_second) + 1)) / 2**pairs
    return min(1.0, 2 * tail)


def summary(rows: Iterable[Row]) -> dict[str, object]:
    """Return the figures of all agents, and of each pair of them, over these rows."""
    by_agent: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_agent.setdefault(row.agent, {})[f"{row.source}/{row.task}"] = row
    agents = list(by_agent)
    return {
        "agents": {agent: _figures([*by_agent[agent].values()]) for agent in agents},
        "pairs": [
            _pair(first, by_agent[first], second, by_agent[second])
            for at, first in enumerate(agents)
            for second in agents[at + 1 :]
        ],
    }


def _figures(rows: Sequence[Row]) -> dict[str, object]:
    number = len(rows)
    answers = sum(row.answers for row in rows)
    solved = [row for row in rows if row.solved]
    return {
        "version": ", ".join(sorted({row.version for row in rows})),
        "tasks": number,
        "first": _share(sum(row.first for row in rows), number),
        "within": _share(sum(row.within for row in rows), number),
        "solved": _share(len(solved), number),
        "well_formed": (answers - sum(row.malformed for row in rows)) / answers if answers else 1.0,
        "median_requests": median(row.requests for row in rows),
        "median_first_prompt": median(row.first_prompt for row in rows),
        "read": sum(row.read for row in rows),
        "again": sum(row.again for row in rows),
        "written": sum(row.written for row in rows),
        "loop_tokens": sum(row.loop_tokens for row in rows),
        "median_seconds": median(row.seconds for row in rows),
        "median_seconds_solved": median(row.seconds for row in solved) if solved else None,
        "shown": _share(sum(row.shown for row in rows), number),
        "right_file": _share(sum(row.right_file for row in rows), number),
        "right_function": _share(sum(row.right_function for row in rows), number),
        "touched_tests": sum(bool(row.touched) for row in rows),
        "why": dict(Counter(row.why[0] for row in rows if not row.solved and row.why).most_common()),
    }


def _share(successes: int, trials: int) -> dict[str, object]:
    return {"number": successes, "share": successes / trials if trials else 0.0, "wilson95": wilson(successes, trials)}


def _pair(first: str, rows: dict[str, Row], second: str, others: dict[str, Row]) -> dict[str, object]:
    tasks = [task for task in rows if task in others]
    result: dict[str, object] = {"agents": [first, second], "tasks": len(tasks)}
    for measure in ("first", "within", "solved"):
        only_first = sum(getattr(rows[task], measure) and not getattr(others[task], measure) for task in tasks)
        only_second = sum(getattr(others[task], measure) and not getattr(rows[task], measure) for task in tasks)
        result[measure] = {
            "only_first": only_first,
            "only_second": only_second,
            "mcnemar_p": mcnemar(only_first, only_second),
        }
    both = [task for task in tasks if rows[task].solved and others[task].solved]
    result["both_solved"] = {
        "tasks": len(both),
        **{
            f"median_{name}": [median(getattr(side[task], name) for task in both) for side in (rows, others)]
            for name in ("read", "written", "seconds")
            if both
        },
    }
    return result
