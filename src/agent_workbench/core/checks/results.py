"""Results of tests and lint, and the comparison of two runs."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue

NEARLY = 1 / 3
"""Share of the tests that failed at first; with no more left, a change is worth going on with."""

SIGNALLED = 128
"""Exit codes from here on, and those below 0, are of commands that a signal ended."""


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

    `output` is bounded; in a session's state a long output is its digest (`core.events.output_digests`). `failed_tests`
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
