"""What failed in a run of checks, as a tree: command, test, the lines that say why, and where in the files that is."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.checks.results import CheckResult

MOST_TESTS = 50
MOST_LINES = 40
MOST_PROBLEMS = 20
LONGEST_LINE = 400
_MOST_CHARS = 400_000

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(
    r'File "(?P<quoted>[^"]+)", line (?P<at>\d+)'
    r"|(?:panicked at |--> |\()?(?P<path>(?:[\w.@+-]*/)*[\w.@+-]+\.[A-Za-z]\w{0,4}):(?P<line>\d+)\b"
)
# Where the account of one test begins, in the words of pytest, unittest, jest and vitest, cargo, go.
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


class CodePlace(Struct, frozen=True):
    """A line of a file, from 1; `path` as the run spelt it, so perhaps only the end of it."""

    path: str
    line: int


class Failure(Struct, frozen=True):
    """A test that failed, or a problem that a command named (then `test` is that line).

    `lines` say why, `place` is where; `before`: it failed before any change too.
    """

    test: str
    lines: tuple[str, ...] = ()
    place: CodePlace | None = None
    before: bool = False


class FailedCommand(Struct, frozen=True):
    """A command that failed, with what failed in it; `more` failures are not listed.

    `before`: it failed before any change too, and nothing tells its failures then from those now.
    """

    result: CheckResult
    failures: tuple[Failure, ...]
    more: int = 0
    before: bool = False


def failed_commands(
    results: Sequence[CheckResult], baseline: Sequence[CheckResult] | None = None, root: str = ""
) -> tuple[FailedCommand, ...]:
    """Return the commands that failed, of their failures the new ones first.

    `baseline` is how they ended before any change (None: not known).

    Places are told relative to `root`, the folder in which they ran; those outside of it are none of the repo's.
    """
    earlier = {result.command: result for result in baseline or ()}
    return tuple(_command(result, earlier.get(result.command), root) for result in results if not result.passed)


def _command(result: CheckResult, was: CheckResult | None, root: str) -> FailedCommand:
    output = result.output[-_MOST_CHARS:]
    if root:
        output = output.replace(f"{root}/", "")
    lines = [_COLOUR.sub("", line)[:LONGEST_LINE] for line in output.split("\n")]
    if not result.failed_tests:
        problems = [line for line in lines if _PROBLEM.match(line)]
        found = tuple(Failure(line.strip(), (), _place([line])) for line in problems[:MOST_PROBLEMS])
        failed_before = was is not None and not was.passed
        return FailedCommand(result, found, max(0, len(problems) - MOST_PROBLEMS), failed_before)
    accounts = _accounts(lines)
    reasons = {match["id"]: match["why"] for line in lines if (match := _SUMMARY.match(line))}
    before = frozenset(was.failed_tests) if was is not None else frozenset[str]()
    shown = sorted(result.failed_tests, key=before.__contains__)[:MOST_TESTS]
    failures = tuple(_failure(test, accounts, reasons.get(test, ""), before=test in before) for test in shown)
    return FailedCommand(result, failures, len(result.failed_tests) - len(shown))


def _failure(test: str, accounts: dict[str, list[str]], reason: str, *, before: bool) -> Failure:
    account = next((accounts[name] for name in _names(test) if name in accounts), [])
    telling = [line.rstrip() for line in account if _TELLING.match(line)]
    why = tuple(telling[-MOST_LINES:]) or ((reason,) if reason else tuple(filter(None, account))[-3:])
    return Failure(test, why, _place(account) or _own_place(test), before)


def _names(test: str) -> Iterator[str]:
    """Yield what a test may be called above its account: pytest writes `Class.test`, unittest only the method."""
    yield test
    file, _, inner = test.partition("::")
    if inner:
        yield inner.replace("::", ".")
        yield file
    yield test.rpartition(".")[2].partition(" ")[0]
    yield test.rpartition(" > ")[2]


def _accounts(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return what stands below the head of each test, by the name in the head; of equal names the first."""
    found: dict[str, list[str]] = {}
    here: list[str] | None = None
    for line in lines:
        head = next((match for pattern in _HEADS if (match := pattern.match(line))), None)
        if head is not None:
            here = [] if head["name"] in found else found.setdefault(head["name"], [])
        elif _END.match(line):
            here = None
        elif here is not None:
            here.append(line)
    return found


def _place(lines: Sequence[str]) -> CodePlace | None:
    """Return the last place in a file of the repo that these lines name: the innermost call stands last."""
    for line in reversed(lines):
        for match in reversed(list(_PLACE.finditer(line[:LONGEST_LINE]))):
            path = match["quoted"] or match["path"]
            if not (path.startswith("/") or any(each in path for each in _FOREIGN)):
                return CodePlace(path.removeprefix("./"), int((match["at"] or match["line"])[:9]))
    return None


def _own_place(test: str) -> CodePlace | None:
    """Return the file that a test's id names."""
    file, colons, _ = test.partition("::")
    return CodePlace(file, 1) if colons and "/" in file else None
