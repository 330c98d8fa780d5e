"""What failed, read from the output of real runners: test, why, where, and whether it failed before."""

import pytest

from agent_workbench.core.checks.failure_report import failed_tests
from agent_workbench.core.checks.results import CheckResult, CodePlace, Failure, failed_commands
from tests.fakes.runs import FAILURE

PYTEST_TWO = """\
=================================== FAILURES ===================================
_____________________________ TestCart.test_first ______________________________

self = <TestCart object>

    def test_first(self):
>       assert total([]) == 1

tests/test_cart.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

>       raise ValueError("empty")
E       ValueError: empty

shop/cart.py:14: ValueError
=========================== short test summary info ============================
FAILED tests/test_cart.py::TestCart::test_first - ValueError: empty
FAILED tests/test_cart.py::test_gone - AssertionError: lost
"""
UNITTEST = """\
======================================================================
FAIL: test_adds (tests.test_sum.TestSum.test_adds)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/tree/tests/test_sum.py", line 9, in test_adds
    self.assertEqual(add(1, 2), 3)
  File "/usr/lib/python3.11/unittest/case.py", line 873, in assertEqual
AssertionError: -1 != 3

----------------------------------------------------------------------
Ran 2 tests in 0.001s
"""
GO = """\
--- FAIL: TestAdd (0.00s)
    add_test.go:8: got -1, want 3
FAIL
FAIL\texample.com/add\t0.002s
"""
CARGO = """\
test tests::adds ... FAILED

failures:

---- tests::adds stdout ----
thread 'tests::adds' panicked at src/lib.rs:12:9:
assertion `left == right` failed
  left: -1
 right: 3
"""
RUFF = "shop/cart.py:3:1: F401 `os` imported but unused\nFound 1 error.\n"


@pytest.mark.parametrize(
    ("output", "failures"),
    [
        (
            PYTEST_TWO,
            [
                Failure(
                    "tests/test_cart.py::TestCart::test_first",
                    (">       assert total([]) == 1", '>       raise ValueError("empty")', "E       ValueError: empty"),
                    CodePlace("shop/cart.py", 14),
                ),
                Failure("tests/test_cart.py::test_gone", ("AssertionError: lost",), CodePlace("tests/test_cart.py", 1)),
            ],
        ),
        (
            UNITTEST,
            [
                Failure(
                    "tests.test_sum.TestSum.test_adds",
                    ("AssertionError: -1 != 3",),
                    CodePlace("tests/test_sum.py", 9),
                )
            ],
        ),
        (
            GO,
            [Failure("example.com/add.TestAdd", ("    add_test.go:8: got -1, want 3",), CodePlace("add_test.go", 8))],
        ),
        (
            CARGO,
            [
                Failure(
                    "tests::adds",
                    (
                        "thread 'tests::adds' panicked at src/lib.rs:12:9:",
                        "assertion `left == right` failed",
                        "  left: -1",
                        " right: 3",
                    ),
                    CodePlace("src/lib.rs", 12),
                )
            ],
        ),
        (
            RUFF,
            [Failure("shop/cart.py:3:1: F401 `os` imported but unused", (), CodePlace("shop/cart.py", 3))],
        ),
    ],
    ids=["pytest", "unittest", "go", "cargo", "ruff"],
)
def test_each_runner_says_what_failed_and_where(output: str, failures: list[Failure]) -> None:
    result = CheckResult("check", 1, output, 0.1, failed_tests(output))
    (command,) = failed_commands((result,), root="/tree")
    assert list(command.failures) == failures


def test_what_failed_before_is_not_ours() -> None:
    one = "tests/test_cart.py::test_the_quantity_counts"
    result = CheckResult("pytest", 1, FAILURE, 0.1, (one, "tests/test_cart.py::test_new"))
    lint = CheckResult("lint", 1, RUFF, 0.1)
    passed = CheckResult("other", 0, "", 0.1)
    commands = failed_commands((result, lint, passed), (CheckResult("pytest", 1, FAILURE, 0.1, (one,)), lint))
    assert [[each.before for each in command.failures] for command in commands] == [[False, True], [False]]
    assert [command.before for command in commands] == [False, True]
    (unknown,) = failed_commands((result,))
    assert not any(each.before for each in unknown.failures)
