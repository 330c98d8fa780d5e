"""Fit of damaged diffs: exactly the intended change, or refused, with every repair reported."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.fit import Fit, fit_diff
from agent_workbench.core.patch.patch_reader import parse_patch, read_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds
from tests.core.patch.diffs import create, edits, modify, small
from tests.core.patch.test_properties import PATH, diff_of, in_style, to_the_letter

BEFORE = """\
import os
import sys


def first(one):
    value = load(one)
    check(value)
    return value


def second(two):
    total = 0
    for each in two:
        total += each
    return total
"""
HUNK = """\
@@ -5,5 +5,5 @@ import sys
 def first(one):
     value = load(one)
-    check(value)
+    check(value, strict=True)
     return value
~
""".replace("~", " ")
AFTER = BEFORE.replace("check(value)", "check(value, strict=True)")
WHOLE = modify(HUNK)


def fitted(diff: str, files: dict[str, str], bounds: PatchBounds | None = None) -> Fit:
    before = {path: FileContent(text.encode()) for path, text in files.items()}
    loose = read_diff(diff, bounds or PatchBounds(), before)
    return fit_diff(loose, {path: before.get(path) for path in loose.paths}, before)


def made(diff: str, files: dict[str, str]) -> dict[str, str]:
    """Return every file as it is afterwards."""
    after = dict(files)
    for change in fitted(diff, files).changes:
        if change.after is None:
            del after[change.path]
        else:
            after[change.path] = change.after.data.decode()
    return after


def test_a_file_is_renamed_without_a_line_of_git() -> None:
    files = {"x.py": BEFORE, "z.py": "z\n"}
    moved = "rename from x.py\nrename to y.py\n"
    assert made(moved, files) == {"y.py": BEFORE, "z.py": "z\n"}
    assert made(f"{moved}{HUNK}rename from z.py\nrename to a.py\n", files) == {"y.py": AFTER, "a.py": "z\n"}
    assert fitted(f"{moved}{HUNK}", files).repairs == (
        "y.py (line 1 of the diff): the lines --- and +++ were completed",
    )
    for wrong in ("x.py", "z.py", "../y.py", ".git/y"):
        with pytest.raises(PatchError):
            made(moved.replace("y.py", wrong), files)


@pytest.mark.parametrize("header", ["@@ -5,5 +5,5 @@", "@@"])
def test_what_came_right_is_not_repaired(header: str) -> None:
    fit = fitted(WHOLE.replace("@@ -5,5 +5,5 @@", header), {"x.py": BEFORE})
    assert fit.repairs == ()
    assert [change.after for change in fit.changes] == [FileContent(AFTER.encode())]


NUMBERS = "line numbers or counts in the headers of hunks were set right"
AROUND = "what stood around the diff was left out"
REPAIRED = {
    "wrong counts": (WHOLE.replace("-5,5 +5,5", "-4,9 +4,3"), NUMBERS),
    "wrong line": (WHOLE.replace("-5,5 +5,5", "-40,7 +40,7"), NUMBERS),
    "dots for numbers": (WHOLE.replace("-5,5 +5,5 @@", "... @@"), ""),
    "fence": (f"```diff\n{WHOLE}```\n", AROUND),
    "prose": (f"Here it is:\n\n{WHOLE}\nThis change:\n- checks more\n- breaks nothing\n", AROUND),
    "mail": (f"From: x\nSubject: [PATCH] y\n\n---\n x.py | 2 +-\n\n{WHOLE}-- \n2.39.2\n", AROUND),
    "in a list": ("".join(f"  {line}" for line in WHOLE.splitlines(keepends=True)), "was indented"),
    "CRLF": (WHOLE.replace("\n", "\r\n"), ""),
    "CRLF in a fence": (f"```\r\n{WHOLE}```\n".replace("\n", "\r\n"), "CRLF"),
    "context lost": (
        modify("@@ -7,3 +7,3 @@\n-    check(value)\n+    check(value, strict=True)\n     return value\n"),
        "",
    ),
    "line lost": (
        WHOLE.replace("     value = load(one)\n", ""),
        "x.py: one line of context was missing between the others",
    ),
    "line mistyped": (WHOLE.replace("def first", "def frist"), "x.py: one line of context read otherwise"),
    "marker too much": (f"{WHOLE}\\ No newline at end of file\n", "x.py: one line of context read otherwise"),
    "dots": (
        modify("@@ @@\n def first(one):\n ...\n-    check(value)\n+    check(value, strict=True)\n     return value\n"),
        "x.py: the lines that dots stood for were kept",
    ),
    "tabs": (re.sub(r"(?m)^([ +-])    ", r"\1\t", WHOLE), "x.py: its lines were indented as those of the file are"),
    "no signs": (re.sub("^ ", "", WHOLE, flags=re.MULTILINE), "x.py: context lines lacked the space before them"),
    "other folder": (WHOLE.replace("/x.py", "/project/x.py"), "project/x.py was taken for x.py"),
    "no +++": (WHOLE.replace("+++ b/x.py\n", ""), "were completed"),
    "old copy": (WHOLE.replace("--- a/x.py", "--- x.py.orig").replace("+++ b/", "+++ "), "were taken for x.py"),
    "time": (WHOLE.replace("a/x.py", "a/x.py\t2024-01-01 00:00:00"), ""),
}


@pytest.mark.parametrize(("diff", "said"), REPAIRED.values(), ids=REPAIRED.keys())
def test_repaired(diff: str, said: str) -> None:
    assert made(diff, {"x.py": BEFORE}) == {"x.py": AFTER}
    assert said in "\n".join(fitted(diff, {"x.py": BEFORE}).repairs)


def test_an_escaped_diff_is_read_as_what_it_stands_for() -> None:
    diff = modify("@@ -1,2 +1,2 @@\n if a &lt; b &amp;&amp; c:\n-    go()\n+    go(a -&gt; b)\n")
    assert made(diff, {"x.py": "if a < b && c:\n    go()\n"}) == {"x.py": "if a < b && c:\n    go(a -> b)\n"}
    with pytest.raises(PatchError, match="nowhere"):
        made(diff.replace("go(a", "go(<a"), {"x.py": "if a < b && c:\n    go()\n"})


def test_what_is_taken_away_may_lack_the_blanks_behind_it_and_what_stays_keeps_them() -> None:
    files = {"x.py": "a \n\t\nb  \nc\n"}
    assert made(modify("@@ -1,4 +1,3 @@\n a\n\n-b\n c\n"), files) == {"x.py": "a \n\t\nc\n"}


def test_a_new_file_given_as_a_change_is_made() -> None:
    fit = fitted(modify("@@ -0,0 +1,2 @@\n+a\n+b\n", "new.py"), {"x.py": ""})
    assert fit.changes[0].before is None
    assert fit.changes[0].after == FileContent(b"a\nb\n")
    assert fit.repairs == ("new.py: there is no such file, so it is made new",)


def test_hunks_out_of_order_and_under_two_headers_are_put_together() -> None:
    late = modify("@@ -14,2 +14,2 @@\n         total += each\n-    return total\n+    return total + 1\n")
    diff = late + WHOLE
    assert made(diff, {"x.py": BEFORE})["x.py"] == AFTER.replace("return total", "return total + 1")
    repairs = "\n".join(fitted(diff, {"x.py": BEFORE}).repairs)
    assert "under two headers" in repairs
    assert "another order" in repairs


REFUSED = {
    "applied already": (WHOLE, AFTER, "seems to be applied already: its new lines stand at line 5"),
    "removed line mistyped": (
        WHOLE.replace("-    check(", "-    chekc("),
        BEFORE,
        "line 7 differs: expected '    chekc",
    ),
    "added lines nowhere": (modify("@@ -3,0 +4 @@\n+x\n"), BEFORE, "only adds lines does not say where"),
    "two places": (modify("@@ @@\n-a\n+b\n"), "a\nx\na\n", "hunk 1 stand in more than one place: lines 1, 3"),
    "lost beside": (modify("@@ @@\n a\n+x\n c\n"), "a\nb\nc\nd\ne\n", "lost line may have stood"),
    "last line without its marker": (modify("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), "a\nb", "whether the new one has one"),
    **{
        f"marker of a lost line, {name}": (modify(f"{hunk}\\ No newline at end of file\n"), before, cause)
        for name, hunk, before, cause in (
            ("the only one that stays", "@@ -1,2 +1 @@\n-a\n", "a\na", "where its header says"),
            ("and no true number", "@@ -7 +6 @@\n-a\n", "a\na", "lack a line, to which the marker"),
            ("context before", "@@ -1,3 +1,2 @@\n x\n-a\n", "x\na\na", "lack a line, to which the marker"),
            ("counted", "@@ -1,2 +1 @@\n x\n-a\n", "x\na\na", "lack a line, to which the marker"),
            ("behind context", "@@ -3,3 +3,2 @@\n-a\n b\n", "a\nb\na\nq\nb", "without a line feed"),
            ("an added one", "@@ -1 +1 @@\n-a\n", "a\n", "without a line feed, found a line feed"),
            ("another marker", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n", "a", "twice behind a"),
        )
    },
    "a lost line that stands twice": (
        modify("@@ -1,3 +1,4 @@\n \n+new\n a\n"),
        "\na\na\n",
        "one more line of context, which its header counts",
    ),
    "a lost line that was removed": (
        modify("@@ -1,4 +1,2 @@\n x\n-a\n z\n"),
        "x\nq\na\nz\n",
        "numbers do not say that they stand there",
    ),
    "mixed line ends": (modify("@@ -1,2 +1,3 @@\n a\n+x\n b\n"), "a\r\nb\nc\r\n", "how an added line is to end"),
    "change outside": (f"```diff\n{WHOLE}```\n+ one more\n", BEFORE, "stands outside of any hunk: . one more"),
    "a blank less: lost signs, or dedented": (
        modify("@@ -2,3 +2,4 @@\n * one\n * two\n+* new\n * three\n"),
        "/**\n * one\n * two\n * three\n */\n",
        "stand nowhere",
    ),
    "three blanks more: lost signs, or indented by four": (
        modify("@@ -2,3 +2,4 @@\n     one = 1\n     two = 2\n+    new = 3\n     three = 3\n"),
        "if x:\n one = 1\n two = 2\n three = 3\nelse:\n pass\n",
        "stand nowhere",
    ),
    "a line that reads otherwise, and no true number": (
        WHOLE.replace("def first", "def frist").replace("-5,5 +5,5", "-9,5 +9,5"),
        BEFORE,
        "do not say that they stand there",
    ),
    "other quotes, which the added line has, too": (
        modify('@@ -1,3 +1,4 @@\n a = \'x\'\n b = "y"\n+c = "z"\n d = load(a)\n'),
        "a = 'x'\nb = 'y'\nd = load(a)\n",
        "stand nowhere",
    ),
    "nothing": (f"no diff {BEFORE}", BEFORE, "there is no diff in it"),
}


@pytest.mark.parametrize(("diff", "before", "cause"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(diff: str, before: str, cause: str) -> None:
    with pytest.raises(PatchError, match=cause):
        made(diff, {"x.py": before})


@pytest.mark.parametrize("around", ["{0}", "```diff\n{0}```\n", "Look:\n\n{0}\nDone.\n"])
@pytest.mark.parametrize(
    ("diff", "cause"),
    [
        (small("../x"), "component .."),
        (small("/etc/x"), "absolute"),
        (small(".git/config"), "git's own folder"),
        (create("memory/x"), "is protected"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "may not copy"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+y\n", "symbolic link"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 1\n", "binary"),
        (small("x\0"), "NUL"),
    ],
)
def test_nothing_forbidden_gets_in_with_text_around_it(around: str, diff: str, cause: str) -> None:
    bounds = PatchBounds(protected_globs=("memory/**",))
    with pytest.raises(PatchError, match=cause):
        fitted(around.format(diff), {"x": "a\n"}, bounds)


def test_the_limits_hold_before_anything_is_read() -> None:
    with pytest.raises(PatchError, match="the limit is 10"):
        fitted("x" * 11, {}, PatchBounds(max_bytes=10))
    with pytest.raises(PatchError, match="changes 2 files; the limit is 1"):
        fitted(f"```\n{small('x')}{small('y')}```", {"x": "a\n", "y": "a\n"}, PatchBounds(max_files=1))


def outcome_of(diff: str, before: str) -> str | None:
    try:
        return made(diff, {PATH: before})[PATH]
    except PatchError:
        return None


@given(edits())
def test_an_undamaged_diff_fits_as_it_is(edit: tuple[str, str]) -> None:
    before, after = edit
    assert made(diff_of(before, after), {PATH: before}) == {PATH: after}
    assert fitted(diff_of(before, after), {PATH: before}).repairs == ()


def wordy(text: str) -> str:
    """Return the text with a number in every line that is not blank, so that each occurs once."""
    lines = [f"{line} {at}" if line.strip() else line for at, line in enumerate(text.split("\n"))]
    return "\n".join(lines)


@settings(max_examples=50)
@given(edits(), st.data())
def test_damage_to_headers_and_around_them_is_undone(edit: tuple[str, str], data: st.DataObject) -> None:
    before, after = (wordy(text.replace("\r", "")) for text in edit)
    if before == after:
        return
    diff = diff_of(before, after)
    numbers = data.draw(st.sampled_from(["@@ @@", "@@ ... @@", "@@ -7,3 +9,1 @@", "@@"]))
    damaged = re.sub(r"(?m)^@@ .*$", numbers, diff)
    found = outcome_of(f"Here:\n```diff\n{damaged}```\n", before)
    assert found in {None, after}


@settings(max_examples=50)
@given(edits(60), st.data())
def test_a_lost_or_mistyped_line_never_misplaces_a_hunk(edit: tuple[str, str], data: st.DataObject) -> None:
    before, after = (text.replace("\r", "") for text in edit)
    if before == after:
        return
    lines = diff_of(before, after).split("\n")
    context = [at for at, line in enumerate(lines) if line.startswith(" ")]
    if not context:
        return
    at = data.draw(st.sampled_from(context))
    damage = data.draw(st.sampled_from(["lost", "mistyped", "dots"]))
    lines[at : at + 1] = {"lost": [], "mistyped": [f"{lines[at]}x"], "dots": [" ..."]}[damage]
    damaged = "\n".join(lines)
    allowed = {None, after}
    try:
        patch = parse_patch(damaged)
        allowed |= in_style({to_the_letter(patch, before)}, patch, before)
    except PatchError:
        pass
    assert outcome_of(damaged, before) in allowed


FAR = "".join(f"def step_{n}(a, b):\n    total = a + b\n    return total\n\n" for n in range(900))


@pytest.mark.parametrize("header", ["@@ @@", "@@ -1,3 +1,3 @@"])
def test_a_hunk_that_is_nearly_right_names_the_place_that_is_most_like_it(header: str) -> None:
    # Every old line is slightly wrong, and the correct ones occur hundreds of times.
    hunk = " def step_880(a, c):\n-    totl = a + b\n+    total = a - b\n     return total\n"
    text = f"--- a/a.py\n+++ b/a.py\n{header}\n{hunk}"
    loose = read_diff(text, PatchBounds(), ["a.py"])
    with pytest.raises(
        PatchError, match=r"nearest is line 3521, where line 3521 differs: .*found 'def step_880\(a, b\)"
    ):
        fit_diff(loose, {"a.py": FileContent(FAR.encode())}, ["a.py"])


def test_a_file_that_is_not_there_is_answered_with_those_that_may_be_meant() -> None:
    paths = [".editorconfig", "README.md", "src/shop/basket.py", "src/shop/cart.py", "web/basket.ts"]
    loose = read_diff("--- a/lib/baskets.py\n+++ b/lib/baskets.py\n@@ -1 +1 @@\n-a\n+b\n", PatchBounds(), paths)
    with pytest.raises(PatchError, match=r"does not exist; near it are: src/shop/basket.py, web/basket.ts$"):
        fit_diff(loose, dict.fromkeys(loose.paths), paths)
