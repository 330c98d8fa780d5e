"""Combination of successive patches: the change between both ends, and the patches that wrote each hunk."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.combination import CombinedFile, combine_patches
from agent_workbench.core.patch.diff_text import render_changes, render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import FileChange, FileContent, LineKind, Patch

PATH = "a.py"
BASE = "".join(f"line {number}\n" for number in range(1, 41))


def diffs(*texts: str | None, path: str = PATH) -> list[Patch]:
    """Return the diffs from each text to the next one."""
    contents = [None if text is None else FileContent(text.encode()) for text in texts]
    pairs = pairwise(contents)
    rendered = [render_changes([FileChange(path, before, after)]) for before, after in pairs]
    return [parse_patch(each) for each in rendered if each]


def told(file: CombinedFile) -> list[tuple[str, tuple[int, ...]]]:
    """Return the changed lines of each hunk, and who wrote it."""
    lines = [
        "".join(f"{line.kind}{line.text}|" for line in hunk.lines if line.kind is not LineKind.CONTEXT)
        for hunk in file.patch.hunks
    ]
    return list(zip(lines, file.origins, strict=True))


def test_each_hunk_knows_who_wrote_it() -> None:
    first = BASE.replace("line 5\n", "five\nnew\n").replace("line 30\n", "thirty\n")
    second = first.replace("thirty\n", "30\n").replace("line 20\n", "")
    (file,) = combine_patches(diffs(BASE, first, second, second.replace("new\n", "newer\n")))
    assert told(file) == [
        ("-line 5|+five|+newer|", (0, 2)),
        ("-line 20|", (1,)),
        ("-line 30|+30|", (0, 1)),
    ]


def test_what_was_taken_back_by_hand_is_no_change() -> None:
    assert combine_patches(diffs(BASE, BASE.replace("line 7\n", "7\n"), BASE)) == ()
    assert combine_patches(diffs(None, "a\n", None)) == ()
    assert combine_patches(diffs("a\n", None, "a\n")) == ()
    repeated = "a\na\na\na\na\nb\na\na\n"
    assert combine_patches(diffs(repeated, "a\na\n", "b\na\na\n", repeated)) == ()
    executable = [FileContent(b"a\n", executable) for executable in (False, True, False)]
    modes = [render_changes([FileChange(PATH, *pair)]) for pair in pairwise(executable)]
    assert combine_patches([parse_patch(each) for each in modes]) == ()


def test_files_come_go_and_are_renamed() -> None:
    renamed = parse_patch(f"diff --git a/{PATH} b/b.py\nrename from {PATH}\nrename to b.py\n")
    changed = diffs(BASE, BASE.replace("line 3\n", "3\n"), path="b.py")
    made = diffs(None, "x\n", "x\ny\n", path="c.py")
    gone = diffs("only\n", None, path="d.py")
    files = combine_patches([renamed, *changed, *made, *gone])
    assert [(each.patch.operation, each.patch.old_path, each.patch.path) for each in files] == [
        ("rename", PATH, "b.py"),
        ("create", "c.py", "c.py"),
        ("delete", "d.py", "d.py"),
    ]
    assert told(files[1]) == [("+x|+y|", (2, 3))]


@pytest.mark.parametrize("ends", ["", "\n"])
def test_the_last_line_may_have_no_end(ends: str) -> None:
    (file,) = combine_patches(diffs("a\nb", "a\nb\nc", f"a\nb\nd{ends}"))
    assert told(file) == [("-b|+b|+d|", (0, 1))]


LINES = st.lists(st.sampled_from("abcd"), max_size=14)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + (end if lines else ""), LINES, st.sampled_from(["", "\n"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=2, max_size=5))
def test_the_combined_diff_leads_from_the_first_text_to_the_last(texts: list[str]) -> None:
    combined = combine_patches(diffs(*texts))
    content: FileContent | None = FileContent(texts[0].encode())
    if combined:
        patch = parse_patch(render_patch(Patch(tuple(file.patch for file in combined))))
        ((_, _, content),) = [(c.path, c.before, c.after) for c in apply_patch(patch, {PATH: content})]
    assert content == FileContent(texts[-1].encode())
