"""Digests of long command outputs for the state in memory. The journal's blobs keep the full outputs."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from agent_workbench.core.checks.failure_report import AFTER, BEFORE, COLOUR, explains_failure, shorten_line
from agent_workbench.core.events import ActionFinished, Event, TestsFinished

KEPT_CHARS = 64_000
"""Maximum length of a digest; a shorter output is kept whole."""
LOOKED_AT_HEAD, LOOKED_AT_TAIL = 50_000, 400_000
"""Characters at an output's beginning and end that are searched for lines that explain a failure."""
HEAD_CHARS, TAIL_CHARS = 4_000, 20_000
# Headings of one test's failure in pytest and cargo.
_HEAD = re.compile(r"_{3,} \S.* _{3,}$|---- \S+ stdout ----$")


def with_digests(event: Event) -> Event:
    """Return the event with its outputs replaced by digests. A digest of a digest is the same text."""
    match event:
        case TestsFinished():
            return digest_results(event)
        case ActionFinished() if len(event.output) > KEPT_CHARS:
            return replace(event, output=output_digest(event.output))
        case _:
            return event


def digest_results(event: TestsFinished) -> TestsFinished:
    """Return a run of checks with each output replaced by its digest."""
    if all(len(result.output) <= KEPT_CHARS for result in event.results):
        return event
    return replace(
        event, results=tuple(replace(result, output=output_digest(result.output)) for result in event.results)
    )


def output_digest(output: str) -> str:
    """Return at most `KEPT_CHARS` characters of an output, each cut stated; all of it if it fits.

    The digest has the beginning, the end, and the lines between them that explain a failure, with their context.
    """
    if len(output) <= KEPT_CHARS:
        return output
    lines, skipped_at, skipped = _lines(output)
    kept = _ends(lines)
    room = KEPT_CHARS - 3_000 - sum(len(lines[at]) + 1 for at in kept)
    for window in _windows(lines):
        fresh = [at for at in window if at not in kept]
        cost = sum(len(lines[at]) + 1 for at in fresh) + (50 if fresh else 0)
        if cost > room:
            break
        kept.update(fresh)
        room -= cost
    return "\n".join(_with_cuts(lines, kept, skipped_at, skipped))


def _lines(output: str) -> tuple[list[str], int, int]:
    """Return the lines to examine, and for each skipped part the line it precedes and its length."""
    start, end = LOOKED_AT_HEAD, len(output) - LOOKED_AT_TAIL
    if end <= start:
        return [_short(line) for line in output.split("\n")], 0, 0
    # Cut at line ends if there are any.
    start, end = output.rfind("\n", 0, start) + 1 or start, output.find("\n", end) + 1 or end
    head, tail = output[:start].removesuffix("\n").split("\n"), output[end:].split("\n")
    return [_short(line) for line in (*head, *tail)], len(head), output.count("\n", start, end)


def _short(line: str) -> str:
    return shorten_line(COLOUR.sub("", line) if "\x1b" in line else line)


def _ends(lines: Sequence[str]) -> set[int]:
    return {*_first(lines, range(len(lines)), HEAD_CHARS), *_first(lines, range(len(lines) - 1, -1, -1), TAIL_CHARS)}


def _first(lines: Sequence[str], order: Iterable[int], room: int) -> Iterator[int]:
    for at in order:
        room -= len(lines[at]) + 1
        if room < 0:
            break
        yield at


def _windows(lines: Sequence[str]) -> Iterator[list[int]]:
    """Yield the context of each line that explains a failure, preceded once by its heading."""
    head = -1
    for at, line in enumerate(lines):
        if _HEAD.match(line):
            head = at
        elif explains_failure(line):
            above, head = ([head] if head >= 0 else []), -1
            yield [*above, *range(max(0, at - BEFORE), min(len(lines), at + AFTER + 1))]


def _with_cuts(lines: Sequence[str], kept: set[int], skipped_at: int, skipped: int) -> Iterator[str]:
    cut = 0
    for at, line in enumerate([*lines, ""]):
        cut += skipped if at == skipped_at and skipped else 0
        if at not in kept and at < len(lines):
            cut += 1
            continue
        if cut:
            yield f"… {cut} lines cut …"
            cut = 0
        if at < len(lines):
            yield line
