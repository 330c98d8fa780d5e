"""The figures of a comparison as text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import json as msgspec_json

from bench.tasks.results import Row, summary

_HEAD = (
    *("agent", "tasks", "first", "in tries", "solved", "95 %", "shown", "file", "function", "formed", "requests"),
    *("prompt 1", "read", "again", "written", "in loops", "s", "s solved", "tests touched"),
)
_MEASURES = ("first", "within", "solved")


def table(rows: Sequence[Row]) -> str:
    """Return a line for each agent, why tasks were not solved, and a line for each pair of agents."""
    if not rows:
        return "no results"
    found = json.loads(msgspec_json.encode(summary(rows)))
    lines = [_HEAD, *(_line(agent, each) for agent, each in found["agents"].items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    for agent, each in found["agents"].items():
        why = ", ".join(f"{number} {reason}" for reason, number in each["why"].items()) or "all solved"
        text.append(f"{agent} {each['version']}: {why}")
    for pair in found["pairs"]:
        text += _pair_lines(pair)
    return "\n".join(text)


def _line(agent: str, each: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = each["solved"]["wilson95"]
    seconds = each["median_seconds_solved"]
    return (
        agent,
        str(each["tasks"]),
        *(f"{each[name]['share']:.1%}" for name in _MEASURES),
        f"{low:.0%}-{high:.0%}",
        *(f"{each[name]['share']:.0%}" for name in ("shown", "right_file", "right_function")),
        f"{each['well_formed']:.1%}",
        f"{each['median_requests']:g}",
        f"{each['median_first_prompt']:g}",
        *(f"{each[name]:,}" for name in ("read", "again", "written", "loop_tokens")),
        f"{each['median_seconds']:.0f}",
        "-" if seconds is None else f"{seconds:.0f}",
        str(each["touched_tests"]),
    )


def _pair_lines(pair: Mapping[str, Any]) -> list[str]:
    said = "; ".join(
        f"{name} {pair[name]['only_first']} : {pair[name]['only_second']}, p = {pair[name]['mcnemar_p']:.3f}"
        for name in _MEASURES
    )
    lines = [f"{' / '.join(pair['agents'])}, {pair['tasks']} tasks, only one of them: {said}"]
    both = pair["both_solved"]
    if both["tasks"]:
        medians = ", ".join(
            "{} {:.0f} / {:.0f}".format(name, *both[f"median_{name}"]) for name in ("read", "written", "seconds")
        )
        lines.append(f"  {both['tasks']} tasks solved by both, medians: {medians}")
    return lines
