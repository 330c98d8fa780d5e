"""Diffs that the grammar for some files admits, according to llama.cpp."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules
from agent_workbench.core.patch.hunk_rules import EditableFile, editable, text_lines
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.engine.runtime.tool_context import PROTECTED_GLOBS
from tests.adapters.llama_cpp.grammar_oracle import fits, grammar_oracle

MARKER = "\\ No newline at end of file\n"
BOUNDS = PatchBounds(protected_globs=PROTECTED_GLOBS)


def a_file(data: bytes, shown: Iterable[int] | None = None, path: str = "f.py") -> EditableFile:
    text = text_lines(FileContent(data))
    assert text is not None
    return editable(path, text, range(len(text)) if shown is None else list(shown))


def grammar(*files: EditableFile, existing: tuple[str, ...] = (), bounds: PatchBounds = BOUNDS) -> str:
    paths = (*(file.path for file in files), *existing)
    return "\n".join(["root ::= diff", *diff_rules(EditScope(files, paths, bounds)), ""])


def change(*hunks: str, path: str = "f.py") -> str:
    return f"--- a/{path}\n+++ b/{path}\n" + "".join(f"@@ -7,3 +9 @@\n{hunk}" for hunk in hunks)


async def check(folder: Path, wanted: str, right: list[str], wrong: list[str]) -> None:
    async with grammar_oracle(folder, [*right, *wrong]) as server:
        assert [each for each in right if not await fits(server, wanted, each)] == []
        assert [each for each in wrong if await fits(server, wanted, each)] == []


CASES: dict[str, tuple[bytes, list[int] | None, list[str], list[str]]] = {
    "old lines are those that were shown, in a row": (
        b"a\nb\nc\nd\ne\n",
        [0, 1, 3, 4],
        [" a\n-b\n", "-a\n-b\n", "+x\n a\n", " a\n+\n+y\n b\n", " d\n-e\n+E\n", "-e\n", " e\n+f\n", "-a\n+a\n"],
        [
            " a\n",
            "+x\n",
            " b\n-c\n",
            " b\n-d\n",
            " a\n-d\n",
            "-A\n",
            "-a \n",
            " a\n\n-b\n",
            "-c\n",
            "- a\n",
            " e\n-a\n",
        ],
    ),
    "a run that stands twice needs one more line": (
        b"x\ny\nz\nx\ny\nw\n",
        None,
        ["-x\n y\n z\n", "-x\n y\n-w\n", " z\n-x\n", "-y\n z\n", "+n\n x\n+m\n y\n w\n", "-w\n"],
        ["-x\n", "-x\n y\n", " y\n+n\n", "-x\n-y\n", "-y\n w\n z\n"],
    ),
    "what cannot be told apart is not offered": (b"x\ny\nx\ny\nq\n", [0, 1], [], ["-x\n", "-x\n y\n", "-x\n y\n x\n"]),
    "a last line without its end carries the marker": (
        b"a\nb",
        None,
        [
            f"-a\n b\n{MARKER}",
            f"-b\n{MARKER}",
            f"-b\n{MARKER}+c\n",
            f"-b\n{MARKER}+c\n{MARKER}",
            "-a\n",
            f"+x\n b\n{MARKER}",
        ],
        [f" a\n{MARKER}-b\n", "-b\n", "-a\n b\n", f" b\n{MARKER}+c\n", f"-a\n{MARKER}", f"+c\n{MARKER}-b\n{MARKER}"],
    ),
    "a last line may lose its end": (
        b"a\nb\n",
        None,
        [f"-b\n+c\n{MARKER}", " b\n+c\n"],
        [f"-b\n{MARKER}", f"-a\n+c\n{MARKER}", f" b\n+\n{MARKER}"],
    ),
    "an empty file gets lines": (b"", None, [], ["-a\n", " \n"]),
    "a file of one blank line": (b"\n", None, ["-\n", "-\n+a\n", " \n+a\n", "\n+a\n"], ["+a\n", "--\n"]),
    "the space of a blank line may be missing before a change": (
        b"a\n\nb\n",
        None,
        [" a\n\n-b\n", " a\n \n-b\n", "\n-b\n", "-a\n \n", "+x\n \n", "-b\n", "-\n"],
        ["-a\n\n", "-a\n\n b\n", "+x\n\n"],
    ),
    "a blank line that is put back is no change": (
        b"a\n\nb\n\nc\n",
        None,
        ["-\n+\n-b\n", "-\n+\n+x\n b\n", "-\n b\n", " a\n-\n+x\n", "-\n+x\n+\n b\n", " a\n-\n+\n+\n"],
        ["-\n+\n b\n", " a\n-\n+\n", " a\n-\n+\n b\n"],
    ),
    "line ends are the file's own matter": (
        b"a\r\nb\r\n",
        None,
        ["-a\n+c\n", " a\n-b\n"],
        ["-a\r\n+c\n", " a\r\n-b\n"],
    ),
    "tabs, form feeds, quotes and other scripts": (
        '\ta\t\n\f\n"q" \\n\nGröße 大😀\n\ufeffbom\n'.encode(),
        None,
        ["-\ta\t\n", "-\f\n+\f\n", '-"q" \\n\n', "-Größe 大😀\n+größer\n", "-\ufeffbom\n"],
        ["-\ta\n", "-    a\n", "-Größe\n", "-bom\n", "-a\x1b\n+b\x1b\n", "-\ta\t\n+\r\n"],
    ),
    "what no line of a diff can hold is not offered": (
        b"a\n" + b"x" * 5000 + b"\ngr\xfc\xdfe\nb\rc\nd\n",
        None,
        ["-a\n", "-d\n"],
        ["-" + "x" * 500 + "\n", "-b\rc\n", "-b\n", "-c\n"],
    ),
    "lines that read like headers": (
        b"-- a/f.py\n++ b/f.py\n@@ -1 +1 @@\n- x\n",
        None,
        ["--- a/f.py\n", " ++ b/f.py\n--- x\n".replace("--- x", "-@@ -1 +1 @@"), "-++ b/f.py\n+++x\n", "-- x\n+++\n"],
        ["--- a/f.py\n+++ b/f.py\n", "-- x\n+++ x\n"],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow(quick=2)
async def test_hunks(tmp_path: Path, case: str) -> None:
    data, shown, right, wrong = CASES[case]
    await check(
        tmp_path, grammar(a_file(data, shown)), [change(each) for each in right], [change(each) for each in wrong]
    )


async def test_hunks_stand_in_order_and_share_no_line(tmp_path: Path) -> None:
    right = [
        change("-a\n", "-c\n"),
        change("-a\n b\n", "-c\n"),
        change("-a\n", "+x\n b\n"),
        change("-a\n", "-b\n", "-c\n"),
    ]
    wrong = [change("-c\n", "-a\n"), change("-a\n b\n", "-b\n"), change("-a\n", "-a\n"), change()]
    await check(tmp_path, grammar(a_file(b"a\nb\nc\n")), right, wrong)


async def test_a_repeated_run_behind_the_last_hunk_is_found_by_what_is_left(tmp_path: Path) -> None:
    wanted = grammar(a_file(b"b\nc1\nm\nb\nc2\nn\nb\nc3\n"))
    right = [change("-m\n", "-b\n c3\n"), change("-m\n", " b\n-c2\n"), change("-b\n c1\n", "-b\n c2\n")]
    wrong = [change("-m\n", "-b\n c1\n"), change("-n\n", "-b\n c2\n"), change("-m\n", "-b\n")]
    await check(tmp_path, wanted, right, wrong)


async def test_many_lines_that_begin_alike(tmp_path: Path) -> None:
    lines = [f"    value_{number} = {number % 7}" for number in range(40)]
    lines[5::7] = [""] * len(lines[5::7])
    wanted = grammar(a_file("".join(f"{line}\n" for line in lines).encode()))
    right = [change(f"-{lines[at]}\n", f" {lines[at + 8]}\n+x\n") for at in (0, 7, 24, 30)]
    right += [change(f"-{lines[at]}\n", f"\n-{lines[13]}\n") for at in (0, 11)]
    wrong = [change(f"-{lines[at + 8]}\n", f" {lines[at]}\n+x\n") for at in (0, 24, 30)]
    wrong += [change(f"-{lines[13]}\n", f"\n-{lines[13]}\n"), change("-\n"), change("-    value_40 = 5\n")]
    await check(tmp_path, wanted, right, wrong)


async def test_each_file_is_named_once_in_any_order_while_they_are_few(tmp_path: Path) -> None:
    names = ("a.py", "b.py", "c.py")
    one = {name: change("-x\n", path=name) for name in names}
    wanted = grammar(*(a_file(b"x\ny\n", path=name) for name in names))
    right = [one["a.py"], one["c.py"] + one["a.py"], one["b.py"] + one["c.py"] + one["a.py"]]
    wrong = [one["a.py"] * 2, one["a.py"] + one["b.py"] + one["a.py"], change("-x\n", path="d.py"), ""]
    await check(tmp_path, wanted, right, wrong)


async def test_many_files_end_in_a_fixed_order(tmp_path: Path) -> None:
    names = [f"f{number:02}.py" for number in range(14)]
    one = [change("-x\n", path=name) for name in names]
    wanted = grammar(*(a_file(b"x\ny\n", path=name) for name in names), bounds=PatchBounds(write_globs=("f*",)))
    right = ["".join(one), one[13], one[9] + one[2], one[1] + one[5] + one[12]]
    wrong = ["".join(one[:6]) + one[2], one[3] * 2, "".join(one) + one[0]]
    await check(tmp_path, wanted, right, wrong)


async def test_files_are_removed_whole_or_not(tmp_path: Path) -> None:
    gone = "--- a/f.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n"
    right = [f"{gone}-a\n-b\n{MARKER}"]
    wrong = [f"{gone}-a\n", f"{gone}-a\n-b\n", f"{gone}-a\n b\n{MARKER}", gone]
    await check(tmp_path, grammar(a_file(b"a\nb")), right, wrong)
    await check(tmp_path, grammar(a_file(b"a\nb", [1])), [change(f"-b\n{MARKER}")], right)


async def test_an_empty_file_is_filled_at_its_only_place(tmp_path: Path) -> None:
    head = "--- a/f.py\n+++ b/f.py\n@@ -0,0 +1 @@\n"
    await check(tmp_path, grammar(a_file(b"")), [f"{head}+a\n+b\n", f"{head}+a\n{MARKER}"], [head, f"{head} \n+a\n"])


async def test_a_file_is_renamed_to_a_name_that_is_new(tmp_path: Path) -> None:
    head = "rename from f.py\nrename to "
    hunk = "@@ -1 +1 @@\n-x\n"
    g = change("-x\n", path="g.py")
    right = [f"{head}h.py\n", f"{head}h.py\n{hunk}", f"{head}sub/h.py\n{g}", f"{g}{head}h.py\n{hunk}"]
    wrong = [
        *(
            f"{head}f.py\n",
            f"{head}F.py\n",
            f"{head}g.py\n",
            f"{head}memory/x.py\n",
            f"{head}\n",
            f"{head}h.py\n{hunk}{hunk}",
        ),
        f"{head}h.py\n{change('-x' + chr(10))}",
        f"{head}h.py\n--- /dev/null\n+++ b/h.py\n",
        f"{head}h.py\nrename from g.py\nrename to h.py\n",
        "rename from no.py\nrename to h.py\n",
        change("-x\n").replace("+++ b/f.py", "+++ b/h.py"),
    ]
    files = (a_file(b"x\ny\n"), a_file(b"x\ny\n", path="g.py"))
    await check(tmp_path, grammar(*files, existing=("sub/z.py",)), right, wrong)


async def test_no_more_files_than_the_task_allows(tmp_path: Path) -> None:
    files = tuple(a_file(b"x\ny\n", path=name) for name in ("a.py", "b.py"))
    wanted = "\n".join(["root ::= diff", *diff_rules(EditScope(files, ("a.py", "b.py"), BOUNDS, 1)), ""])
    one = [change("-x\n", path=file.path) for file in files]
    await check(tmp_path, wanted, one, ["".join(one)])


def test_nothing_to_change_is_no_grammar() -> None:
    nowhere = PatchBounds(write_globs=("nowhere.txt",), protected_globs=("**",))
    assert diff_rules(EditScope((), ("a.py",), nowhere)) == ()
    assert diff_rules(EditScope((a_file(b"x\nx\n", [0]),), ("f.py",), PatchBounds(write_globs=("f.py",)))) == ()


def test_a_grammar_of_120_lines_in_a_large_repository_is_small() -> None:
    root = Path(__file__).parents[3]
    sources = sorted((root / "src").rglob("*.py"))
    large = [each for each in sources if each.read_bytes().count(b"\n") > 200][:6]
    paths = tuple(str(each.relative_to(root)) for each in sorted(root.glob("[!.]*/**/*.py")))
    assert len(paths) > 1_000
    for share in (1, 2, 6):
        files = []
        for each in large[:share]:
            lines = text_lines(FileContent(each.read_bytes()))
            assert lines is not None
            files.append(editable(str(each.relative_to(root)), lines, range(40, 40 + 120 // share)))
        rules = diff_rules(EditScope(tuple(files), paths, PatchBounds(protected_globs=PROTECTED_GLOBS)))
        # The rest of a request's grammar, up to 100 KB, is for the tools and the paths that they take.
        assert len("\n".join(rules).encode()) < 85_000
