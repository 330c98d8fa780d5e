"""Choice by hunk and by line, its partial diff, and the text of an edited hunk."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import (
    HunkChoice,
    hunk_text,
    leave_out,
    partial_diff,
    selectable_parts,
    with_hunk_text,
)
from agent_workbench.core.patch.values import HunkFate, LeftOut, patch_hash
from tests.core.patch.diffs import modify, small

DIFF = modify("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -9 +9,2 @@\n-e\n+E\n+EE\n") + small(".github/ci.yml")
MODE = "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"
PATCH = parse_patch(DIFF)
FIRST, SECOND, CI = selectable_parts(PATCH)


def test_a_hunk_is_left_and_taken_again() -> None:
    left = HunkChoice().toggled([(FIRST, None)])
    assert left.left == (LeftOut(FIRST.id),)
    assert left.fate(FIRST) is HunkFate.LEFT
    assert left.leaves(FIRST, 1)
    assert left.toggled([(FIRST, None)]) == HunkChoice()


def test_lines_are_left_by_themselves_until_none_is_taken() -> None:
    one = HunkChoice().toggled([(SECOND, {0, 2, 7})])
    assert one.left == (LeftOut(SECOND.id, (0, 2)),)
    assert one.fate(SECOND) is HunkFate.PARTLY
    assert one.toggled([(SECOND, {1})]).left == (LeftOut(SECOND.id),)
    assert one.toggled([(SECOND, {0})]).left == (LeftOut(SECOND.id, (2,)),)
    assert one.toggled([(SECOND, None)]).fate(SECOND) is HunkFate.LEFT


def test_one_line_of_a_hunk_that_is_left_is_taken() -> None:
    choice = HunkChoice((LeftOut(SECOND.id, (), "no"),)).toggled([(SECOND, {1})])
    assert choice.left == (LeftOut(SECOND.id, (0, 2), "no"),)


def test_several_hunks_are_left_together_where_anything_of_them_was_taken() -> None:
    choice = HunkChoice().toggled([(FIRST, None)]).toggled([(FIRST, None), (SECOND, None)])
    assert {each.id for each in choice.left} == {FIRST.id, SECOND.id}
    assert choice.toggled([(FIRST, None), (SECOND, None)]) == HunkChoice()


def test_a_reason_stays_with_what_is_left() -> None:
    choice = HunkChoice().toggled([(FIRST, None)]).with_reason({FIRST.id}, "off by one")
    assert choice.toggled([(SECOND, None)]).of(FIRST) == LeftOut(FIRST.id, (), "off by one")


def test_a_change_without_hunks_is_left_as_a_whole() -> None:
    patch = parse_patch(small("x") + MODE)
    _, mode = selectable_parts(patch)
    choice = HunkChoice().toggled([(mode, None)])
    assert choice.left == (LeftOut(mode.id),)
    assert choice.toggled([(mode, None)]) == HunkChoice()
    assert "m" not in partial_diff(patch, choice).text.split()


def test_what_is_taken_is_what_the_engine_makes_of_it() -> None:
    choice = HunkChoice().toggled([(SECOND, {2})]).toggled([(CI, None)])
    result = partial_diff(PATCH, choice)
    assert result.text == render_patch(leave_out(PATCH, choice.left))
    assert result.result_sha == patch_hash(result.text)
    assert result.said == "taking 2 of 3 hunks, +2 −2"
    assert result.special == ()
    assert partial_diff(PATCH, HunkChoice()).special == (".github/ci.yml",)
    nothing = HunkChoice().toggled([(FIRST, None), (SECOND, None), (CI, None)])
    assert partial_diff(PATCH, nothing).said == "nothing would be taken"


def test_a_hunk_goes_out_as_text_and_comes_back_into_the_diff() -> None:
    assert hunk_text(PATCH, FIRST.id) == " a\n-b\n+B\n c\n"
    diff = with_hunk_text(PATCH, FIRST.id, " a\n-b\n+B\n+BB\n c\n")
    assert "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+BB\n c\n@@ -9 +10,2 @@" in diff
    assert with_hunk_text(PATCH, FIRST.id, hunk_text(PATCH, FIRST.id)) == render_patch(PATCH)
    assert len(selectable_parts(parse_patch(with_hunk_text(PATCH, FIRST.id, " a\n b\n c\n")))) == 2


def test_an_end_without_newline_survives_editing() -> None:
    patch = parse_patch(modify("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"))
    (hunk,) = selectable_parts(patch)
    assert with_hunk_text(patch, hunk.id, hunk_text(patch, hunk.id)) == render_patch(patch)


def test_a_line_without_its_sign_is_refused_by_its_number() -> None:
    with pytest.raises(PatchError, match="line 2 of the hunk begins with 'x'"):
        with_hunk_text(PATCH, FIRST.id, " a\nx\n")
