"""Transfer of a choice to an edited diff: parts stay left out, with their reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import HunkChoice, carry_choice, hunk_text, leave_out, with_hunk_text
from agent_workbench.core.patch.values import LeftOut, Patch, selectable_ids

TWICE = " same\n-old\n+new\n same\n"
DIFF = (
    "--- a/x.py\n+++ b/x.py\n"
    f"@@ -1,3 +1,3 @@\n{TWICE}"
    f"@@ -11,3 +11,3 @@\n{TWICE}"
    "@@ -21,3 +21,5 @@\n one\n-two\n+TWO\n+two and a half\n+nearly three\n three\n"
    "--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-y\n+Y\n"
    "diff --git a/here b/there\nsimilarity index 100%\nrename from here\nrename to there\n"
)
PATCH = parse_patch(DIFF)
FIRST, SECOND, THIRD, OTHER, RENAME = selectable_ids(PATCH)
HALF = LeftOut(THIRD, (3,), "no halves")


def edited(hunk: str, old: str, new: str) -> Patch:
    text = hunk_text(PATCH, hunk)
    assert old in text
    return parse_patch(with_hunk_text(PATCH, hunk, text.replace(old, new)))


def after(patch: Patch, *left: LeftOut) -> tuple[tuple[int, tuple[int, ...], str], ...]:
    """Return the parts that stay left out, by the number of each part in the edited diff."""
    names = selectable_ids(patch)
    kept = carry_choice(HunkChoice(left), PATCH, patch).left
    leave_out(patch, kept)
    return tuple(sorted((names.index(each.id), each.lines, each.reason) for each in kept))


def test_a_line_left_out_of_the_edited_hunk_stays_left_out_with_its_reason() -> None:
    assert after(edited(THIRD, "+TWO\n", "+2\n"), HALF) == ((2, (3,), "no halves"),)
    assert after(edited(THIRD, "+TWO\n", "+2\n+2 again\n"), HALF) == ((2, (4,), "no halves"),)
    assert after(edited(THIRD, " one\n", ""), HALF) == ((2, (2,), "no halves"),)


def test_what_replaces_only_lines_that_were_left_out_stays_left_out() -> None:
    assert after(edited(THIRD, "+two and a half\n", "+2.5\n"), HALF) == ((2, (3,), "no halves"),)
    assert after(edited(THIRD, "+two and a half\n", "+2.5\n+2.6\n"), HALF) == ((2, (3, 4), "no halves"),)


def test_a_line_that_is_gone_takes_its_reason_with_it() -> None:
    assert after(edited(THIRD, "+two and a half\n", ""), HALF) == ()
    assert after(edited(THIRD, "-two\n+TWO\n+two and a half\n+nearly three\n", " two\n"), HALF) == ()


def test_a_line_that_the_user_adds_beside_one_left_out_is_taken() -> None:
    assert after(edited(THIRD, "+nearly three\n", "+nearly three\n+three, nearly\n"), HALF) == ((2, (3,), "no halves"),)


def test_a_hunk_left_out_whole_stays_left_out_whatever_it_says_now() -> None:
    whole = LeftOut(THIRD, (), "not asked for")
    for old, new in (("+TWO\n", "+2\n"), (" one\n", " one\n+one and a half\n"), (" three\n", "-three\n+3\n")):
        assert after(edited(THIRD, old, new), whole) == ((2, (), "not asked for"),)


def test_equal_hunks_do_not_take_over_the_choice_of_each_other() -> None:
    """The id of an equal hunk counts those before it: with the first one edited, the second has its id."""
    both = (LeftOut(FIRST, (1,), "one"), LeftOut(SECOND, (), "two"))
    changed = edited(FIRST, "+new\n", "+newer\n")
    assert selectable_ids(changed)[1] == FIRST
    assert after(changed, *both) == ((0, (1,), "one"), (1, (), "two"))
    assert after(changed, both[1]) == ((1, (), "two"),)


def test_the_rest_of_the_diff_keeps_its_choice_where_a_hunk_goes_splits_or_merges() -> None:
    left = (LeftOut(FIRST, (), "a"), LeftOut(OTHER, (1,), "b"), LeftOut(RENAME, (), "c"))
    gone = parse_patch(with_hunk_text(PATCH, THIRD, " one\n two\n three\n"))
    assert after(gone, *left) == ((0, (), "a"), (2, (1,), "b"), (3, (), "c"))
    split = parse_patch(
        DIFF.replace(
            "@@ -21,3 +21,5 @@\n one\n-two\n+TWO\n+two and a half\n+nearly three\n three\n",
            "@@ -21,2 +21,2 @@\n one\n-two\n+TWO\n@@ -23,1 +23,3 @@\n+two and a half\n+nearly three\n three\n",
        )
    )
    assert after(split, *left, HALF) == ((0, (), "a"), (3, (0,), "no halves"), (4, (1,), "b"), (5, (), "c"))
    merged = parse_patch(
        DIFF.replace(f"{TWICE}@@ -11,3 +11,3 @@\n", TWICE).replace("@@ -1,3 +1,3 @@", "@@ -1,6 +1,6 @@")
    )
    assert after(merged, LeftOut(FIRST, (), "a"), LeftOut(SECOND, (2,), "b"))[0] == (0, (1, 2, 6), "a; b")


def test_nothing_is_carried_to_another_diff() -> None:
    other = parse_patch("--- a/z.py\n+++ b/z.py\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n")
    assert after(other, LeftOut(FIRST), LeftOut(OTHER)) == ()


def test_lines_that_moved_to_another_file_stay_left_out() -> None:
    moved = parse_patch(DIFF.replace("y.py", "z.py"))
    assert after(moved, LeftOut(OTHER, (1,), "b")) == ((3, (1,), "b"),)


PARTS = [(hunk.id, hunk.changes) for file in PATCH.files for hunk in file.hunks]
CHOICES = st.tuples(*(st.sets(st.sampled_from(changes)) for _, changes in PARTS))


@pytest.mark.parametrize("hunk", [FIRST, SECOND, THIRD, OTHER])
@given(CHOICES)
def test_whatever_was_chosen_elsewhere_is_chosen_after_an_edit(hunk: str, chosen: tuple[set[int], ...]) -> None:
    left = tuple(
        LeftOut(name, () if len(lines) == len(changes) else tuple(sorted(lines)), f"why {at}")
        for at, ((name, changes), lines) in enumerate(zip(PARTS, chosen, strict=True))
        if lines
    )
    assert carry_choice(HunkChoice(left), PATCH, PATCH).left == left
    changed = parse_patch(with_hunk_text(PATCH, hunk, hunk_text(PATCH, hunk) + "+another\n"))
    names = selectable_ids(changed)
    kept = {names.index(each.id): each for each in carry_choice(HunkChoice(left), PATCH, changed).left}
    before = {selectable_ids(PATCH).index(each.id): each for each in left}
    at = selectable_ids(PATCH).index(hunk)
    assert kept.keys() == before.keys()
    assert all(
        (kept[each].lines, kept[each].reason) == (before[each].lines, before[each].reason)
        for each in kept.keys() - {at}
    )
    assert at not in kept or kept[at].lines == before[at].lines
