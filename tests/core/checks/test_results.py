import pytest

from agent_workbench.core.checks.results import NEARLY, CheckResult, all_passed, fewer_fail, regressions


def result(code: int | None, *failed: str, command: str = "test") -> CheckResult:
    return CheckResult(command, code, "", 1.0, failed)


def test_what_passes() -> None:
    assert result(0).passed
    assert not result(1).passed
    assert not result(None).passed
    assert all_passed(())
    assert all_passed((result(0), result(0, command="lint")))
    assert not all_passed((result(0), result(None, command="lint")))


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (result(0), result(0), ()),
        (result(0), result(1), ("test",)),
        (result(0), result(None), ("test",)),
        (result(0), result(1, "a", "b"), ("a", "b")),
        (result(1, "a"), result(1, "a", "b"), ("b",)),
        (result(1, "a", "b"), result(1, "b"), ()),
        (result(1, "a"), result(0), ()),
        (result(1), result(1), ()),
        (result(1), result(1, "a"), ()),
        (result(1, "a"), result(1), ()),
        (result(1, command="other"), result(1), ()),
    ],
)
def test_what_got_worse(before: CheckResult, after: CheckResult, worse: tuple[str, ...]) -> None:
    assert regressions((before,), (after,)) == worse


@pytest.mark.parametrize(
    ("before", "after", "fewer"),
    [
        ((result(1, "a", "b"),), (result(1, "b"),), True),
        ((result(1, "a", "b"),), (result(1, "a", "b"),), False),
        ((result(1, "a", "b"),), (result(1, "b", "c"),), False),
        ((result(1, "a", "b"),), (result(1),), False),
        ((result(1, "a", "b"),), (result(None),), False),
        ((result(1, "a", "b"),), (result(None, "a"),), False),
        ((result(1, "a", "b"),), (result(137, "a"),), False),
        ((result(None, "a", "b"),), (result(None, "a"),), True),
        ((result(1),), (result(1, "a"),), False),
        ((result(1, "a", "b"), result(0, command="lint")), (result(1, "a"), result(1, command="lint")), False),
        ((result(1, "a", "b"), result(1, command="lint")), (result(1, "a"), result(1, command="lint")), True),
        ((result(1, "a"), result(1, command="lint")), (result(1, "a"), result(0, command="lint")), True),
    ],
)
def test_fewer_fail_only_if_nothing_else_does(
    before: tuple[CheckResult, ...], after: tuple[CheckResult, ...], fewer: bool
) -> None:
    assert fewer_fail(before, after) == fewer


def test_at_most_a_share_of_those_before_fails() -> None:
    before = (result(1, *"abc"),)
    assert fewer_fail(before, (result(1, "a"),), NEARLY)
    assert not fewer_fail(before, (result(1, "a", "b"),), NEARLY)


def test_each_is_named_once() -> None:
    before = (result(0), result(0, command="all"))
    after = (result(1, "a"), result(1, "a", command="all"))
    assert regressions(before, after) == ("a",)
