"""Comparison with git: both make the same contents from correct diffs of their own and of the other."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings

from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.core.patch.diffs import content, edits, outcome

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CEILING_DIRECTORIES": "/",
    "LC_ALL": "C",
}
Files = dict[str, FileContent | None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("git")


def git(folder: Path, *words: str, text: str = "", codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env=ENVIRONMENT, input=text.encode(), capture_output=True, check=False, timeout=60
    )
    assert done.returncode in codes, done.stderr.decode()
    return done.stdout.decode()


def write(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, each in files.items():
        if each is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(each.data)
            (folder / path).chmod(0o755 if each.executable else 0o644)


def read(folder: Path, files: Files) -> Files:
    def one(path: Path) -> FileContent | None:
        return FileContent(path.read_bytes(), bool(path.stat().st_mode & 0o100)) if path.is_file() else None

    return {path: one(folder / path) for path in files}


def applied_by_git(folder: Path, diff: str, files: Files) -> Files:
    write(folder / "tree", files)
    git(folder / "tree", "apply", "--whitespace=nowarn", "-", text=diff)
    return read(folder / "tree", files)


@settings(max_examples=60)
@given(edit=edits())
def test_git_applies_our_diffs_as_we_do(folder: Path, edit: tuple[str, str]) -> None:
    before, after = ({"a b.py": content(text)} for text in edit)
    diff = render_changes([FileChange("a b.py", before["a b.py"], after["a b.py"])])
    assert applied_by_git(folder, diff, before) == outcome(parse_patch(diff), before) == after


@settings(max_examples=60)
@given(edit=edits())
def test_we_apply_the_diffs_that_git_makes(folder: Path, edit: tuple[str, str]) -> None:
    before, after = ({"x.py": content(text)} for text in edit)
    write(folder / "a", before)
    write(folder / "b", after)
    made = git(folder, "diff", "--no-index", "--no-renames", "--text", "a/x.py", "b/x.py", codes=(0, 1))
    diff = made.replace("a/a/x.py", "a/x.py").replace("b/b/x.py", "b/x.py")
    assert outcome(parse_patch(diff), before) == after


BEFORE: Files = {
    "kept.py": content("a\n"),
    "mode.sh": content("run\n"),
    "gone": content("x\ny", executable=True),
    "empty gone": content(""),
    "new": None,
    "sub/empty": None,
    "é": None,
    "old name": content("1\n2\n3\n4\n"),
    "sub/new name": None,
}
AFTER: Files = {
    "kept.py": content("a\n"),
    "mode.sh": content("run\nfast\n", executable=True),
    "gone": None,
    "empty gone": None,
    "new": content("n", executable=True),
    "sub/empty": content(""),
    "é": content("é\r\n"),
    "old name": None,
    "sub/new name": content("1\n2\n3\nfour\n"),
}


def test_files_that_come_and_go(folder: Path) -> None:
    diff = render_changes(FileChange(path, BEFORE[path], AFTER[path]) for path in BEFORE)
    assert applied_by_git(folder, diff, BEFORE) == AFTER
    assert outcome(parse_patch(diff), BEFORE) == AFTER


@pytest.mark.parametrize(
    "option", ["--find-renames=50%", "--no-prefix", "--unified=0", "--function-context", "--patience"]
)
def test_a_real_repository_s_diff(folder: Path, option: str) -> None:
    """Quoted names, index lines, modes and renames, as git writes them."""
    tree = folder / "tree"
    write(tree, BEFORE)
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    shutil.move(tree / ".git", folder / "kept.git")
    write(tree, AFTER)
    shutil.move(folder / "kept.git", tree / ".git")
    git(tree, "add", "--all")
    diff = git(tree, "diff", "--cached", option)
    if option == "--unified=0":
        # Without context a line that only comes says nowhere where: git trusts the number, we do not.
        diff = diff.replace("@@ -1,0 +2 @@ run\n+fast\n", "@@ -1 +1,2 @@\n run\n+fast\n")
    assert outcome(parse_patch(diff), BEFORE) == AFTER
