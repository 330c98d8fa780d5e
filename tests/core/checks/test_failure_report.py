"""What is told of a failed run, from what the runners really print."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.checks.failure_report import (
    MAX_LINE_CHARS,
    SUMMARY_LINES,
    raised_at,
    report_failure,
    report_hang,
)

LIMIT = 3_000
NOISY = """
import pytest, sys

@pytest.mark.parametrize("number", range(60))
def test_good(number): print("chatter " * 20)

def total(lines): return sum(price for price, _ in lines)

def test_total():
    print("\\n".join(f"log line {n}" for n in range(400)))
    assert total([(120, 3), (450, 1)]) == 810

def test_later():
    print("\\n".join(f"more noise {n}" for n in range(400)))
    raise RuntimeError("the shop is closed")
"""
NOISY_UNITTEST = """
import unittest

class CartTest(unittest.TestCase):
    def test_total(self):
        print("\\n".join(f"log line {n}" for n in range(400)))
        self.assertEqual(570, 810)
"""


def run(folder: Path, *argv: str) -> str:
    # Without the plugins that happen to be installed: they print nothing of it, and loading them takes a second.
    environment = {"COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *argv], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("-q",), ("--color=yes",), ("-v", "-ra"), ("--tb=short",), ("-s",)])
def test_pytest_errors_and_summary_come_first(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(NOISY)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    output = run(tmp_path, "pytest", *options, "-p", "no:cacheprovider")
    report = report_failure(output, LIMIT)
    assert len(output) > 2 * LIMIT
    assert len(report) < LIMIT + 1_000
    errors, _, rest = report.partition("\n\n")
    assert errors.split("\n") == ["Errors:", "- assert 570 == 810", "- RuntimeError: the shop is closed"]
    assert "short test summary info" in rest.split("\n")[0]
    assert "test_it.py::test_total" in report
    body = report.split("passed", 1)[1]
    assert "assert 570 == 810" in body
    assert "RuntimeError: the shop is closed" in body
    assert "lines cut …" in body
    assert "\x1b" not in report


def test_unittest_tells_the_assertion(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(NOISY_UNITTEST)
    report = report_failure(run(tmp_path, "unittest", "test_it"), LIMIT)
    assert report.startswith("Errors:\n- AssertionError: 570 != 810\n\nRan 1 test")
    assert "FAILED (failures=1)" in report
    assert "AssertionError: 570 != 810" in report
    assert "FAIL: test_total" in report


def test_the_failure_in_the_middle_is_told_and_not_the_end() -> None:
    lines = [f"step {number}" for number in range(3_000)]
    lines[1_500] = "src/cart.py:14: error: Unsupported operand types"
    report = report_failure("\n".join(lines), 1_000)
    assert "src/cart.py:14: error: Unsupported operand types" in report
    assert "step 1499" in report
    assert "step 2999" not in report
    assert report.startswith("Errors:\n- src/cart.py:14: error: Unsupported operand types\n\n… 1492 lines cut …")


def test_output_in_which_nothing_is_known_keeps_both_ends() -> None:
    report = report_failure("\n".join(f"line {number}" for number in range(1_000)), 600)
    assert report.startswith("line 0\n")
    assert report.endswith("line 999")
    assert "characters cut" in report


EQUAL = """
import pytest

@pytest.mark.parametrize("shop", ["north", "south", "east", "west"])
def test_open(shop):
    assert None, "the shop is closed"

@pytest.mark.parametrize("price", [1, 2])
def test_price(price):
    assert price == 3
