"""Excerpt of a failed run's output, without repeats, and the ids of the failed tests in it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice

from agent_workbench.core.checks.results import CodePlace, failure_heading, named_places

BEFORE, AFTER = 8, 4
SUMMARY_LINES = 40
BRIEF_LINES = 3
SHORT_LINES = 6
MAX_LINE_CHARS = 400
_MIN_CHARS = 200
_SAID_LINES = 40
_FRAMES = 20
_TRACE = "Fatal Python error: Aborted"

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SUMMARY = re.compile(r"=+ short test summary info =+$|Ran \d+ tests? in |failures:$|Tests?:? +\d+ |# tests \d+|FAIL\t")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_CUT = re.compile(r"… (\d{1,9}) lines? cut …")
# Lines that explain a failure in Python, pytest, compilers, linters, go, rust and node.
_TELLING = re.compile(
    r"E {2,}\S|[\w.]*(?:Error|Exception|Failure|Exit|Interrupt)(?::|$)|thread '.*' panicked"
    r"|(?:---? )?FAIL(?:ED|URE)?\b|ERROR\b|not ok \d|[✕✖×●] \S|fatal:|error(?:\[\w+\])?:|assertion .*failed"
    r"|\S+?:\d+(?::\d+)?:? (?:error|fatal error|[A-Z]+\d+\b|AssertionError|undefined|cannot)",
)

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
_RAISED = re.compile(r"\.\w{1,10}:\d{1,7}: [A-Z]\w+$")
# Lines from that of an error: its place is beside it, below it in node, above it in Python.
_NEAR_ERROR = (0, 1, 2, -1, -2, -3)
_RULE = re.compile(r"[-=_* ]*$")
# pytest shows the arguments of a test above its code.
_ARGUMENTS = re.compile(r"\w+ = ")

# The summary that node adds itself stays a comment.
_OWN_TAP = re.compile(r"^TAP version \d", re.MULTILINE)
_WRAPPED_TAP = re.compile(r"^# TAP version \d", re.MULTILINE)
_WRAPPED = re.compile(
    r"^# (?!(?:Subtest:|(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) \d))(.*)", re.MULTILINE
)
_LIBRARY_FRAME = re.compile(r"\s*at .*(?:[(/ ]node_modules/|[( ]node:).*:\d+:\d+\)?$")

MAX_FAILURES = 1000
MAX_ID_CHARS = 500
_MAX_LINE_CHARS = 4000

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Durations differ in each run, so they are no part of a test's id.
_DURATION = re.compile(r" \(?\d+(?:\.\d+)? ?m?s\)?$")
_PYTEST_SUMMARY = re.compile(r"=+ short test summary info =+$")
_PYTEST = re.compile(r"(?:FAILED|ERROR|SUBFAIL(?:ED)?\S*) ((?:.+?::.+?|.+?\.py))(?: - .*)?$")
_UNITTEST_RULE = re.compile(r"={70}$")
_UNITTEST = re.compile(r"(?:FAIL|ERROR): (\S+) \(([\w.<>]+)\)(.*)$")
_GO = re.compile(r"--- FAIL: (\S+) \(\d")
_GO_PACKAGE = re.compile(r"FAIL\t(\S+)(?:\t| (\[.*\])$)")
_CARGO = re.compile(r"test (\S.*?) \.\.\. FAILED$")
_TAP = re.compile(r"not ok \d+(?: -)? (.+)$")
_TAP_EXCUSED = re.compile(r"\s#\s*(?:todo|skip)\b", re.IGNORECASE)
_CROSS = re.compile(r"[✕✖×] (.+)$")
_SCRIPT = re.compile(r"FAIL\s+(\S+\.[cm]?[jt]sx?(?: > .+)?)$")
_BEGINNINGS = frozenset("FES-tn✕✖×=")


def report_failure(output: str, limit_chars: int, *, brief: bool = False) -> str:
    """Return the most useful part of `output` in about `limit_chars` characters, each cut stated.

    The first line of each distinct error comes first, then the runner's summary, then the lines that explain a failure,
    with their context, in order. If no such line is found: the beginning and the end. Equal failures, repeated lines
    and frames of packages of node are told once or cut, also in an output that fits. A `brief` report tells no error
    twice: the first failures with their lines, then the names of others.
    """
    text = without_wrapping(COLOUR.sub("", output)).strip("\n")
    lines = list(_without_library_frames(shorten_line(_last_written(line)) for line in text.split("\n")))
    errors = distinct_errors(lines)
    lines = without_repeated_groups(without_equal_failures(lines))
    head = _heading(errors, lines)
    if brief:
        head, lines = [], [_ADDRESS.sub(" at 0x…", line) for line in lines]
    return "\n".join([*head, _excerpt(lines, limit_chars - sum(len(line) + 1 for line in head), brief=brief)])


def without_wrapping(output: str) -> str:
    """Return an output with the TAP of another runner that `node --test` repeats as comments of its own TAP."""
    if not _OWN_TAP.search(output) or not _WRAPPED_TAP.search(output):
        return output
    return _WRAPPED.sub(lambda line: line[1].replace("\\#", "#"), output)


def _without_library_frames(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines; frames of packages and of node itself in a stack of node are a cut."""
    for is_cut, same in groupby(lines, lambda line: _LIBRARY_FRAME.match(line) is not None):
        if is_cut:
            yield _cut_lines(sum(1 for _ in same))
        else:
            yield from same


