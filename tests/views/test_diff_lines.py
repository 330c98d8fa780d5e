"""Diffs as they are shown: numbered, complete, and never stopped by what is no diff."""

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff_document import diff_lines, diff_stat

DIFF = """\
--- a/x.py
+++ b/x.py
@@ -3,3 +3,3 @@ def f():
 one
-- two
+++ two
 three
\\ No newline at end of file
--- a/y.py
+++ b/y.py
@@ -1 +1 @@
-a
+b
"""


def test_lines_are_numbered_on_both_sides() -> None:
    lines = list(diff_lines(DIFF))
    assert [(line.tone, line.old, line.new, line.text) for line in lines[3:7]] == [
        (Tone.PLAIN, 3, 3, "one"),
        (Tone.REMOVED, 4, 0, "- two"),
        (Tone.ADDED, 0, 4, "++ two"),
        (Tone.PLAIN, 5, 5, "three"),
    ]


def test_what_looks_like_a_header_in_a_hunk_is_none() -> None:
    diff = "@@ -1,2 +0,0 @@\n--- a/x\n-b\n--- a/real\n"
    assert [line.tone for line in diff_lines(diff)] == [Tone.HUNK, Tone.REMOVED, Tone.REMOVED, Tone.FILE]


def test_the_stat_counts_only_what_comes_and_goes() -> None:
    assert str(diff_stat(DIFF)) == "+2 −2"


def test_a_carriage_return_is_seen() -> None:
    assert list(diff_lines("@@ -0,0 +1 @@\n+a\r\n"))[1].text == "a␍"


@given(st.text("@ -+\\1,abc\n\r\x1b", max_size=200))
def test_no_line_is_left_out_whatever_it_is(text: str) -> None:
    expected = text.removesuffix("\n").split("\n") if text else []
    assert len(list(diff_lines(text))) == len(expected)


@given(st.integers(0, len(DIFF)))
def test_an_unfinished_diff_begins_like_the_whole_one(end: int) -> None:
    whole, part = list(diff_lines(DIFF)), list(diff_lines(DIFF[:end]))
    assert part[:-1] == whole[: max(0, len(part) - 1)]
