"""What the diff pane makes of a diff: headers, places, folds, pairs and words; a diff that grows is read on."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_workbench.views.blocks import Tone
from agent_workbench.views.changed_words import changed_words, similar_lines
from agent_workbench.views.diff_document import DiffDocument, DiffReader, change_pairs, context_folds

DIFF = """\
diff --git a/x.py b/x.py
old mode 100644
new mode 100755
--- a/x.py
+++ b/x.py
@@ -3,3 +3,3 @@ def f():
 one
-two
+--- two
 three
@@ -20 +20 @@
-a
+b
\\ No newline at end of file
diff --git a/old.py b/new.py
rename from old.py
rename to new.py
diff --git a/y.py b/y.py
--- /dev/null
+++ b/y.py
@@ -0,0 +1 @@
+a
--- a/z.py
+++ /dev/null
@@ -1 +0,0 @@
-a
"""


def read(text: str) -> DiffDocument:
    return DiffReader().read(text)


def test_the_headers_of_a_file_are_one_line_that_says_all() -> None:
    shown = read(DIFF)
    assert [line.text for line in shown.lines if line.tone is Tone.FILE] == [
        "x.py · mode 100644 → 100755",
        "new.py · renamed from old.py",
        "y.py · new file",
        "z.py · deleted",
    ]
    assert [(file.added, file.removed, file.first_hunk, file.hunks) for file in shown.files] == [
        (2, 2, 0, 2),
        (0, 0, 2, 0),
        (1, 0, 2, 1),
        (0, 1, 3, 1),
    ]


def test_lines_know_hunk_and_place_in_it() -> None:
    lines = [line for line in read(DIFF).lines if line.file == 0 and line.hunk >= 0]
    assert [(line.hunk, line.at) for line in lines] == [
        *((0, -1), (0, 0), (0, 1), (0, 2), (0, 3)),
        *((1, -1), (1, 0), (1, 1), (1, -1)),
    ]


@given(st.lists(st.integers(0, len(DIFF)), max_size=12))
@example([208, 227])  # Both end in `r`: the same line, but the header above it is another.
def test_a_diff_that_grows_is_shown_as_if_read_at_once(ends: list[int]) -> None:
    reader = DiffReader()
    before: DiffDocument = DiffDocument()
    for end in sorted(ends):
        shown = reader.read(DIFF[:end])
        whole = read(DIFF[:end])
        assert (shown.lines, shown.files, shown.hunks) == (whole.lines, whole.files, whole.hunks)
        assert shown.lines[: shown.same] == before.lines[: shown.same]
        before = shown


def test_while_a_diff_is_written_half_a_path_is_no_file() -> None:
    text = "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1 +1 @@\n-a\n+b\n--- a/z.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    reader = DiffReader()
    seen = {head.text for end in range(len(text)) for head in reader.read(text[:end], grows=True).files}
    assert seen == {"shop/cart.py", "z.py", "z.py · deleted"}


def test_another_diff_is_read_anew() -> None:
    reader = DiffReader()
    reader.read(DIFF)
    assert reader.read("+++ b/other\n").same == 0


def test_only_long_unchanged_parts_fold_and_what_is_near_a_change_stays() -> None:
    body = "".join(f" line {number}\n" for number in range(20))
    shown = read(f"--- a/x\n+++ b/x\n@@ -1,21 +1,21 @@\n{body}-a\n+b\n")
    ((first, end),) = context_folds(shown)
    assert [shown.lines[first].text, shown.lines[end].text] == ["line 3", "line 17"]
    assert not list(context_folds(read(DIFF)))


def test_removed_lines_are_paired_with_those_that_take_their_place() -> None:
    shown = read("@@ -1,4 +1,5 @@\n-a\n-b\n+A\n+B\n+C\n x\n-d\n\\ No newline at end of file\n+D\n")
    texts = [[[shown.lines[number].text for number in side] for side in sides] for sides in change_pairs(shown)]
    assert texts == [[["a", "b"], ["A", "B", "C"]], [["d"], ["D"]]]


def test_lines_are_compared_with_those_most_like_them() -> None:
    old, new = ["return a - b"], ["if b > 100:", "    raise ValueError(b)", "return a - a * b"]
    assert list(similar_lines(old, new)) == [(0, 2)]
    assert list(similar_lines(["x", "y"], ["1", "2"])) == [(0, 0), (1, 1)]
    assert not list(similar_lines(["x"], ["1", "2"]))


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        ("return a + b", "return a * b", ["+"], ["*"]),
        ("def f(x):", "def f(x, y=1):", [], [", y=1"]),
        ("全部 价格 = 1", "全部 总价 = 1", ["价格"], ["总价"]),
        ("nothing alike", "quite = different()", [], []),
        ("same", "same", [], []),
        ("x" * 5000, "x" * 5001, [], []),
    ],
)
def test_words_that_changed_are_found(old: str, new: str, gone: list[str], come: list[str]) -> None:
    left, right = changed_words(old, new)
    assert [old[start:end] for start, end in left] == gone
    assert [new[start:end] for start, end in right] == come


def test_long_lines_of_many_words_take_no_time() -> None:
    old, new = "a b " * 900, "b c " * 900
    assert changed_words(old, new) == ((), ())
    same_ends = changed_words(f"{'k ' * 800}{old[:900]}", f"{'k ' * 800}{new[:900]}")
    assert same_ends[0][0][0] >= 1600


@given(st.text("ab +(", max_size=40), st.text("ab +(", max_size=40))
def test_without_the_words_that_changed_both_lines_are_the_same(old: str, new: str) -> None:
    left, right = changed_words(old, new)
    if left or right:
        assert _without(old, left) == _without(new, right)


def _without(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text