"""


def test_equal_failures_are_told_once_and_different_ones_each(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(EQUAL)
    report = report_failure(run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider"), 6_000)
    assert report.split("\n")[:4] == [
        "Errors:",
        "- AssertionError: the shop is closed (4 times)",
        "- assert 1 == 3",
        "- assert 2 == 3",
    ]
    body = report.split("FAILURES")[1].split("short test summary")[0]
    assert body.count("AssertionError: the shop is closed") == 1
    assert "… the same failure in test_open[south], test_open[east], test_open[west] …" in body
    assert "E       assert 1 == 3" in body
    assert "E       assert 2 == 3" in body


def test_repeated_lines_and_groups_of_lines_are_told_once() -> None:
    warning = ["warning: a", "  in b", ""]
    lines = ["start", *["tick"] * 400, "", *warning * 30, "x", "x", "end"]
    assert report_failure("\n".join(lines), 600).split("\n") == [
        *("start", "tick", "… the line above 399 more times …", ""),
        *("warning: a", "  in b", "… the 3 lines above 29 more times …", "", "x", "x", "end"),
    ]


def test_an_endless_line_and_a_progress_bar_take_little_room() -> None:
    bar = "".join(f"\r{number:3}% {'#' * number}" for number in range(101))
    report = report_failure(f"{'y' * 8_000_000}\n{bar}\r\nAssertionError: no\r\n", 6_000)
    assert len(report) < 1_000
    assert report.endswith("#\nAssertionError: no")
    assert "  1% " not in report


def test_many_distinct_errors_are_counted() -> None:
    lines = [f"src/a.py:{number}: error: {'x' * 300}{number}" for number in range(30)]
    head = report_failure("\n".join(lines), 6_000).split("\n\n")[0].split("\n")
    assert len(head) == 12
    assert head[-1] == "- … and 20 other errors"
    assert max(map(len, head)) < 210


def test_what_fits_is_told_whole() -> None:
    assert report_failure("one\ntwo\n", 600) == "one\ntwo"


@given(
    st.lists(st.sampled_from(["E   boom", "x" * 900, "Ran 3 tests in 1s", "", "FAILED a::b", "plain"]), max_size=400)
)
def test_it_is_bounded_whatever_comes(lines: list[str]) -> None:
    report = report_failure("\n".join(lines), 1_000)
    assert len(report) <= 1_500 + SUMMARY_LINES * (MAX_LINE_CHARS + 40)


def test_of_a_command_that_hangs_its_last_lines_and_the_newest_frames_are_told() -> None:
    frames = [f'  File "deep.py", line {number} in f{number}' for number in range(100)]
    threads = ["Thread 0x1 (most recent call first):", *frames, "", "Current thread 0x2 (most recent call first):"]
    output = "\n".join([*map("test {}".format, range(90)), "Fatal Python error: Aborted", "", *threads, *frames])
    told = report_hang(output, 4_500).splitlines()
    assert told[0] == "… 50 lines cut …"
    assert told[1:41] == [f"test {number}" for number in range(50, 90)]
    assert told[41] == "Fatal Python error: Aborted"
    assert told[-21:] == [*frames[:20], "  … 80 frames cut …"]
    assert report_hang("", 4_500) == ""
    assert report_hang("one\ntwo\n", 4_500) == "one\ntwo"


@given(st.text(), st.text())
def test_what_is_told_of_a_command_that_hangs_is_bounded(said: str, trace: str) -> None:
    told = report_hang(f"{said}Fatal Python error: Aborted\n{trace * 100}", 1_000)
    assert len(told) <= 1_000 + 2 * len("… 1234567 lines cut …")


@pytest.mark.parametrize("prefix", ["", "# "])
def test_a_failed_assertion_of_tap_is_told_with_both_values_and_without_frames_of_packages(prefix: str) -> None:
    """As tape prints it, alone and below `node --test`; in three parts of four of it were frames of tape and node."""
    frames = "          at Test.assert (/shop/node_modules/tape/lib/test.js:548:48)\n" * 5
    failures = (
        f"not ok {number} {name}\n  ---\n    operator: equal\n    expected: |-\n      'wanted {number}'\n"
        f"    actual: |-\n      'got {number}'\n    stack: |-\n{frames}"
        f"          at Test.run (/shop/test/a.js:{number}:7)\n"
        "          at process.processImmediate (node:internal/timers:483:21)\n  ...\n"
        for number, name in enumerate(("adds", "subtracts", "divides"), 1)
    )
    lines = f"TAP version 13\n{''.join(failures)}1..3\n".splitlines()
    said = "at the end the value (node: a) was lost"
    output = "\n".join(["TAP version 13", said, *(f"{prefix}{line}" for line in lines), "# tests 3", "# fail 3"])
    report = report_failure(output, 1_300, brief=True)
    assert all(f"wanted {number}" in report and f"got {number}" in report for number in (1, 2, 3))
    assert "node_modules" not in report
    assert "/shop/test/a.js:1:7" in report
    assert said in report


NODE_ERROR = """\
index.js:312
        parsed.fragment = decodeURIComponent(parsed.fragment)
                          ^
URIError: URI malformed
    at decodeURIComponent (<anonymous>)
    at parse (index.js:312:37)
    at Object.equal (index.js:110:22)
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "/repo/shop/app.py", line 3, in main
    total([])
  File "/repo/shop/cart.py", line 9, in total
    return max(prices)
ValueError: max() arg is an empty sequence
"""
PYTEST = """\
shop/app.py:3: in main
    total([])
>   return max(prices)
E   ValueError: max() arg is an empty sequence

shop/cart.py:9: ValueError
"""


@pytest.mark.parametrize(
    ("output", "places"),
    [
        (NODE_ERROR, {("index.js", 312)}),
        (TRACEBACK, {("/repo/shop/cart.py", 9)}),
        (PYTEST, {("shop/cart.py", 9)}),
        ("thread 'main' panicked at src/lib.rs:10:5:\nindex out of bounds", {("src/lib.rs", 10)}),
        ("all is well", set()),
    ],
)
def test_the_place_at_which_an_error_was_raised_is_the_nearest_to_it(output: str, places: set[tuple[str, int]]) -> None:
    assert {(place.path, place.line) for place in raised_at(output)} == places
