"""Fit of diffs that a grammar constrained: only their lines decide, and only such diffs are fitted so."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.fit import Fit, fit_constrained_diff
from agent_workbench.core.patch.patch_reader import read_constrained_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds

FILES = {"a.txt": b"one\n\ntwo\nsame\nsame\n", "b.txt": b"x\r\ny", "e.txt": b""}
CONTENTS = {path: FileContent(data) for path, data in FILES.items()}
A, B = "--- a/a.txt\n+++ b/a.txt\n", "--- a/b.txt\n+++ b/b.txt\n"


def fit_of(diff: str, bounds: PatchBounds | None = None, contents: dict[str, FileContent] | None = None) -> Fit | None:
    read = read_constrained_diff(diff)
    known = contents or CONTENTS
    return None if read is None else fit_constrained_diff(read, bounds or PatchBounds(), known, known)


def test_numbers_and_counts_are_set_and_headings_left_out() -> None:
    diff = f"{A}@@ -9 +9,9 @@ def other():\n-one\n+1\n+2\n\n@@ -1 +1 @@\n two\n-same\n{B}@@ -5 +5 @@\n+w\n x\n"
    fit = fit_of(diff)
    assert fit is not None
    assert render_patch(fit.patch) == (
        f"diff --git a/a.txt b/a.txt\n{A}@@ -1,2 +1,3 @@\n-one\n+1\n+2\n \n@@ -3,2 +4 @@\n two\n-same\n"
        f"diff --git a/b.txt b/b.txt\n{B}@@ -1 +1,2 @@\n+w\n x\n"
    )


@pytest.mark.parametrize(
    "diff",
    [
        f"{A}@@ -4 +4 @@\n-same\n",
        f"{A}@@ -4 +4 @@\n-nowhere\n",
        f"{A}@@ -4 +4 @@\n-two\n@@ -1 +1 @@\n-one\n",
        f"{A}@@ -4 +4 @@\n-two\n@@ -4 +4 @@\n-two\n",
        f"{A}@@ -4 +4 @@\n+new\n",
        f"{A}@@ -4 +4 @@\n-two\nDone.\n",
        f"{A}\n@@ -4 +4 @@\n-two\n",
        f"{A}@@ -4 +4 @@\n-two\n\\ Kein Zeilenumbruch\n",
        f"Here:\n{A}@@ -4 +4 @@\n-two\n",
        f"diff --git a/a.txt b/a.txt\n{A}@@ -4 +4 @@\n-two\n",
        "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-x\n",
        "--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n",
        "--- /dev/null\n+++ new.txt\n@@ -0,0 +1 @@\n+a\n",
        "rename from a.txt\nrename to a.txt\n",
        "no diff\n",
        "\n",
        A,
    ],
)
def test_no_other_diff_is_touched(diff: str) -> None:
    assert fit_of(diff) is None


def test_a_binary_file_is_none_that_a_grammar_offers() -> None:
    contents = {"a.txt": FileContent(b"one\0\n")}
    assert fit_of(f"{A}@@ -1 +1 @@\n-one\0\n+x\n", contents=contents) is None


def test_lines_that_look_like_the_end_of_a_mail_or_a_header_belong_to_the_hunk() -> None:
    contents = {"a.txt": FileContent(b"a\n-\n-- b\n")}
    fit = fit_of(f"{A}@@ -7 +7 @@\n a\n--\n--- b\n+c\n", contents=contents)
    assert fit is not None
    assert fit.changes[0].after == FileContent(b"a\nc\n")
    fit = fit_of(f"{A}@@ -1,2 +1 @@\n-a\n--\n", contents=contents)
    assert fit is not None
    assert fit.changes[0].after == FileContent(b"-- b\n")


@pytest.mark.parametrize(
    ("body", "before", "after"),
    [
        (" a\n-b\n+c\n+d\n", "a\r\nb\r\n", "a\r\nc\r\nd\r\n"),
        ("-b\n+c\n+d\n", "a\r\nb", "a\r\nc\r\nd\r\n"),
        (" a\n+c\n b\n", "a\r\nb", "a\r\nc\r\nb"),
        (" a\n b\n+c\n", "a\r\nb", "a\r\nb\r\nc\r\n"),
        (" a\n+x\n b\n", "a\nb\r\n", "a\nx\nb\r\n"),
        (" a\n+x\n b\n", "a\r\nb\n", "a\r\nx\r\nb\n"),
        ("+x\n b\n", "a\nb\r\n", "a\nx\r\nb\r\n"),
        ("-b\n+c\n", "a\nb", "a\nc\n"),
    ],
)
def test_added_lines_end_like_the_line_before_them(body: str, before: str, after: str) -> None:
    fit = fit_of(f"{A}@@ -7 +7 @@\n{body}", contents={"a.txt": FileContent(before.encode())})
    assert fit is not None
    assert fit.changes[0].after == FileContent(after.encode())


def test_a_constrained_diff_fits_to_the_letter_whatever_its_headers_say() -> None:
    diff = (
        f"{A}@@ -77,3 +2 @@ class Wrong:\n-one\n+1\n--- /dev/null\n+++ b/new/__init__.py\n{B}@@ -9 +9 @@\n x\n-y\n"
        "\\ No newline at end of file\n--- a/e.txt\n+++ b/e.txt\n@@ -0,0 +1,7 @@\n+filled\n"
    )
    fit = fit_of(diff)
    assert fit is not None
    assert fit.repairs == ()
    assert {change.path: change.after.data for change in fit.changes if change.after} == {
        "a.txt": b"1\n\ntwo\nsame\nsame\n",
        "new/__init__.py": b"",
        "b.txt": b"x\r\n",
        "e.txt": b"filled\n",
    }
    read = read_constrained_diff(diff)
    assert read is not None
    assert read.old_paths == ("a.txt", "b.txt", "e.txt")
    with pytest.raises(PatchError, match="the limit is 2"):
        fit_of(diff, PatchBounds(max_files=2))


def test_renamed_files_keep_their_lines_but_for_what_their_hunks_change() -> None:
    contents = {path: FileContent(data, executable=path == "a.txt") for path, data in FILES.items()}
    contents |= {"g.txt": FileContent(b"g"), "i.txt": FileContent(b"i\n")}
    diff = (
        "rename from e.txt\nrename to f.txt\nrename from b.txt\nrename to d.txt\n"
        "rename from a.txt\nrename to new/c.txt\n@@ -77 +2 @@\n-one\n+1\n"
        "rename from g.txt\nrename to h.txt\n--- a/i.txt\n+++ b/i.txt\n@@ -1 +1 @@\n-i\n+j\n"
    )
    fit = fit_of(diff, contents=contents)
    assert fit is not None
    assert {change.path: change.after for change in fit.changes} == {
        "e.txt": None,
        "f.txt": FileContent(b""),
        "b.txt": None,
        "d.txt": FileContent(b"x\r\ny"),
        "a.txt": None,
        "new/c.txt": FileContent(b"1\n\ntwo\nsame\nsame\n", executable=True),
        "g.txt": None,
        "h.txt": FileContent(b"g"),
        "i.txt": FileContent(b"j\n"),
    }
