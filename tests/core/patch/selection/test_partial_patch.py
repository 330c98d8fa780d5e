"""Partial patches, and the text of patches."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.diff_text import patch_stat, render_changes, render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import FileChange, FileContent, LeftOut, file_id, selectable_ids
from tests.core.patch.diffs import create, keep_hunks, modify, small

TWO = "@@ -1 +1,2 @@\n-a\n+A\n+AA\n@@ -5 +6 @@ def f():\n-e\n+E\n"
MODE = "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"


def test_files_without_a_taken_hunk_drop_out() -> None:
    patch = parse_patch(modify(TWO) + small("y") + create("z"))
    kept = keep_hunks(patch, [patch.files[0].hunks[1].id, patch.files[2].hunks[0].id])
    assert [(file.path, len(file.hunks)) for file in kept.files] == [("x.py", 1), ("z", 1)]
    assert keep_hunks(patch, ()).files == ()


def test_the_second_of_two_equal_hunks_can_be_taken_alone() -> None:
    patch = parse_patch(modify("@@ -1 +1 @@\n-a\n+b\n@@ -5 +5 @@\n-a\n+b\n"))
    kept = keep_hunks(patch, {patch.files[0].hunks[1].id})
    assert [hunk.old_start for hunk in kept.files[0].hunks] == [5]


def test_a_change_without_hunks_is_taken_by_the_file_s_id() -> None:
    patch = parse_patch(small("x") + MODE)
    mode = file_id(patch.files[1])
    assert selectable_ids(patch) == (patch.files[0].hunks[0].id, mode)
    assert [file.path for file in keep_hunks(patch, [mode]).files] == ["m"]
    assert [file.path for file in keep_hunks(patch, selectable_ids(patch)[:1]).files] == ["x"]


def test_an_id_of_another_diff_is_refused() -> None:
    with pytest.raises(PatchError, match="has no hunk ffff"):
        leave_out(parse_patch(small("x")), [LeftOut("f" * 64)])


def test_counts_and_new_numbers_are_made_anew() -> None:
    patch = parse_patch(modify(TWO))
    assert render_patch(patch) == f"diff --git a/x.py b/x.py\n{modify(TWO)}"
    kept = keep_hunks(patch, {patch.files[0].hunks[1].id})
    assert "@@ -5 +5 @@ def f():\n-e\n+E\n" in render_patch(kept)


@pytest.mark.parametrize(
    "diff",
    [
        MODE,
        "diff --git a/old name b/é\nrename from old name\nrename to é\n",
        "diff --git a/o b/n\nold mode 100755\nnew mode 100644\nrename from o\nrename to n\n"
        "--- a/o\n+++ b/n\n@@ -3 +3 @@\n-a\n+b\n",
        "diff --git a/x b/x\ndeleted file mode 100755\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        'diff --git "a/\\"q\\"" "b/\\"q\\""\n--- "a/\\"q\\""\n+++ "b/\\"q\\""\n@@ -1 +1 @@\n-a\n+b\n',
    ],
)
def test_the_canonical_form_stays_as_it_is(diff: str) -> None:
    assert render_patch(parse_patch(diff)) == diff


@pytest.mark.parametrize("data", [b"\0", b"\xff", b"a\n\xed\xa0\x80"])
def test_what_is_not_text_is_one_line_that_is_refused(data: bytes) -> None:
    before, after = FileContent(b"a\n"), FileContent(data)
    assert render_changes([FileChange("x", before, after)]).endswith("\nBinary files a/x and b/x differ\n")
    for change in (FileChange("x", before, after), FileChange("x", None, after), FileChange("x", after, None)):
        diff = render_changes([change])
        assert len(diff.splitlines()) <= 3
        with pytest.raises(PatchError, match="binary changes are not taken"):
            parse_patch(diff)


def test_stat() -> None:
    assert patch_stat(parse_patch(modify(TWO) + create("z"))) == (4, 2)


def test_no_change_is_no_text() -> None:
    same = FileContent(b"a\n")
    assert render_changes([FileChange("x", same, same), FileChange("y", None, None)]) == ""


def left_out(before: str, diff: str, *lines: int) -> str:
    """Return `before` after the diff without these lines of its first hunk."""
    patch = parse_patch(diff)
    kept = leave_out(patch, [LeftOut(patch.files[0].hunks[0].id, lines)])
    again = parse_patch(render_patch(kept))
    (change,) = apply_patch(again, {"x.py": FileContent(before.encode())}, ("x.py",))
    assert change.after is not None
    return change.after.data.decode()


@pytest.mark.parametrize(
    ("lines", "after"),
    [((0,), "a\nA\nB\n"), ((2,), "B\n"), ((1, 3), "b\nA\n"), ((0, 1), "a\nb\nA\nB\n"), ((2, 3), "")],
)
def test_lines_that_are_left_out_stay_as_they_are(lines: tuple[int, ...], after: str) -> None:
    assert left_out("a\nb\n", modify("@@ -1,2 +1,2 @@\n-a\n-b\n+A\n+B\n"), *lines) == after


@pytest.mark.parametrize(("lines", "after"), [((0,), "a\nA\nB"), ((2,), "A\n"), ((1,), "B"), ((0, 1), "a\nB")])
def test_a_last_line_without_its_end_gets_one_when_another_comes_after_it(lines: tuple[int, ...], after: str) -> None:
    ends = "\\ No newline at end of file\n"
    assert left_out("a", modify(f"@@ -1 +1,2 @@\n-a\n{ends}+A\n+B\n{ends}"), *lines) == after


def test_a_deletion_of_which_something_stays_is_none() -> None:
    diff = "diff --git a/x.py b/x.py\ndeleted file mode 100644\n--- a/x.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    assert left_out("a\nb\n", diff, 1) == "b\n"


def test_a_line_that_changes_nothing_cannot_be_left_out() -> None:
    patch = parse_patch(modify("@@ -1,2 +1,2 @@\n a\n-b\n+B\n"))
    with pytest.raises(PatchError, match="line 0 of hunk"):
        leave_out(patch, [LeftOut(patch.files[0].hunks[0].id, (0,))])
