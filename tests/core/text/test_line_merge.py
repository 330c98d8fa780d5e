import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.text.line_merge import MARKER, MAX_COMPARISONS, merge

BASE = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("theirs", "ours", "merged"),
    [
        (BASE, "new\n", "new\n"),
        ("new\n", BASE, "new\n"),
        ("new\n", "new\n", "new\n"),
        ("zero\n" + BASE, BASE + "six\n", "zero\n" + BASE + "six\n"),
        (BASE + "theirs\n", BASE + "ours\n", BASE + "theirs\nours\n"),
        (BASE + "both\n", BASE + "both\n", BASE + "both\n"),
        ("one\nTWO\nthree\nfour\nfive\n", "one\ntwo\nthree\nFOUR\nfive\n", "one\nTWO\nthree\nFOUR\nfive\n"),
        ("one\nthree\nfour\nfive\n", BASE + "six\n", "one\nthree\nfour\nfive\nsix\n"),
        ("one\nA\nthree\nfour\nfive\n", "one\nB\nthree\nfour\nfive\n", f"one\n{MARKER}A\nB\nthree\nfour\nfive\n"),
        ("one\nthree\nfour\nfive\n", "one\nB\nthree\nfour\nfive\n", f"one\n{MARKER}B\nthree\nfour\nfive\n"),
        (BASE + "theirs", BASE + "ours", BASE + "theirs\nours"),
        ("", BASE + "six\n", f"{MARKER}{BASE}six\n"),
    ],
)
def test_both_sides_are_kept(theirs: str, ours: str, merged: str) -> None:
    assert merge(BASE, theirs, ours) == merged


def test_two_beginnings_are_both_kept() -> None:
    assert merge("", "theirs", "ours\n") == "theirs\nours\n"


def test_long_texts_are_not_compared_for_ever() -> None:
    long = "a\n" * math.isqrt(MAX_COMPARISONS)
    assert merge(long, f"b\n{long}", f"{long}c\n") == f"{MARKER}b\n{long}{long}c\n"


LINES = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(LINES, LINES, LINES)
def test_no_line_that_only_one_side_wrote_is_lost(base: list[str], theirs: list[str], ours: list[str]) -> None:
    before, first, second = ("".join(f"{line}\n" for line in lines) for lines in (base, theirs, ours))
    merged = merge(before, first, second).splitlines()
    for line in {*theirs, *ours} - set(base):
        assert line in merged
    assert merge(before, first, before) == first
    assert merge(before, before, second) == second


@given(LINES, LINES)
def test_what_was_added_on_both_sides_is_all_there(first: list[str], second: list[str]) -> None:
    before = "x\ny\n"
    theirs, ours = ("\n".join(["x", *lines, "y", ""]) for lines in (first, second))
    merged = merge(before, theirs, ours).splitlines()
    wanted = first if first == second else first + second
    assert merged == ["x", *wanted, "y"]
