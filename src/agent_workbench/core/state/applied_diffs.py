"""Diffs that are in effect in a task's workspace: applied and not undone."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.approval_rules import is_foreign
from agent_workbench.core.checks.judges import only_new_tests_fail
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.errors import PatchError
from agent_workbench.core.events import (
    FAILING_FIRST,
    Recorded,
    TestsFinished,
)
from agent_workbench.core.proposals import Proposal, is_person
from agent_workbench.core.repo.path_kinds import is_test
from agent_workbench.core.repo.project_commands import is_part_of
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import Step, newest_steps
from agent_workbench.core.task_words import asks_for_test

# Tests within a source file: Python, doctest, Rust, JavaScript, Go and Java.
_TEST_LINE = re.compile(r"\s*(?:(?:async )?def test_|class Test|>>> |#\[test\]|(?:it|test)\(|func Test|@Test\b)")


class LastAppliedDiff(Struct, frozen=True):
    """The newest diff in effect, and the tree before it was applied."""

    proposal: Proposal
    before: str


def applied_diffs(history: Sequence[Recorded]) -> Iterator[Step]:
    """Yield the steps whose diffs are in effect, newest first; `history` is read lazily, from its end."""
    return (step for step in newest_steps(history) if step.applied is not None and step.undone is None)


def last_applied_diff(run: TaskRun) -> LastAppliedDiff | None:
    """Return the diff that an undo would revert, None if there is none."""
    standing = applied_diffs(run.history)
    last = next(standing, None)
    if last is None:
        return None
    older = next(standing, None)
    return LastAppliedDiff(last.proposal, older.tree if older is not None else run.workspace.tree)


def checks_reviewed(run: TaskRun, commands: Sequence[str]) -> bool:
    """Return True if the user approved exactly these commands in this run, and every diff that they would run on."""
    return bool(commands) and run.approved_checks == tuple(commands) and _all_by_person(run)


def checks_trusted(state: SessionState, commands: Sequence[str]) -> bool:
    """Return True if these are tests and lint of the trusted settings, in the sandbox, for a task of the user's own.

    Only on the user's own commit with changes that a person approved: what another task did that this one depends on
    may have been approved by a rule.
    """
    config, run = state.config, state.run
    if config is None or run is None or not commands:
        return False
    if is_foreign(run.definition) or run.definition.depends_on or not config.sandbox.holds:
        return False
    trusted = (config.test_command, config.lint_command)
    return all(any(is_part_of(line, each) for each in trusted) for line in commands) and _all_by_person(run)


def _all_by_person(run: TaskRun) -> bool:
    """Return True if a person approved every diff in effect."""
    return all(is_person(diff.by) for diff in applied_diffs(run.history))


def wants_these_failures(run: TaskRun, event: TestsFinished) -> bool:
    """Return True if checks fail as test-driven development wants: the newest diff adds tests, and only these fail."""
    if run.wording < FAILING_FIRST or event.purpose is not CheckPurpose.AFTER_DIFF or run.baseline is None:
        return False
    newest = next(applied_diffs(run.history), None)
    return newest is not None and adds_failing_tests(newest.proposal, event.results, (run.baseline, run.results or ()))


def adds_failing_tests(
    proposal: Proposal, results: Sequence[CheckResult], before: Sequence[Sequence[CheckResult]]
) -> bool:
    """Return True if a diff only adds tests, and of what failed in none of the runs `before` only these fail."""
    try:
        return only_new_tests_fail(proposal.patch.files, results, before)
    except PatchError:  # as in a proposal of 0.1 that is not text
        return False


def lacks_test(run: TaskRun) -> bool:
    """Return True if the task asks for a test, all passed before any change, and the change has no test."""
    wanted = run.wording >= FAILING_FIRST and run.judges.passed_before and asks_for_test(run.definition)
    return wanted and run.changed and not any(_has_test(diff.proposal) for diff in applied_diffs(run.history))


def _has_test(proposal: Proposal) -> bool:
    added = (line[1:] for line in proposal.diff.splitlines() if line.startswith("+"))
    return any(map(is_test, proposal.paths)) or any(_TEST_LINE.match(line) for line in added)
