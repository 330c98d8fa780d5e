"""Results of tests and lint, the comparison of two runs, and the failures of a run as a tree."""

import re
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.recorded_value import RecordedValue

NEARLY = 1 / 3
"""Share of the tests that failed at first; with no more left, a change is worth going on with."""

SIGNALLED = 128
"""Exit codes from here on, and those below 0, are of commands that a signal ended."""

MAX_TESTS = 50
MAX_LINES = 40
MAX_PROBLEMS = 20
MAX_LINE_CHARS = 400
_MAX_CHARS = 400_000

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(
    r'File "(?P<quoted>[^"]+)", line (?P<at>\d+)'
    r"|(?:panicked at |--> |\()?(?P<path>(?:[\w.@+-]*/)*[\w.@+-]+\.[A-Za-z]\w{0,4}):(?P<line>\d+)\b"
)
# Headings of one test's failure in pytest, unittest, jest, vitest, cargo and go.
_HEADS = (
    re.compile(r"_{3,} (?:ERROR \w+ (?:of|at \w+ of) )?(?P<name>\S.*?) _{3,}$"),
    re.compile(r"(?:FAIL|ERROR): (?P<name>\S+) \("),
    re.compile(r"● (?P<name>\S.*)$"),
    re.compile(r"---- (?P<name>\S+) stdout ----$"),
    re.compile(r"\s*--- FAIL: (?P<name>\S+) \("),
)
_END = re.compile(r"={3,} .* ={3,}$|Ran \d+ tests? in |test result: |failures:$|FAIL$|FAIL\t|ok  \t|Tests?:? +\d+ ")
_TELLING = re.compile(
    r"E {2,}|>\s|[\w.]*(?:Error|Exception|Failure|Exit|Interrupt)(?::|$)|thread '.*' panicked|assertion"
    r"|\s*(?:left|right|Expected|Received|expected|actual)\b.*:|\s*\S+\.go:\d+: "
)
_SUMMARY = re.compile(r"(?:FAILED|ERROR) (?P<id>.+?) - (?P<why>.+)$")
_PROBLEM = re.compile(r"[^\s:]+\.\w{1,5}:\d+(?::\d+)?:? \S|error(?:\[\w+\])?:|\s*--> \S+:\d+|fatal:")
_FOREIGN = ("site-packages/", "<", "node_modules/")


class CheckPurpose(StrEnum):
    """Reason why checks are run."""

    BASELINE = "baseline"
    AFTER_DIFF = "after_diff"
    ASKED = "asked"
    FINAL = "final"

    @property
    def label(self) -> str:
        """Name of checks that are run for it."""
        return {
            CheckPurpose.BASELINE: "baseline",
            CheckPurpose.AFTER_DIFF: "checks after the diff",
            CheckPurpose.ASKED: "checks the model asked for",
            CheckPurpose.FINAL: "final checks",
        }[self]


class CheckResult(RecordedValue, frozen=True):
    """Result of one command. `exit_code` is None if it timed out or could not start.

    `output` is bounded; in a session's state a long output is its digest (`core.fold.output_digests`). `failed_tests`
    are test ids.
    """

    command: str
    exit_code: int | None
    output: str
    seconds: float
    failed_tests: tuple[str, ...] = ()
    cut_bytes: int = 0

    @property
    def passed(self) -> bool:
        """True if the command exited with 0."""
        return self.exit_code == 0


def all_passed(results: tuple[CheckResult, ...]) -> bool:
    """Return True if every command passed, also if there is none."""
    return all(result.passed for result in results)


def acceptable(
    results: tuple[CheckResult, ...],
    baseline: tuple[CheckResult, ...] | None,
    required: int,
    excused: Collection[str] = (),
) -> bool:
    """Return True if the first `required` checks pass and none of the others is worse than in the baseline.

    Of the required commands those that are `excused` may fail too, if each failed test failed in the baseline.
    """
    if baseline is None:
        return all_passed(results)
    must_pass = tuple(each for each in results[:required] if each.command not in excused or not each.failed_tests)
    return all_passed(must_pass) and not regressions(baseline, results)


def fewer_fail(before: Sequence[CheckResult], after: Sequence[CheckResult], share: float = 1.0) -> bool:
    """Return True if of the failed tests `before` at most this share fails `after`, not all of them, and nothing else.

    A failed command that names no test is one, and so is one that was stopped or killed: the rest of it is unknown.
    """
    old, new = ({name for each in results for name in _failures(each)} for results in (before, after))
    return new < old and len(new) <= share * len(old)


def _failures(result: CheckResult) -> tuple[str, ...]:
    if result.passed:
        return ()
    ended = result.exit_code is not None and 0 < result.exit_code < SIGNALLED
    return result.failed_tests if ended and result.failed_tests else (*result.failed_tests, result.command)


def regressions(before: tuple[CheckResult, ...], after: tuple[CheckResult, ...]) -> tuple[str, ...]:
    """Return the commands and test ids that passed in `before` and fail in `after`.

    A command that failed in both runs and named its failed tests in both is compared by test. One that named none is
    not counted as a regression.
    """
    earlier = {result.command: result for result in before}
    worse: list[str] = []
    for result in after:
        was = earlier.get(result.command)
        if was is None or result.passed:
            continue
        if was.passed:
            worse += list(result.failed_tests) or [result.command]
        elif was.failed_tests:
            worse += [test for test in result.failed_tests if test not in was.failed_tests]
    return tuple(dict.fromkeys(worse))