def _cut_lines(number: int) -> str:
    return f"… {number} line{'s' if number > 1 else ''} cut …"


def report_hang(output: str, limit_chars: int) -> str:
    """Return the last lines of a command that did not end, then the newest frames of each thread of its Python.

    It has at most about `limit_chars` characters; each cut is stated.
    """
    said, mark, trace = COLOUR.sub("", output).strip("\n").partition(_TRACE)
    frames = _last_lines(list(_newest_frames(f"{mark}{trace}".splitlines())), limit_chars * 2 // 3)
    room = limit_chars - sum(map(len, frames))
    lines = [_last_written(line) for line in said.rstrip("\n").split("\n")] if said.strip() else []
    more = max(0, len(lines) - _SAID_LINES)
    cut = [f"… {more} line{'s' if more > 1 else ''} cut …"] if more else []
    return "\n".join([*cut, *_last_lines(lines[more:], room), *frames])


def _newest_frames(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a trace of `faulthandler`, with the first frames of each thread: the newest ones."""
    frames = 0
    for line in lines:
        before, frames = frames, frames + 1 if line.startswith("  File ") else 0
        if not frames and before > _FRAMES:
            yield f"  … {before - _FRAMES} frames cut …"
        if frames <= _FRAMES:
            yield shorten_line(line)
    if frames > _FRAMES:
        yield f"  … {frames - _FRAMES} frames cut …"


def _last_lines(lines: Sequence[str], limit_chars: int) -> list[str]:
    """Return the last lines that fit, each shortened."""
    kept: list[str] = []
    for line in map(shorten_line, reversed(lines)):
        limit_chars -= len(line) + 1
        if limit_chars < 0:
            more = len(lines) - len(kept)
            kept.append(f"… {more} line{'s' if more > 1 else ''} cut …")
            break
        kept.append(line)
    return kept[::-1]


def _last_written(line: str) -> str:
    """Return what a terminal shows of a line that carriage returns wrote over, such as a progress bar."""
    return line.removesuffix("\r").rpartition("\r")[2]


def _heading(errors: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the list of errors; none for a short output, which shows them at once."""
    return ["Errors:", *(f"- {error}" for error in errors), ""] if errors and len(lines) > SHORT_LINES else []


def _excerpt(lines: Sequence[str], limit_chars: int, *, brief: bool) -> str:
    if sum(len(line) + 1 for line in lines) <= limit_chars + 1:
        return "\n".join(lines)
    start = _summary_start(lines)
    summary = lines[start:][: BRIEF_LINES if brief else SUMMARY_LINES]
    room = max(_MIN_CHARS, limit_chars - sum(len(line) + 1 for line in summary))
    kept = _kept(lines[:start], room)
    if not kept:
        return _ends(lines, limit_chars)
    around = list(_with_cuts(lines[:start], kept))
    return "\n".join([*around, *summary] if brief else [*summary, "", *around] if summary else around)


def explains_failure(line: str) -> bool:
    """Return True if a line explains a failure."""
    return _TELLING.match(line.strip()) is not None


def shorten_line(line: str) -> str:
    """Return a line, cut to `MAX_LINE_CHARS` characters with the number of missing ones stated."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]} … {len(line) - MAX_LINE_CHARS} characters cut …"


def _summary_start(lines: Sequence[str]) -> int:
    """Return the line where the last summary begins; the number of lines if there is none."""
    earliest = max(0, len(lines) - 2 * SUMMARY_LINES)
    found = [at for at in range(earliest, len(lines)) if _SUMMARY.match(lines[at].strip())]
    return found[0] if found else len(lines)


def _kept(lines: Sequence[str], room: int) -> set[int]:
    """Return the numbers of the lines to keep: the context of each explaining line while there is room, in order."""
    kept: set[int] = set()
    for at in _telling(lines):
        window = [
            number for number in range(max(0, at - BEFORE), min(len(lines), at + AFTER + 1)) if number not in kept
        ]
        cost = sum(len(lines[number]) + 1 for number in window)
        if cost > room:
            window = [at] if at not in kept and len(lines[at]) < room else []
            cost = sum(len(lines[number]) + 1 for number in window)
        kept.update(window)
        room -= cost
    return kept


def _telling(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of explaining lines: those that begin a failure before those that follow closely."""
    found = [at for at, line in enumerate(lines) if _TELLING.match(line.strip())]
    first = [at for index, at in enumerate(found) if index == 0 or at - found[index - 1] > AFTER]
    yield from first
    yield from (at for at in found if at not in set(first))


def _with_cuts(lines: Sequence[str], kept: set[int]) -> Iterator[str]:
    cut = 0
    for at, line in enumerate(lines):
        if at not in kept:
            # Each cut is stated in a line of its own.
            before = _CUT.fullmatch(line)
            cut += int(before[1]) if before else 1
            continue
        if cut:
            yield _cut_lines(cut)
            cut = 0
        yield line
    if cut:
        yield _cut_lines(cut)


def _ends(lines: Sequence[str], limit_chars: int) -> str:
    text = "\n".join(lines)
    head = limit_chars // 3
    tail = limit_chars - head
    return (
        text
        if len(text) <= limit_chars
        else f"{text[:head]}\n… {len(text) - head - tail} characters cut …\n{text[-tail:]}"
    )


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


def raised_at(output: str) -> frozenset[CodePlace]:
    """Return the places at which errors were raised, as an output tells them: the nearest to each."""
    lines = output.split("\n")
    found: set[CodePlace] = set()
    for at, line in enumerate(lines):
        if _ERROR.match(line.strip()) or _RAISED.search(line):
            near = (lines[at + away] for away in _NEAR_ERROR if 0 <= at + away < len(lines))
            found.update(islice(chain.from_iterable(map(named_places, near)), 1))
    return frozenset(found)


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


def failed_tests(output: str) -> tuple[str, ...]:
    """Return the distinct ids of the failed tests in the order of the output; () for an unknown runner.

    Known are pytest's short summary, unittest, go test, cargo test, TAP, and the marks of jest, vitest and node. At
    most `MAX_FAILURES` ids of at most `MAX_ID_CHARS` characters are returned. A test has the same id in each run.
    """
    found: dict[str, None] = {}
    for name in _OutputReader().names(output):
        found[name[:MAX_ID_CHARS]] = None
        if len(found) >= MAX_FAILURES:
            break
    return tuple(found)


class _OutputReader:
    """State of the reader: what was seen so far decides how a line is read."""

    def __init__(self) -> None:
        self._in_summary = False
        self._after_rule = False
        self._go_tests: list[str] = []

    def names(self, output: str) -> Iterator[str]:
        for raw in without_wrapping(output).split("\n"):
            line = raw if len(raw) <= _MAX_LINE_CHARS else raw[:_MAX_LINE_CHARS]
            line = _COLOUR.sub("", line).strip() if "\x1b" in line else line.strip()
            if line[:1] in _BEGINNINGS and line:
                yield from self._read(line)
            elif line:
                self._after_rule = False
        # The package's own line is missing, or there is one package only.
        yield from self._go_tests

    def _read(self, line: str) -> Iterator[str]:
        after_rule, self._after_rule = self._after_rule, bool(_UNITTEST_RULE.match(line))
        if _PYTEST_SUMMARY.match(line):
            self._in_summary = True
        elif self._in_summary and (match := _PYTEST.match(line)):
            yield match[1]
        elif after_rule and (match := _UNITTEST.match(line)):
            yield _unittest_id(match[1], match[2], match[3])
        elif match := _GO.match(line):
            self._go_tests.append(match[1])
        elif match := _GO_PACKAGE.match(line):
            yield from [f"{match[1]}.{test}" for test in self._go_tests] or [f"{match[1]} {match[2] or ''}".strip()]
            self._go_tests.clear()
        elif match := _CARGO.match(line) or _SCRIPT.match(line):
            yield match[1]
        elif match := _TAP.match(line):
            if not _TAP_EXCUSED.search(line):
                yield _DURATION.sub("", match[1])
        elif (match := _CROSS.match(line)) and not match[1].endswith(":"):
            yield _DURATION.sub("", match[1])


def _unittest_id(method: str, place: str, subtest: str) -> str:
    """Return `module.Class.method`. Since Python 3.11 `place` ends with the method, before it did not."""
    name = place if place.rpartition(".")[2] == method else f"{place}.{method}"
    return f"{name}{subtest.rstrip()}"
