"""Ids of failed tests, read from the output of known test runners."""

import re
from collections.abc import Iterator

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
        for raw in output.split("\n"):
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