class CodePlace(Struct, frozen=True):
    """A line of a file, counted from 1. `path` is spelled as in the output, so it may lack its first folders."""

    path: str
    line: int


class Failure(Struct, frozen=True):
    """A failed test, or a problem that a command named (`test` is then that line).

    `lines` explain it, `place` is its position. `before`: it failed before any change too.
    """

    test: str
    lines: tuple[str, ...] = ()
    place: CodePlace | None = None
    before: bool = False


class FailedCommand(Struct, frozen=True):
    """A failed command and its failures; `more` of them are not listed.

    `before`: the command failed before any change too, and its output names no tests to compare.
    """

    result: CheckResult
    failures: tuple[Failure, ...]
    more: int = 0
    before: bool = False


def failure_heading(line: str) -> str | None:
    """Return the test that a line begins the account of, "" if the line ends these accounts, None for other lines."""
    match = next((match for pattern in _HEADS if (match := pattern.match(line))), None)
    if match is not None:
        return match["name"]
    return "" if _END.match(line) else None


def failed_commands(
    results: Sequence[CheckResult], baseline: Sequence[CheckResult] | None = None, root: str = ""
) -> tuple[FailedCommand, ...]:
    """Return the failed commands, each with its new failures first.

    `baseline` are the results before any change (None: unknown). Positions are relative to `root`, the folder in which
    the checks ran; those outside of it are dropped.
    """
    earlier = {result.command: result for result in baseline or ()}
    return tuple(_command(result, earlier.get(result.command), root) for result in results if not result.passed)


def _command(result: CheckResult, was: CheckResult | None, root: str) -> FailedCommand:
    output = result.output[-_MAX_CHARS:]
    if root:
        output = output.replace(f"{root}/", "")
    lines = [_COLOUR.sub("", line)[:MAX_LINE_CHARS] for line in output.split("\n")]
    if not result.failed_tests:
        problems = [line for line in lines if _PROBLEM.match(line)]
        found = tuple(Failure(line.strip(), (), _place([line])) for line in problems[:MAX_PROBLEMS])
        failed_before = was is not None and not was.passed
        return FailedCommand(result, found, max(0, len(problems) - MAX_PROBLEMS), failed_before)
    accounts = _accounts(lines)
    reasons = {match["id"]: match["why"] for line in lines if (match := _SUMMARY.match(line))}
    before = frozenset(was.failed_tests) if was is not None else frozenset[str]()
    shown = sorted(result.failed_tests, key=before.__contains__)[:MAX_TESTS]
    failures = tuple(_failure(test, accounts, reasons.get(test, ""), before=test in before) for test in shown)
    return FailedCommand(result, failures, len(result.failed_tests) - len(shown))


def _failure(test: str, accounts: dict[str, list[str]], reason: str, *, before: bool) -> Failure:
    account = next((accounts[name] for name in _names(test) if name in accounts), [])
    telling = [line.rstrip() for line in account if _TELLING.match(line)]
    why = tuple(telling[-MAX_LINES:]) or ((reason,) if reason else tuple(filter(None, account))[-3:])
    return Failure(test, why, _place(account) or _own_place(test), before)


def _names(test: str) -> Iterator[str]:
    """Yield a test's possible names in the heading of its failure: pytest writes `Class.test`, unittest the method."""
    yield test
    file, _, inner = test.partition("::")
    if inner:
        yield inner.replace("::", ".")
        yield file
    yield test.rpartition(".")[2].partition(" ")[0]
    yield test.rpartition(" > ")[2]


def _accounts(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines below each test's heading, by the name in the heading; the first of equal names counts."""
    found: dict[str, list[str]] = {}
    here: list[str] | None = None
    for line in lines:
        name = failure_heading(line)
        if name:
            here = [] if name in found else found.setdefault(name, [])
        elif name is not None:
            here = None
        elif here is not None:
            here.append(line)
    return found


def _place(lines: Sequence[str]) -> CodePlace | None:
    """Return the last position in a file of the repo that these lines name: the innermost call comes last."""
    for line in reversed(lines):
        for match in reversed(list(_PLACE.finditer(line[:MAX_LINE_CHARS]))):
            path = match["quoted"] or match["path"]
            if not (path.startswith("/") or any(each in path for each in _FOREIGN)):
                return CodePlace(path.removeprefix("./"), int((match["at"] or match["line"])[:9]))
    return None


def named_places(text: str) -> Iterator[CodePlace]:
    """Yield the places that an output names, in their order; those of installed packages are left out."""
    for line in text[-_MAX_CHARS:].split("\n"):
        for match in _PLACE.finditer(_COLOUR.sub("", line)[:MAX_LINE_CHARS]):
            path, number = match["quoted"] or match["path"], match["at"] or match["line"]
            if not any(part in path for part in _FOREIGN):
                yield CodePlace(path, int(number[:7]))


def _own_place(test: str) -> CodePlace | None:
    """Return the file that a test's id names."""
    file, colons, _ = test.partition("::")
    return CodePlace(file, 1) if colons and "/" in file else None
