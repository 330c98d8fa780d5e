"""Diagnostics that are new, what the model is told of them, and which servers a task may use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.checks.language_servers import (
    LANGUAGE_SERVERS,
    SERVER_NAMES,
    TOLD_DIAGNOSTICS,
    Diagnostic,
    Severity,
    describe_diagnostics,
    new_diagnostics,
    permitted_servers,
)

ERROR = Diagnostic("a.py", 2, Severity.ERROR, "unknown name x", "pyright", "undefined")
STATIC = {each.name for each in LANGUAGE_SERVERS if not each.runs_code}


def numbered(*lines: str) -> dict[str, str]:
    return {"a.py": "\n".join(lines)}


def test_a_diagnostic_that_moved_is_not_new() -> None:
    moved = replace(ERROR, line=7)
    assert new_diagnostics([ERROR], [moved], numbered("", "x"), numbered(*[""] * 6, "x")) == ()


def test_a_number_in_a_message_may_move_too() -> None:
    before, after = (replace(ERROR, message=f"redefines line {line}") for line in (3, 9))
    assert new_diagnostics([before], [after], {}, {}) == ()


def test_of_equal_diagnostics_that_on_a_new_line_is_new() -> None:
    first, second = replace(ERROR, line=1), replace(ERROR, line=3)
    assert new_diagnostics([ERROR], [first, second], numbered("", "x()"), numbered("y(x)", "", "x()")) == (first,)
    assert new_diagnostics([ERROR], [first, second], numbered("", "x()"), numbered("x()", "", "x()")) == (second,)


def test_errors_come_first() -> None:
    warning = replace(ERROR, line=1, severity=Severity.WARNING)
    assert new_diagnostics([], [warning, ERROR], {}, {}) == (ERROR, warning)


DIAGNOSTICS = st.lists(
    st.builds(
        Diagnostic,
        st.sampled_from(("a.py", "b.py")),
        st.integers(1, 5),
        st.sampled_from(Severity),
        st.sampled_from(("x", "y")),
        st.just("ruff"),
    ),
    unique=True,
)


@given(DIAGNOSTICS, DIAGNOSTICS)
def test_new_are_those_beyond_the_number_of_the_old(before: list[Diagnostic], after: list[Diagnostic]) -> None:
    found = new_diagnostics(before, after, {}, {})
    assert set(found) <= set(after)

    def many(of: list[Diagnostic] | tuple[Diagnostic, ...], like: Diagnostic) -> int:
        return sum(replace(each, line=like.line) == like for each in of)

    assert all(many(found, each) == max(0, many(after, each) - many(before, each)) for each in after)


def test_the_model_is_told_a_few() -> None:
    found = [replace(ERROR, line=line) for line in range(1, TOLD_DIAGNOSTICS + 4)]
    lines = describe_diagnostics(found).split("\n")
    assert lines[:2] == ["New diagnostics in the changed files:", "a.py:1: error: unknown name x (pyright undefined)"]
    assert lines[TOLD_DIAGNOSTICS + 1 :] == ["and 3 more"]
    assert describe_diagnostics([]) == ""


def test_one_server_speaks_about_a_line() -> None:
    other = replace(ERROR, server="ruff", message="Undefined name `x`")
    assert describe_diagnostics([ERROR, other]) == describe_diagnostics([ERROR])
    assert "ruff" in describe_diagnostics([ERROR, replace(other, line=3)])


def test_what_runs_code_waits_for_checks() -> None:
    none: tuple[str, ...] = ()
    assert permitted_servers(SERVER_NAMES, checked=True, foreign=False, commands=none) == set(SERVER_NAMES)
    assert permitted_servers(SERVER_NAMES, checked=False, foreign=False, commands=none) == STATIC
    assert permitted_servers(["ruff"], checked=True, foreign=False, commands=none) == {"ruff"}


@pytest.mark.parametrize(("rule", "permitted"), [("ruff server", {"ruff"}), ("ruff", set()), ("rust-analyzer", set())])
def test_a_foreign_task_uses_what_a_rule_names(rule: str, permitted: set[str]) -> None:
    assert permitted_servers(SERVER_NAMES, checked=False, foreign=True, commands=[rule]) == permitted
