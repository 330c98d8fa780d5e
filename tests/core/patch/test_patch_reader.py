"""Forms of diffs that the strict reader accepts, and the patches that it returns."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.hunk_bodies import HeaderNumbers, WrittenHunk, read_lines
from agent_workbench.core.patch.patch_reader import compare_with_unidiff, parse_patch
from agent_workbench.core.patch.values import FileOperation, FilePatch, HunkLine, LineKind
from tests.core.patch.diffs import create, modify, small

HUNK = "@@ -1 +1 @@\n-a\n+b\n"
INDEX = "index 78981922613b2afb6025042ff6bd878ac1994e85..61780798228d17af2d34fce4cfbdf35556832472"


def the_file(diff: str) -> FilePatch:
    (file,) = parse_patch(diff).files
    return file


def the_lines(body: str) -> tuple[HunkLine, ...]:
    return the_file(modify(body)).hunks[0].lines


NAMES = {
    "prefixes": ("--- a/src/x y.py\n+++ b/src/x y.py\n", "src/x y.py"),
    "no prefixes": ("--- src/x.py\n+++ src/x.py\n", "src/x.py"),
    "folder a without prefixes": ("--- a/x.py\n+++ a/x.py\n", "a/x.py"),
    "times": ("--- a/x.py\t2024-01-01 00:00:00.0 +0000\n+++ b/x.py\t2024-01-02 00:00:00\n", "x.py"),
    "git's tab behind a name with spaces": ("--- a/x y\t\n+++ b/x y\t\n", "x y"),
    "git header": ("diff --git a/x y b/x y\nindex 1234..5678 100644\n--- a/x y\n+++ b/x y\n", "x y"),
    "git header without prefixes": ("diff --git x.py x.py\n--- x.py\n+++ x.py\n", "x.py"),
    "quoted": ('diff --git "a/\\303\\251\\"" "b/\\303\\251\\""\n--- "a/\\303\\251\\""\n+++ "b/\\303\\251\\""\n', 'é"'),
    "not ASCII": ("--- a/é/𝄞.py\n+++ b/é/𝄞.py\n", "é/𝄞.py"),
    "like a header": ("--- a/--- x\n+++ b/--- x\n", "--- x"),
    "nearly git": ("--- a/.gitignore/git~x/.gitx\n+++ b/.gitignore/git~x/.gitx\n", ".gitignore/git~x/.gitx"),
    "dots": ("--- a/..x/...\n+++ b/..x/...\n", "..x/..."),
}


@pytest.mark.parametrize(("header", "path"), NAMES.values(), ids=NAMES.keys())
def test_names(header: str, path: str) -> None:
    file = the_file(header + HUNK)
    assert (file.operation, file.old_path, file.path, file.mode) == (FileOperation.MODIFY, path, path, None)


OPERATIONS = {
    "plain new file": ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", FileOperation.CREATE, "x", None),
    "new file, no prefix": ("--- /dev/null\n+++ src/x\n@@ -0,0 +1 @@\n+a\n", FileOperation.CREATE, "src/x", None),
    "git's new file": (
        "diff --git a/x b/x\nnew file mode 100755\nindex 0000000..7898192\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
        FileOperation.CREATE,
        "x",
        0o100755,
    ),
    "git's new file in folder b, no prefix": (
        "diff --git b/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
        FileOperation.CREATE,
        "b/x",
        0o100644,
    ),
    "empty new file": (
        "diff --git a/b c b/b c\nnew file mode 100644\nindex 0000000..e69de29\n",
        FileOperation.CREATE,
        "b c",
        0o100644,
    ),
    "plain deletion": ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", FileOperation.DELETE, "x", None),
    "git's deletion": (
        "diff --git a/x b/x\ndeleted file mode 100644\nindex 7898192..0000000\n--- a/x\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-a\n",
        FileOperation.DELETE,
        "x",
        0o100644,
    ),
    "mode": (f"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n{INDEX}\n", FileOperation.MODIFY, "x", 0o100755),
    "mode without prefixes": (
        "diff --git d/x d/x\nold mode 100755\nnew mode 100644\n",
        FileOperation.MODIFY,
        "d/x",
        0o100644,
    ),
    "mode of a quoted name": (
        'diff --git "a/\\303\\251" "b/\\303\\251"\nold mode 100755\nnew mode 100644\n',
        FileOperation.MODIFY,
        "é",
        0o100644,
    ),
}


@pytest.mark.parametrize(("diff", "operation", "path", "mode"), OPERATIONS.values(), ids=OPERATIONS.keys())
def test_operations(diff: str, operation: FileOperation, path: str, mode: int | None) -> None:
    file = the_file(diff)
    assert (file.operation, file.old_path, file.path, file.mode) == (operation, path, path, mode)


@pytest.mark.parametrize("names", ["--- a/a b\n+++ b/é\n" + HUNK, '--- "a/a b"\n+++ "b/\\303\\251"\n' + HUNK, ""])
@pytest.mark.parametrize("header", ["diff --git a/a b b/é", 'diff --git a/a b "b/\\303\\251"', "diff --git a b é"])
def test_a_rename_with_and_without_hunks(header: str, names: str) -> None:
    file = the_file(f"{header}\nsimilarity index 90%\nrename from a b\nrename to é\n{names}")
    assert (file.operation, file.old_path, file.path, len(file.hunks)) == (
        FileOperation.RENAME,
        "a b",
        "é",
        bool(names),
    )


def test_several_files_one_behind_the_other() -> None:
    mode = "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"
    assert parse_patch(f"diff --git a/x b/x\n{small('x')}{mode}\n{create('y')}\n\n").paths == ("x", "m", "y")
    with pytest.raises(PatchError, match="names another file"):
        parse_patch(mode + create("y"))  # without a `diff --git` of its own the second belongs to the first


def test_body_lines_that_look_like_headers_survive() -> None:
    lines = the_lines("@@ -1,2 +1,3 @@\n--- a/y\n+++ b/y\n+@@ -1 +1 @@\n+diff --git a/z b/z\n-\\ No newline\n")
    assert [(line.kind.name, line.text) for line in lines] == [
        ("REMOVED", "-- a/y"),
        ("ADDED", "++ b/y"),
        ("ADDED", "@@ -1 +1 @@"),
        ("ADDED", "diff --git a/z b/z"),
        ("REMOVED", "\\ No newline"),
    ]


@pytest.mark.parametrize("other", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r"])
def test_lines_end_at_line_feeds_alone(other: str) -> None:
    lines = the_lines(f"@@ -1,2 +1,2 @@ f{other}g\n c{other}d\n-a{other}b\n+a{other}+{other}\n")
    assert [line.text for line in lines] == [f"c{other}d", f"a{other}b", f"a{other}+{other}"]


def test_carriage_returns_belong_to_the_lines() -> None:
    lines = the_lines("@@ -1,3 +1,3 @@ f\r\n a\r\n\r\n-b\r\n+b\n")
    assert [line.text for line in lines] == ["a\r", "\r", "b\r", "b"]


def test_a_diff_that_was_converted_to_crlf_as_a_whole_is_converted_back() -> None:
    assert parse_patch(small("x").replace("\n", "\r\n")) == parse_patch(small("x"))


def test_an_empty_line_is_empty_context_and_blank_lines_between_files_are_nothing() -> None:
    file, other = parse_patch(modify("@@ -1,3 +1,3 @@\n-a\n+b\n\n \n\n\n") + small("y")).files
    assert [line.text for line in file.hunks[0].old] == ["a", "", ""]
    assert other.path == "y"


@pytest.mark.parametrize("marker", ["\\ No newline at end of file", "\\ Kein Zeilenumbruch am Dateiende."])
def test_the_marker_of_a_missing_newline(marker: str) -> None:
    lines = the_lines(f"@@ -1 +1 @@\n-a\n{marker}\n+b\n{marker}\n")
    assert lines == (HunkLine(LineKind.REMOVED, "a", newline=False), HunkLine(LineKind.ADDED, "b", newline=False))
    kept = the_lines(f"@@ -1,2 +1 @@\n-a\n b\n{marker}")
    assert [line.newline for line in kept] == [True, False]


def test_the_last_line_feed_of_the_diff_may_be_missing() -> None:
    assert parse_patch(small("x")[:-1]) == parse_patch(small("x"))


def test_what_stands_behind_the_second_at_signs_is_kept() -> None:
    assert the_file(modify("@@ -3 +3 @@ class A:  # @@\n-a\n+b\n")).hunks[0].section == "class A:  # @@"


def test_an_id_is_of_path_and_lines_and_not_of_numbers() -> None:
    body = "@@ -{0} +{0} @@\n-a\n+b\n"
    once = the_file(modify(body.format(1))).hunks[0].id
    assert once == the_file(modify(body.format(9))).hunks[0].id
    assert once != the_file(modify(body.format(1), "y.py")).hunks[0].id
    assert once != the_file(modify(body.format(1) + "\\ No newline at end of file\n")).hunks[0].id
    assert len(once) == 64


def test_equal_hunks_of_a_file_have_ids_of_their_own() -> None:
    body = "@@ -{0} +{0} @@\n-a\n+b\n"
    ids = [hunk.id for hunk in the_file(modify("".join(map(body.format, (1, 5, 9))))).hunks]
    assert len(set(ids)) == 3
    assert ids[0] == the_file(modify(body.format(5))).hunks[0].id


@given(st.text(st.sampled_from('-+ @\\\n\rab/0,19"\tdiff --git\0\u2028'), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for diff in (text, modify(text), f"diff --git a/x b/x\n{text}", modify(f"@@ -1,2 +1,2 @@\n{text}")):
        with suppress(PatchError):
            assert parse_patch(diff).files


def test_unidiff_must_read_the_same_lines() -> None:
    body = ("-a", "+b", "\\ No newline at end of file")
    numbers = HeaderNumbers(1, 1, 1, 1)
    compare_with_unidiff("x.py", (WrittenHunk(numbers, "", body, read_lines(body)),))
    with pytest.raises(PatchError, match=r"x\.py: the hunk at line 1 can be read in two ways"):
        compare_with_unidiff("x.py", (WrittenHunk(numbers, "", body, read_lines(body[:2])),))
    with pytest.raises(PatchError, match=r"^x\.py: "):
        compare_with_unidiff("x.py", (WrittenHunk(HeaderNumbers(1, 5, 1, 1), "", body, read_lines(body)),))
