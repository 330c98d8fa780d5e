"""The outcomes as a table, as JSON, and one by one."""

import difflib
import json
from collections.abc import Iterator, Sequence

from bench.faults.judge import Outcome, Tally, Verdict, tallies, total
from bench.faults.kinds import NAMES, Group

_RULE = "─" * 100


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each kind and group: right, refused, wrong of each applier, and what was half applied."""
    found = tallies(outcomes)
    appliers = list(dict.fromkeys(outcome.applier for outcome in outcomes))
    width = max(len(name) for name in (*NAMES, *Group))
    lines = [" " * (width + 7) + "".join(f"{name:^26}" for name in appliers)]
    lines.append(" " * width + f"{'cases':>7}" + " right refus. wrong  half   " * len(appliers))
    for group in Group:
        kinds = [name for name in NAMES if any(o.case.kind == name and o.case.group is group for o in outcomes)]
        for name in [*kinds, str(group)] if kinds else []:
            row = [found.get((applier, name), Tally()) for applier in appliers]
            lines.append(f"{name:<{width}}{row[0].cases:>7}" + "".join(_cells(tally) for tally in row))
        lines += [""] if kinds else []
    sums = [total(found, applier) for applier in appliers]
    if sums:
        lines.append(f"{'all':<{width}}{sums[0].cases:>7}" + "".join(_cells(tally) for tally in sums))
        shares = "".join(f"{f'{tally.share:.1%} right, {tally.milliseconds:.1f} ms':^26}" for tally in sums)
        lines.append(" " * (width + 7) + shares)
        lines.append(f"refused by {appliers[0]}, where the old lines alone fit several places: {sums[0].fair}")
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome]) -> str:
    """Return the sums as JSON: by applier, then by kind or group."""
    told: dict[str, dict[str, dict[str, float]]] = {}
    for (applier, name), tally in tallies(outcomes).items():
        told.setdefault(applier, {})[name] = {
            **{str(verdict): tally.counts[verdict] for verdict in Verdict},
            "cases": tally.cases,
            "fair": tally.fair,
            "milliseconds": round(tally.milliseconds, 3),
        }
    return json.dumps(told, indent=2, ensure_ascii=False)


def each(outcomes: Sequence[Outcome], verdicts: frozenset[Verdict]) -> Iterator[str]:
    """Yield the damaged diff of every outcome with such a verdict, and how what came differs from what is right."""
    for outcome in outcomes:
        if outcome.verdict in verdicts:
            unclear = ", fits several places" if outcome.case.unclear else ""
            yield f"{_RULE}\n{outcome.verdict} by {outcome.applier}{unclear}: {outcome.case.id}"
            yield outcome.attempt.said + "\n"
            yield outcome.case.patch
            yield from _differences(outcome) if outcome.verdict is not Verdict.REFUSED else ()


def _differences(outcome: Outcome) -> Iterator[str]:
    for path in {**outcome.case.post, **outcome.attempt.post}:
        right, got = ((texts.get(path) or "") for texts in (outcome.case.post, outcome.attempt.post))
        old, new = (text.splitlines(keepends=True) for text in (right, got))
        yield "".join(
            repr(line)[1:-1] + "\n" for line in difflib.unified_diff(old, new, f"right/{path}", f"got/{path}")
        )


def _cells(tally: Tally) -> str:
    wrong, half = tally.wrong, tally.counts[Verdict.HALF]
    return f"{tally.right:>6}{tally.refused:>7}{wrong:>6}{half:>6} "
