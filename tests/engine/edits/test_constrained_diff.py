"""True numbers for diffs that were held to the grammar, and only for those."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch import FileContent, PatchBounds
from agent_workbench.core.patch.grammar.editable_file import text_of
from agent_workbench.engine.edits.constrained_diff import fit_held
from agent_workbench.engine.edits.numbering import numbered, old_paths

FILES = {"a.txt": b"one\n\ntwo\nsame\nsame\n", "b.txt": b"x\r\ny", "e.txt": b""}
TEXTS = {path: text for path, data in FILES.items() if (text := text_of(FileContent(data))) is not None}
A, B = "--- a/a.txt\n+++ b/a.txt\n", "--- a/b.txt\n+++ b/b.txt\n"


def test_numbers_and_counts_are_set_and_headings_left_out() -> None:
    diff = f"{A}@@ -9 +9,9 @@ def other():\n-one\n+1\n+2\n\n@@ -1 +1 @@\n two\n-same\n{B}@@ -5 +5 @@\n+w\n x\n"
    assert numbered(diff, TEXTS) == (
        f"diff --git a/a.txt b/a.txt\n{A}@@ -1,2 +1,3 @@\n-one\n+1\n+2\n \n@@ -3,2 +4,1 @@\n two\n-same\n"
        f"diff --git a/b.txt b/b.txt\n{B}@@ -1,1 +1,2 @@\n+w\n x\n"
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
        "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-x\n",
        "--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n",
        "no diff\n",
        "\n",
        A,
    ],
)
def test_no_other_diff_is_touched(diff: str) -> None:
    assert numbered(diff, TEXTS) is None


def test_a_held_diff_fits_to_the_letter_whatever_its_headers_say() -> None:
    contents = {path: FileContent(data) for path, data in FILES.items()}
    diff = (
        f"{A}@@ -77,3 +2 @@ class Wrong:\n-one\n+1\n--- /dev/null\n+++ b/new/__init__.py\n{B}@@ -9 +9 @@\n x\n-y\n"
        "\\ No newline at end of file\n--- a/e.txt\n+++ b/e.txt\n@@ -0,0 +1,7 @@\n+filled\n"
    )
    fit = fit_held(diff, PatchBounds(), contents, contents)
    assert fit is not None
    assert fit.repairs == ()
    assert {change.path: change.after.data for change in fit.changes if change.after} == {
        "a.txt": b"1\n\ntwo\nsame\nsame\n",
        "new/__init__.py": b"",
        "b.txt": b"x\r\n",
        "e.txt": b"filled\n",
    }
    assert old_paths(diff) == ("a.txt", "b.txt", "e.txt")
    with pytest.raises(PatchError, match="the limit is 2"):
        fit_held(diff, PatchBounds(max_files=2), contents, contents)


def test_a_renamed_file_keeps_its_lines_but_for_what_its_hunks_change() -> None:
    contents = {path: FileContent(data, executable=path == "a.txt") for path, data in FILES.items()}
    diff = "rename from a.txt\nrename to new/c.txt\n@@ -77 +2 @@\n-one\n+1\nrename from e.txt\nrename to f.txt\n"
    fit = fit_held(diff, PatchBounds(), contents, contents)
    assert fit is not None
    assert {change.path: change.after for change in fit.changes} == {
        "a.txt": None,
        "new/c.txt": FileContent(b"1\n\ntwo\nsame\nsame\n", executable=True),
        "e.txt": None,
        "f.txt": FileContent(b""),
    }
    assert old_paths(diff) == ("a.txt", "e.txt")
    assert numbered("rename from a.txt\nrename to a.txt\n", TEXTS) is None
