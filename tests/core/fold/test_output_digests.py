"""A session keeps digests of long outputs: what failed stands in them, and the same digest comes of the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.checks.failure_report import failed_tests, report_failure
from agent_workbench.core.checks.results import CheckPurpose, CheckResult, failed_commands
from agent_workbench.core.events import ActionFinished, ActionResult, TestsFinished
from agent_workbench.core.fold.output_digests import KEPT_CHARS, output_digest, with_digests
from agent_workbench.core.ids import ProposalId

PASSED = "".join(f"tests/test_a.py::test_{number} PASSED\n" for number in range(30_000))
LOG = "".join(f"DEBUG line {number} of what nobody reads\n" for number in range(2_000))
FAILURES = "".join(
    f"____________ test_bad_{number} ____________\n\n{LOG[:900]}\nE       assert {number} == 1\n\n"
    f"tests/test_b.py:{number}: AssertionError\n"
    for number in range(1, 21)
)
NAMED = "".join(f"FAILED tests/test_b.py::test_bad_{number} - assert {number} == 1\n" for number in range(1, 21))
SUMMARY = f"=========== short test summary info ===========\n{NAMED}20 failed in 3s\n"


def test_a_short_output_stays_whole() -> None:
    text = "x" * KEPT_CHARS
    assert output_digest(text) is text


@pytest.mark.parametrize("between", ["", LOG, PASSED], ids=["nothing", "a log", "tests"])
def test_what_failed_stands_in_the_digest(between: str) -> None:
    output = f"{PASSED}{between}{FAILURES}{LOG[:20_000]}\n{SUMMARY}"
    kept = output_digest(output)
    assert len(kept) <= KEPT_CHARS
    (command,) = failed_commands((CheckResult("pytest", 1, kept, 1.0, failed_tests(output)),))
    assert [failure.test for failure in command.failures] == [
        f"tests/test_b.py::test_bad_{number}" for number in range(1, 21)
    ]
    assert all(f"assert {number} == 1" in failure.lines[0] for number, failure in enumerate(command.failures, 1))
    assert all(failure.place is not None and failure.place.line == n for n, failure in enumerate(command.failures, 1))
    assert "lines cut …" in kept
    assert kept.startswith("tests/test_a.py::test_0 PASSED\n")
    assert kept.endswith("20 failed in 3s\n")
    told = report_failure(kept, 6_000)
    assert "E       assert 1 == 1" in told
    cut = [int(line.split()[1]) for line in told.split("\n") if line.startswith("… ")]
    assert sum(cut) > output.count("\n") - 400, "what the digest lacks is counted too"


def test_every_line_is_kept_or_counted() -> None:
    output = f"{PASSED}{FAILURES}{SUMMARY}"
    lines = output_digest(output).split("\n")
    cut = [int(line.split()[1]) for line in lines if line.startswith("… ")]
    assert sum(cut) + len(lines) - len(cut) == output.count("\n") + 1


ODD = {
    "one line": "x" * 9_000_000,
    "no words": "\n" * 900_000,
    "telling alone": "E   \n" * 200_000,
    "colours": "\x1b[31mFAILED\x1b[0m a\n" * 90_000,
}


@pytest.mark.parametrize("output", ODD.values(), ids=ODD)
def test_no_output_is_too_odd(output: str) -> None:
    kept = output_digest(output)
    assert len(kept) <= KEPT_CHARS
    assert output_digest(kept) == kept


@given(
    st.lists(st.sampled_from(["E  x", "_____ test _____", "plain", "", "FAILED a", "y" * 900]), max_size=60),
    st.integers(1, 400),
)
def test_a_digest_is_bounded_and_its_own_digest(lines: list[str], times: int) -> None:
    kept = output_digest("\n".join(lines) * times)
    assert len(kept) <= KEPT_CHARS
    assert output_digest(kept) == kept


def test_only_outputs_are_digested() -> None:
    result = CheckResult("pytest", 1, PASSED, 1.0, ("a",), 7)
    kept = with_digests(TestsFinished(CheckPurpose.FINAL, (result,), ("b",)))
    assert isinstance(kept, TestsFinished)
    assert (kept.restored_paths, kept.results[0].failed_tests, kept.results[0].cut_bytes) == (("b",), ("a",), 7)
    finished = ActionFinished(ProposalId("P-1"), ActionResult.OK, "ended", 1.0, PASSED)
    kept_too = with_digests(finished)
    assert isinstance(kept_too, ActionFinished)
    assert (kept_too.observation, kept_too.output) == ("ended", output_digest(PASSED))
    assert with_digests(kept_too) is kept_too
