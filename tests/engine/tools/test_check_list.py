"""Which commands a task is checked by, and which of them must pass."""

import pytest

from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.events import TestsFinished
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.settings import Settings
from agent_workbench.engine.tools.check_runs import CheckList, check_list, describe_checks


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (("a", "b"), CheckList(("a", "b", "test", "lint"), 2)),
        ((), CheckList(("test", "lint"), 1)),
        (("test",), CheckList(("test", "lint"), 1)),
        (("a", "a"), CheckList(("a", "test", "lint"), 1)),
        (("", "a", "  "), CheckList(("a", "test", "lint"), 1)),
        (("",), CheckList(("test", "lint"), 1)),
    ],
)
def test_what_must_pass_is_what_was_asked_for_and_no_more(accept: tuple[str, ...], expected: CheckList) -> None:
    task = Task(TaskId("T-1"), "x", accept_tests=accept)
    assert check_list(task, Settings(test_command="test", lint_command="lint")) == expected


def test_paths_below_the_worktree_are_told_as_the_repositorys() -> None:
    output = 'File "/state/work/T-1/shop/cart.py", line 3\nFile "/usr/lib/x.py", line 1\nZeroDivisionError: by zero'
    finished = TestsFinished(CheckPurpose.ASKED, (CheckResult("test", 1, output, 0.1),))
    told = describe_checks(finished, root="/state/work/T-1")
    assert 'File "shop/cart.py", line 3\nFile "/usr/lib/x.py"' in told
    assert "/state/work" not in told
