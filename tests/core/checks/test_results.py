import pytest

from agent_workbench.core.checks.results import CheckResult, all_passed, regressions


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


def test_each_is_named_once() -> None:
    before = (result(0), result(0, command="all"))
    after = (result(1, "a"), result(1, "a", command="all"))
    assert regressions(before, after) == ("a",)
