"""Diffs that the strict reader refuses, each with an error that names the cause."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_sections import Mode, scan_sections
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import PatchBounds
from tests.core.patch.diffs import create, modify, small

GIT = "diff --git a/x b/x\n"
RENAME = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"

PATHS = [
    ("/etc/passwd", "absolute"),
    ("~/x", "absolute"),
    ("C:/x", "absolute"),
    ("../x", "component .."),
    ("src/../../x", "component .."),
    ("src/./x", "component ."),
    ("src//x", "empty component"),
    ("src/", "empty component"),
    ("", "empty path"),
    ("src\\x", "backslash"),
    ("..\\x", "backslash"),
    (".git/config", "git's own folder"),
    ("sub/.git/hooks/pre-commit", "git's own folder"),
    (".GIT/config", "git's own folder"),
    (".Git", "git's own folder"),
    (".git./config", "git's own folder"),
    (".git /config", "git's own folder"),
    (".git . ./config", "git's own folder"),
    (".git::$INDEX_ALLOCATION/config", "git's own folder"),
    ("git~1/config", "git's own folder"),
    ("GIT~1/config", "git's own folder"),
    ("GIT~2./config", "git's own folder"),
    (".g\u200cit/config", "git's own folder"),
    ("\ufeff.git/config", "git's own folder"),
    (".gi\u206ft/config", "git's own folder"),
    ("a\x1b[31mb", "control character"),
    ("a\rb", "control character"),
    ("a\x7fb", "control character"),
    ("a\x9bb", "control character"),
    ("a\u2028b", "control character"),
    ("cod\u202egnp.py", "control character"),
    ("x" * 256, "longer than 255 bytes"),
    ("x/" * 2500 + "x", "longer than 4096 bytes"),
]


@pytest.mark.parametrize(("path", "cause"), PATHS, ids=[repr(path)[:40] for path, _ in PATHS])
@pytest.mark.parametrize("form", ["modify", "create", "delete", "rename from", "rename to", "mode", "quoted"])
def test_a_path_that_may_not_be_named_is_refused_in_every_form(path: str, cause: str, form: str) -> None:
    quoted = "".join(f"\\{byte:03o}" for byte in path.encode())
    diff = {
        "modify": small(path),
        "create": create(path),
        "delete": f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        "rename from": RENAME.format(path, "new"),
        "rename to": RENAME.format("old", path),
        "mode": f"diff --git a/{path} b/{path}\nold mode 100644\nnew mode 100755\n",
        "quoted": f'--- "a/{quoted}"\n+++ "b/{quoted}"\n@@ -1 +1 @@\n-a\n+b\n',
    }[form]
    with pytest.raises(PatchError, match=cause) as caught:
        parse_patch(diff)
    assert str(caught.value).isprintable()
    assert caught.value.advice


REFUSED = {
    "empty": ("", "is empty"),
    "blank": ("\n\n", "is empty"),
    "prose": ("Here is the diff:\n" + small("x"), "line 1 of the diff is no part of a diff: Here is"),
    "fence": ("```diff\n" + small("x") + "```\n", "line 1 of the diff"),
    "fence behind": (small("x") + "```\n", "line 6 of the diff is no part"),
    "NUL": (modify("@@ -1 +1 @@\n-a\n+b\0\n"), "line 5 of the diff holds a NUL"),
    "NUL in a name": (small("x\0"), "NUL"),
    "lone surrogate": (modify("@@ -1 +1 @@\n-a\n+\udcff\n"), "lone surrogate"),
    "binary": (f"{GIT}index 111..222\nBinary files a/x and b/x differ\n".replace("111..222", "1111..2222"), "binary"),
    "git binary": (f"{GIT}GIT binary patch\nliteral 1\nIcmZQz00000\n", "binary"),
    "plain binary": ("Binary files a/x and b/x differ\n", "binary changes are not taken: Binary files a/x"),
    "copy": ("diff --git a/.git/config b/x\ncopy from .git/config\ncopy to x\n", "x: a diff may not copy .git/config"),
    "copy out": ("diff --git a/../k b/x\nsimilarity index 100%\ncopy from ../k\ncopy to x\n", "may not copy ../k"),
    "symlink": (f"{GIT}new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n", "120000 .a symbolic link"),
    "symlink by mode": (f"{GIT}old mode 100644\nnew mode 120000\n", "x: mode 120000"),
    "symlink changed": (f"{GIT}index 1234..5678 120000\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "120000"),
    "symlink deleted": (f"{GIT}deleted file mode 120000\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "120000"),
    "gitlink": (f"{GIT}new file mode 160000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+S 1\n", "160000 .a submodule"),
    "setuid": (f"{GIT}old mode 100644\nnew mode 104755\n", "104755"),
    "odd mode": (f"{GIT}new file mode 100664\n", "100664"),
    "letters for a mode": (f"{GIT}new file mode 1\u0661\n", "mode"),
    "odd index": (f"{GIT}index zz\nold mode 100644\nnew mode 100755\n", "cannot read the header index zz"),
    "collision by case": (small("src/A.py") + create("src/a.py"), "src/a.py and src/A.py: .* case"),
    "collision of folders": (create("Src/a.py") + create("src/b.py"), "case or Unicode form"),
    "collision by Unicode form": (create("\u00e9.py") + create("e\u0301.py"), "case or Unicode form"),
    "rename by case": (RENAME.format("a.py", "A.py"), "case or Unicode form"),
    "same file twice": (small("x") + small("x"), "x: the diff names it twice"),
    "deleted and made": (create("x") + f"{GIT}deleted file mode 100644\n", "x: the diff names it twice"),
    "rename onto another": (
        RENAME.format("a", "b") + "diff --git a/b b/b\n" + small("b"),
        "b: the diff names it twice",
    ),
    "swap": (RENAME.format("a", "b") + RENAME.format("b", "a"), "names it twice"),
    "rename to itself": (RENAME.format("a", "a"), "renamed to itself"),
    "half a rename": ("diff --git a/x b/y\nrename from x\n", "rename from and rename to must both be given"),
    "file in a file": (create("x") + create("x/y"), "x cannot be a file: x/y lies in it"),
    "two names": ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "name two files: x and y"),
    "other name in the git header": ("diff --git a/x b/x\n" + small("y"), "names another file"),
    "two names in the git header": ("diff --git a/x b/y\nold mode 100644\nnew mode 100755\n", "does not name one file"),
    "other name in the rename": (
        "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n",
        "other files than rename",
    ),
    "new and deleted": (f"{GIT}new file mode 100644\ndeleted file mode 100644\n", "contradict"),
    "from nothing to nothing": ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n", "contradict"),
    "new file with an old name": (f"{GIT}new file mode 100644\n{small('x')}", "contradict each other about /dev/null"),
    "header twice": (f"{GIT}new mode 100755\nnew mode 100644\n", "stands twice"),
    "no hunks": ("--- a/x\n+++ b/x\n", "x: the diff changes nothing in it"),
    "git header alone": (GIT, "changes nothing"),
    "context alone": (modify("@@ -1,2 +1,2 @@\n a\n b\n"), "x.py: the hunk at line 1 changes nothing"),
    "hunk without file": ("@@ -1 +1 @@\n-a\n+b\n", "without the lines --- and"),
    "hunk without file names": (f"{GIT}@@ -1 +1 @@\n-a\n+b\n", "without the lines --- and"),
    "header without numbers": (modify("@@ ... @@\n-a\n+b\n"), "line 3 is no hunk header: @@ ... @@"),
    "foreign digits": (modify("@@ -\u0661 +1 @@\n-a\n+b\n"), "is no hunk header"),
    "no body": (modify("@@ -1 +1 @@\n"), "does not count its lines"),
    "no body, no counts": (modify("@@ -1,0 +1,0 @@\n"), "does not count its lines"),
    "marker alone": (modify("@@ -1,0 +1,0 @@\n\\ No newline at end of file\n"), "has no lines|does not count"),
    "marker twice": (
        modify("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n\\ No newline at end of file\n"),
        "does not count|unexpected",
    ),
    "marker in the middle": (
        modify("@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n"),
        "before the last line",
    ),
    "combined diff": ("diff --cc x\nindex 1,2..3\n", "line 1 of the diff is no part"),
    "new file with context": ("--- /dev/null\n+++ b/x\n@@ -1 +1,2 @@\n a\n+b\n", "diff of a new file every line"),
    "deleted file with context": ("--- a/x\n+++ /dev/null\n@@ -1,2 +1 @@\n a\n-b\n", "diff of a deleted file every"),
    "new file in two hunks": (create("x") + "@@ -0,0 +2 @@\n+b\n", "by one hunk, not by 2"),
    "name that is not UTF-8": ('--- "a/\\377"\n+++ "b/\\377"\n@@ -1 +1 @@\n-a\n+b\n', "not UTF-8"),
}


HEADERS = {
    "old mode": "100644",
    "new mode": "100755",
    "new file mode": "100644",
    "deleted file mode": "100644",
    "rename from": "x",
    "rename to": "x",
    "copy from": "x",
    "copy to": "x",
    "similarity index": "90%",
    "dissimilarity index": "90%",
    "index": "1234..5678",
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("mode", [Mode.STRICT, Mode.LENIENT])
@pytest.mark.parametrize("between", ["", "similarity index 100%"])
def test_a_header_that_stands_twice_is_refused_whatever_it_says(header: str, mode: Mode, between: str) -> None:
    line = f"{header} {HEADERS[header]}"
    lines = [GIT.strip(), line, *([between] if between and between != line else []), f"{header} other"]
    with pytest.raises(PatchError, match=f"x b/x: the header {header} stands twice" if between != line else "twice"):
        scan_sections(lines, mode)


def test_a_rename_that_names_two_old_files_is_none() -> None:
    for first, second in (("x", "x"), ("x", "z"), ("z", "x")):
        with pytest.raises(PatchError, match="rename from"):
            parse_patch(f"diff --git a/x b/y\nrename from {first}\nrename from {second}\nrename to y\n")


@pytest.mark.parametrize(("diff", "cause"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(diff: str, cause: str) -> None:
    with pytest.raises(PatchError, match=cause) as caught:
        parse_patch(diff)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("@@ -1,2 +1,2 @@", " a\n-b\n+c\n d\n"),
        ("@@ -7,9 +7,9 @@", " a\n-b\n+c\n d\n"),
        ("@@ -1 +1 @@", " a\n-b\n+c\n\n d\n"),
        ("@@ -1,3 +1,9 @@", " a\n-b\n d\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"),
        ("@@ -1,1 +1,1 @@ def f():", " a\n+c\n\\ No newline at end of file\n"),
    ],
)
def test_a_header_that_does_not_count_its_lines_is_refused(header: str, body: str) -> None:
    with pytest.raises(PatchError, match=r"x\.py \(line 1 of the diff\): the hunk @@ .* does not count its lines"):
        parse_patch(modify(f"{header}\n{body}"))


def test_the_limits_hold() -> None:
    diff = small("x") + small("y")
    parse_patch(diff, PatchBounds(max_bytes=len(diff), max_files=2))
    with pytest.raises(PatchError, match="changes 2 files; the limit is 1"):
        parse_patch(diff, PatchBounds(max_files=1))
    with pytest.raises(PatchError, match=f"has {len(diff)} bytes; the limit is 10"):
        parse_patch(diff, PatchBounds(max_bytes=10))
    wide = modify("@@ -1 +1 @@\n-a\n+é\n")
    with pytest.raises(PatchError, match="bytes"):
        parse_patch(wide, PatchBounds(max_bytes=len(wide)))


@pytest.mark.parametrize(
    ("path", "write", "protected", "cause"),
    [
        ("src/a.py", ("tests/**",), (), "src/a.py is outside"),
        ("src/a.py", (), (), "outside"),
        ("memory/notes.md", ("**",), ("memory/**",), "memory/notes.md is protected:"),
        ("Memory/notes.md", ("**",), ("memory/**",), "is protected"),
        (".AGENT.yml", ("**",), (".agent.yml",), "is protected"),
        (".agent\u200d.yml", ("**",), (".agent.yml",), "is protected"),
        ("caf\u00e9/x", ("**",), ("cafe\u0301/**",), "is protected"),
        ("Tests/x.py", ("tests/**",), (), "outside"),
    ],
)
def test_paths_outside_the_scope_are_refused(
    path: str, write: tuple[str, ...], protected: tuple[str, ...], cause: str
) -> None:
    bounds = PatchBounds(write_globs=write, protected_globs=protected)
    for diff in (small(path), create(path)):
        with pytest.raises(PatchError, match=cause):
            parse_patch(diff, bounds)


@pytest.mark.parametrize("names", [("src/a", "memory/a"), ("memory/a", "src/a")])
def test_a_rename_must_stay_in_the_scope_with_both_names(names: tuple[str, str]) -> None:
    bounds = PatchBounds(protected_globs=("memory/**",))
    with pytest.raises(PatchError, match="memory/a is protected"):
        parse_patch(RENAME.format(*names), bounds)
