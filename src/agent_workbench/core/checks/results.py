"""Outcomes of tests and lint, and how two runs of them compare."""

from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue


class CheckPurpose(StrEnum):
    """Why checks are run."""

    BASELINE = "baseline"
    AFTER_DIFF = "after_diff"
    ASKED = "asked"
    FINAL = "final"


class CheckResult(RecordedValue, frozen=True):
    """One command: exit code (None: it timed out or could not start), bounded output, tests that failed by id.

    In a session's state a long output is its digest (`core.digests`).
    """

    command: str
    exit_code: int | None
    output: str
    seconds: float
    failed_tests: tuple[str, ...] = ()
    cut_bytes: int = 0

    @property
    def passed(self) -> bool:
        """True when the command ended with 0."""
        return self.exit_code == 0


def all_passed(results: tuple[CheckResult, ...]) -> bool:
    """True when every command passed (also when there is none)."""
    return all(result.passed for result in results)


def acceptable(results: tuple[CheckResult, ...], baseline: tuple[CheckResult, ...] | None, required: int) -> bool:
    """True when the first `required` checks pass and none of the others is worse than in the baseline."""
    if baseline is None:
        return all_passed(results)
    return all_passed(results[:required]) and not regressions(baseline, results)


def regressions(before: tuple[CheckResult, ...], after: tuple[CheckResult, ...]) -> tuple[str, ...]:
    """Return what passed in `before` and fails in `after`: commands, and tests by id where both runs named them.

    A command that failed in both runs and named its failures then and now is compared by test; one that did not
    is not blamed on the change.
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
