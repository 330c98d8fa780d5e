"""Application of diffs: in the right place, or refused."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import (
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
    content_hash,
    patch_hash,
)
from tests.core.patch.diffs import applied, content, create, fitted, modify, outcome, small

MARKER = "\\ No newline at end of file\n"
RENAME = "diff --git a/old b/new\nrename from old\nrename to new\n"
DELETE = "--- a/x.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"


PLACED = {
    "at the header's line": ("@@ -2 +2 @@\n-a\n+b\n", "a\na\na\n", "a\nb\na\n"),
    "number 0": ("@@ -0,1 +0,1 @@\n-a\n+b\n", "a\n", "b\n"),
    "equal places told apart by numbers": (
        "@@ -1 +1 @@\n-a\n+1\n@@ -3 +3 @@\n-a\n+3\n",
        "a\na\na\n",
        "1\na\n3\n",
    ),
    "everything removed": ("@@ -1,2 +0,0 @@\n-a\n-b\n", "a\nb\n", ""),
    "into an empty file": ("@@ -0,0 +1 @@\n+a\n", "", "a\n"),
    "missing newline removed": (f"@@ -1 +1 @@\n-a\n{MARKER}+a\n", "a", "a\n"),
    "newline removed": (f"@@ -1 +1 @@\n-a\n+a\n{MARKER}", "a\n", "a"),
    "missing newline kept": (f"@@ -1,2 +1,2 @@\n-a\n+b\n c\n{MARKER}", "a\nc", "b\nc"),
    "other line separators": ("@@ -2 +2 @@\n-b\u2028\n+\x0c\n", "a\x0b\nb\u2028\n", "a\x0b\n\x0c\n"),
    "CRLF as in the file": ("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nb\r\n", "a\r\nc\r\n"),
    "to the byte in a mixed file": ("@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n", "a\nb\n", "a\r\nb\n"),
    "CRLF taken away": ("@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", "a\r\nb\r\n", "a\nb\r\n"),
}


@pytest.mark.parametrize(("body", "before", "after"), PLACED.values(), ids=PLACED.keys())
def test_placed(body: str, before: str, after: str) -> None:
    assert applied(modify(body), before) == after
    assert fitted(modify(body), before) == after


MOVED = {
    "elsewhere, in one place": ("@@ -9,2 +9,2 @@\n x\n-a\n+b\n", "a\nx\na\n", "a\nx\nb\n"),
    "huge number": ("@@ -999999999 +1 @@\n-a\n+b\n", "a\n", "b\n"),
    "second place behind the first hunk": (
        "@@ -1,2 +1,2 @@\n-1\n+one\n a\n@@ -9,2 +9,2 @@\n a\n-2\n+two\n",
        "1\na\na\n2\n",
        "one\na\na\ntwo\n",
    ),
    "marker forgotten, last is context": ("@@ -1,2 +1,2 @@\n-a\n+b\n c\n", "a\nc", "b\nc"),
    "marker forgotten, lines behind the last": ("@@ -1,2 +1,3 @@\n a\n c\n+d\n", "a\nc", "a\nc\nd\n"),
    "LF to a CRLF file": ("@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n", "a\r\nb\r\n", "a\r\nc\r\nd\r\n"),
    "LF to a CRLF file, elsewhere": ("@@ -7,2 +7,2 @@\n a\n-b\n+c\n", "x\r\na\r\nb\r\n", "x\r\na\r\nc\r\n"),
    "open end kept in a CRLF file": ("@@ -1,2 +1,3 @@\n a\n+c\n b\n", "a\r\nb", "a\r\nc\r\nb"),
    "open end closed in a CRLF file": ("@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\r\nb", "a\r\nb\r\nc\r\n"),
    "mixed, before a CRLF line": ("@@ -2 +2,2 @@\n+x\n b\n", "a\nb\r\n", "a\nx\r\nb\r\n"),
    "exact place before a forgiving one": ("@@ -9 +9 @@\n-a\r\n+b\n", "a\nx\na\r\n", "a\nx\nb\n"),
    "hunks out of order": ("@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n", "a\nb\nc\n", "A\nb\nC\n"),
}


@pytest.mark.parametrize(("body", "before", "after"), MOVED.values(), ids=MOVED.keys())
def test_only_a_fit_forgives_what_is_not_where_it_says(body: str, before: str, after: str) -> None:
    assert fitted(modify(body), before) == after
    with pytest.raises(PatchError, match=r"^x\.py: the hunk at line \d+ (does not apply there|overlaps)") as caught:
        applied(modify(body), before)
    assert str(caught.value).isprintable()


REFUSED = {
    "several places": ("@@ -7 +7 @@\n-a\n+b\n", "a\nx\na\n", "more than one place: lines 1, 3$"),
    "very many places": ("@@ -99 +99 @@\n-a\n+b\n", "a\n" * 9, "lines 1, 2, 3, 4, 5, …"),
    "overlapping places": ("@@ -99,2 +99,1 @@\n-a\n a\n", "a\n" * 3, "lines 1, 2$"),
    "not exact here, exact there": ("@@ -1 +1 @@\n-a\n+b\n", "a\r\nx\na\n", "could stand at line 3"),
    "mixed line ends": ("@@ -1,2 +1,3 @@\n a\n+x\n b\n", "a\nb\r\n", "how an added line is to end"),
    "nowhere": (
        "@@ -1,3 +1,3 @@\n import os\n-one\n+1\n two\n",
        "x\nimport os\nuno\ntwo\n",
        "hunk at line 1 stand nowhere; nearest is line 2, where line 3 differs: expected 'one', found 'uno'",
    ),
    "behind the end": ("@@ -1,2 +1 @@\n a\n-b\n", "a\n", "line 2 differs: expected 'b', found the end of the file"),
    "in an empty file": ("@@ -1 +1 @@\n-a\n+b\n", "", "expected 'a', found the end of the file"),
    "an invisible difference": ("@@ -1 +1 @@\n-a\u00a0b\n+c\n", "a b\n", r"expected 'a\\\\xa0b', found 'a b'"),
    "white space": ("@@ -1 +1 @@\n-\ta\n+c\n", "    a\n", "nowhere"),
    "CR in the diff alone": ("@@ -1 +1 @@\n-a\r\n+c\n", "a\n", "how an added line is to end"),
    "marker, but a newline in the file": (f"@@ -1 +1 @@\n-a\n{MARKER}+b\n", "a\n", "found a line feed"),
    "marker, but lines behind": (f"@@ -1 +1 @@\n-a\n{MARKER}+b\n", "a\nb\n", "nowhere"),
    "marker on an added line before the end": (f"@@ -1 +1 @@\n-a\n+b\n{MARKER}", "a\nc\n", "line that is not the last"),
    "overlapping hunks": ("@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n", "a\nb\nc\n", "overlap"),
    "no context": ("@@ -1,0 +2 @@\n+x\n", "a\n", "only adds lines does not say where"),
    "binary": ("@@ -1 +1 @@\n-a\n+b\n", "a\n\0", "x.py is binary"),
    "missing": ("@@ -1 +1 @@\n-a\n+b\n", None, "x.py does not exist"),
}


@pytest.mark.parametrize(("body", "before", "cause"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_both(body: str, before: str | None, cause: str) -> None:
    with pytest.raises(PatchError, match=cause) as caught:
        fitted(modify(body), before)
    assert str(caught.value).isprintable()
    assert str(caught.value).startswith("x.py")
    with pytest.raises(PatchError, match=r"^x\.py"):
        applied(modify(body), before)


def test_a_diff_that_changes_nothing_is_refused() -> None:
    with pytest.raises(PatchError, match=r"x\.py: the diff leaves it as it is"):
        applied(modify("@@ -1 +1 @@\n-a\n+a\n"), "a\n")


def test_no_context_is_advised_to_give_one_line() -> None:
    with pytest.raises(PatchError) as caught:
        applied(modify("@@ -1,0 +2 @@\n+x\n"), "a\n")
    assert caught.value.advice == "Give at least one line of context with it."


def test_bytes_that_are_not_text_stay_as_they_are() -> None:
    patch = parse_patch(modify("@@ -2 +2 @@\n-a\n+b\n"))
    (change,) = apply_patch(patch, {"x.py": FileContent(b"\xff\xfe\na\n\xc3")})
    assert change.after == FileContent(b"\xff\xfe\nb\n\xc3")


def test_a_lone_surrogate_never_matches_a_byte() -> None:
    lines = (HunkLine(LineKind.REMOVED, "\udcff"), HunkLine(LineKind.ADDED, "a"))
    patch = Patch((FilePatch(FileOperation.MODIFY, "x", "x", (Hunk("", 1, 1, lines),)),))
    with pytest.raises(PatchError, match="lone surrogate"):
        apply_patch(patch, {"x": FileContent(b"\xff\n")})


def test_created() -> None:
    patch = parse_patch(create("x"))
    assert apply_patch(patch, {"x": None}) == (FileChange("x", None, FileContent(b"a\n")),)
    executable = parse_patch("diff --git a/x b/x\nnew file mode 100755\n")
    assert apply_patch(executable, {"x": None}) == (FileChange("x", None, FileContent(b"", executable=True)),)


@pytest.mark.parametrize("diff", [create("x"), "diff --git a/old b/x\nrename from old\nrename to x\n"])
def test_what_exists_is_never_overwritten(diff: str) -> None:
    patch = parse_patch(diff)
    with pytest.raises(PatchError, match="x already exists"):
        apply_patch(patch, {"x": content(""), "old": content("a\n")})
    with pytest.raises(PatchError, match="x already exists"):
        apply_patch(patch, {"x": None, "old": content("a\n")}, existing=["x"])


@pytest.mark.parametrize(
    ("path", "existing", "cause"),
    [
        ("README", "readme", "README: readme exists, and differs from it only by case"),
        ("caf\u00e9", "cafe\u0301", "case or Unicode form"),
        ("SRC/b.py", "src/a.py", "SRC/b.py: src exists"),
        ("stra\u00dfe", "STRASSE", "case or Unicode form"),
        ("src", "src/a.py", "src cannot be a file: src/a.py lies in it"),
        ("src/a.py/b", "src/a.py", "src/a.py cannot be a file"),
    ],
)
def test_a_new_name_may_not_collide_with_one_that_exists(path: str, existing: str, cause: str) -> None:
    with pytest.raises(PatchError, match=cause):
        apply_patch(parse_patch(create(path)), {path: None}, existing=["other", existing])


def test_names_that_exist_side_by_side_hinder_nobody() -> None:
    existing = ["Docs/x", "docs/x", "README", "readme"]
    assert apply_patch(parse_patch(create("docs/new")), {"docs/new": None}, existing)
    assert apply_patch(parse_patch(small("readme")), {"readme": content("a\n")}, existing)


def test_a_file_may_become_a_folder() -> None:
    diff = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" + create("x/y")
    after = outcome(parse_patch(diff), {"x": content("a\n")})
    assert after == {"x": None, "x/y": content("a\n")}
    assert apply_patch(parse_patch(diff), {"x": content("a\n"), "x/y": None}, existing=["x"])


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", "a\r\nb\r\n"])
def test_deleted(text: str) -> None:
    assert fitted(DELETE, text) is None
    diff = render_changes([FileChange("x.py", content(text), None)])
    assert applied(diff, text) is None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a\nb\nc\n", "without all of its lines"),
        ("0\na\nb\n", "without all of its lines"),
        ("a\nc\n", "nowhere"),
        (None, "does not exist"),
    ],
)
def test_a_deletion_must_know_the_whole_file(text: str | None, cause: str) -> None:
    with pytest.raises(PatchError, match=cause):
        fitted(DELETE, text)
    with pytest.raises(PatchError):
        applied(DELETE, text)


def test_deleted_without_lines() -> None:
    patch = parse_patch("diff --git a/x b/x\ndeleted file mode 100644\n")
    assert apply_patch(patch, {"x": content("")}) == (FileChange("x", content(""), None),)
    with pytest.raises(PatchError, match="without all of its lines"):
        apply_patch(patch, {"x": content("a\n")})


def test_renamed() -> None:
    before = FileContent(b"\0\xff", executable=True)
    assert apply_patch(parse_patch(RENAME), {"old": before, "new": None}) == (
        FileChange("old", before, None),
        FileChange("new", None, before),
    )
    changed = parse_patch(f"{RENAME}--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n")
    assert outcome(changed, {"old": content("a\n")}) == {"old": None, "new": content("b\n")}
    with pytest.raises(PatchError, match="old does not exist"):
        outcome(changed, {})


def test_the_mode_is_changed_and_else_kept() -> None:
    plain, executable = FileContent(b"a\n"), FileContent(b"a\n", executable=True)
    patch = parse_patch("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n")
    assert apply_patch(patch, {"x": plain}) == (FileChange("x", plain, executable),)
    with pytest.raises(PatchError, match="leaves it as it is"):
        apply_patch(patch, {"x": executable})
    assert outcome(parse_patch(small("x")), {"x": executable}) == {"x": FileContent(b"b\n", executable=True)}


def test_all_files_or_none() -> None:
    with pytest.raises(PatchError, match=r"^y: "):
        outcome(parse_patch(small("x") + small("y")), {"x": content("a\n"), "y": content("z\n")})


def test_a_file_that_was_not_read_is_not_taken_for_absent() -> None:
    with pytest.raises(PatchError, match="x: its content was not read"):
        apply_patch(parse_patch(create("x")), {})


def test_repetition_costs_no_time() -> None:
    lines = "a\n" * 60_000
    body = "".join(f" {line}\n" for line in lines.split()[:20_000])
    with pytest.raises(PatchError, match="nowhere"):
        fitted(modify(f"@@ -7,20001 +7,20001 @@\n{body}-b\n+c\n"), lines)


def test_hashes() -> None:
    assert content_hash(None) == ""
    assert content_hash(FileContent(b"")).startswith("e3b0c442")
    assert content_hash(FileContent(b"", executable=True)) == content_hash(FileContent(b""))
    assert patch_hash("").startswith("e3b0c442")
    assert len(patch_hash("\udcff")) == 64
