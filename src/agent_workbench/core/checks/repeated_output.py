"""Repeats in the output of a failed run: equal failures, repeated lines, and the distinct errors."""

import re
from collections.abc import Iterator, Sequence

from agent_workbench.core.checks.failure_tree import failure_heading

MAX_PERIOD = 8
"""The longest group of lines whose repeats are found."""
LEAST_CUT = 3
"""Fewer repeated lines stay: the note on them would be as long."""
MAX_ERRORS, MAX_ERROR_CHARS = 10, 200
MAX_NAMES = 5

_ERROR = re.compile(
    r"(?:E +)?(?P<said>[\w.]*(?:Error|Exception|Failure|Exit|Interrupt)(?::.*|$)"
    r"|thread '.*' panicked.*|error(?:\[\w+\])?: .*|fatal: .*|assertion .*failed.*"
    r"|\S+?:\d+(?::\d+)?:? (?:error|fatal error|[A-Z]+\d+\b|undefined|cannot).*)"
    r"|E {2,}(?P<bare>\S.*)"
)
# Addresses and line numbers: they tell nothing about the error itself.
_VARYING = re.compile(r"0x[0-9a-fA-F]+|(?:(?<=:)|(?<=line ))\d+")
_RULE = re.compile(r"[-=_* ]*$")
# pytest shows the arguments of a test above its code.
_ARGUMENTS = re.compile(r"\w+ = ")


def distinct_errors(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the first line of each distinct error, in order, with the number of its repeats.

    Two errors are the same if only addresses and line numbers differ.
    """
    found: dict[str, list[str]] = {}
    before = ""
    for line in lines:
        match, text = _ERROR.match(line.strip()), line.strip()
        # The lines below the first one of pytest's are its details.
        if match is not None and not (match["bare"] and before.startswith("E ")):
            said = match["said"] or match["bare"]
            found.setdefault(_VARYING.sub("#", said), []).append(said)
        before = text
    most = list(found.values())[:MAX_ERRORS]
    told = [_counted(said[0], len(said)) for said in most]
    more = len(found) - len(most)
    return (*told, f"… and {more} other errors") if more > 0 else tuple(told)


def without_equal_failures(lines: Sequence[str]) -> list[str]:
    """Return the lines with each failure that equals an earlier one, but for the test's name, replaced by a note."""
    kept: list[str] = []
    alike: list[str] = []
    known: set[str] = set()
    for name, block in _failures(lines):
        body = _body(name, block)
        if body and body in known:
            alike.append(name)
            continue
        kept += [*_alike(alike), *block]
        alike = []
        if name:
            known.add(body)
    return [*kept, *_alike(alike)]


def without_repeated_groups(lines: Sequence[str]) -> list[str]:
    """Return the lines with repeats of the group of up to `MAX_PERIOD` lines before them replaced by their number."""
    kept: list[str] = []
    at = 0
    while at < len(lines):
        period, times = _repeats(lines, at)
        if not times:
            kept.append(lines[at])
            at += 1
            continue
        group = "the line" if period == 1 else f"the {period} lines"
        kept += [*lines[at : at + period], f"… {group} above {times} more time{'s' if times > 1 else ''} …"]
        at += period * (times + 1)
    return kept


def _repeats(lines: Sequence[str], at: int) -> tuple[int, int]:
    """Return the length of the group that begins at this index and its number of repeats, 0 if too few to cut."""
    for period in range(1, min(MAX_PERIOD, (len(lines) - at) // 2) + 1):
        if lines[at] != lines[at + period]:
            continue
        end = at + period
        while end < len(lines) and lines[end] == lines[end - period]:
            end += 1
        times = (end - at) // period - 1
        if times * period >= LEAST_CUT and any(lines[each].strip() for each in range(at, at + period)):
            return period, times
    return 0, 0


def _failures(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the output in blocks, with the name of the failed test for those that a heading begins."""
    name, block = "", list[str]()
    for line in lines:
        heading = failure_heading(line)
        if heading is not None:
            yield name, block
            name, block = heading, []
        block.append(line)
    yield name, block


def _body(name: str, block: Sequence[str]) -> str:
    """Return the account of a failure without what differs between equal ones; empty without a name."""
    lines = [line for line in block[1:] if not _RULE.match(line) and not _ARGUMENTS.match(line)] if name else []
    return _VARYING.sub("#", "\n".join(lines).replace(name, "#"))


def _alike(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return [f"… the same failure in {', '.join(names[:MAX_NAMES])}{more} …"]


def _counted(said: str, times: int) -> str:
    text = said if len(said) <= MAX_ERROR_CHARS else f"{said[:MAX_ERROR_CHARS]}…"
    return f"{text} ({times} times)" if times > 1 else text
