"""Our reading of `.gitignore` files is git's, and takes no longer for a hostile one."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_workbench.adapters.git.ignore_rules import IgnoreRules
from tests.adapters.git.user import User

NAMES = ("a", "b", "ab", "a.log", "b.c", "build", "x y", "[z]", "ü", "a\\b", "-", ".h", "abab", "d", "#a", "!b")
ATOMS = (
    *("a", "b", "*", "?", "**", "/", "[ab]", "[!a]", "[^b-d]", "[[:alpha:]]", "\\*", "\\ ", " ", "!", "#", ".log"),
    *("build", "[", "]", "\\", "ab", "*.", "[a-]", "[]a]", "[a/b]", "-", "ü", "\\[", "***", "\\#", "\\!", "x y"),
)
lines = st.builds(
    lambda before, atoms, after: before + "".join(atoms) + after,
    st.sampled_from(["", "", "!", "/", "**/", "!/"]),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5),
    st.sampled_from(["", "", "/", "/**", "/*", "\r", " "]),
)
rule_files = st.lists(lines, min_size=1, max_size=6).map("\n".join)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
# Git takes a part of such a pattern for a whole one, as it compares what stands before the stars on its own.
QUIRK = re.compile(r"[^/*]\*\*")


def shown_by_us(root: Path, rules: IgnoreRules) -> set[str]:
    """Return the files below `root` that the rules do not ignore."""
    found: set[str] = set()
    for folder, folders, names in os.walk(root):
        above = Path(folder).relative_to(root).as_posix()
        inside = "" if above == "." else f"{above}/"
        folders[:] = [name for name in folders if name != ".git" and not rules.ignores(inside + name, is_folder=True)]
        found.update(inside + name for name in names if not rules.ignores(inside + name, is_folder=False))
    return found


def shown_by_git(root: Path) -> set[str]:
    out = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout
    return {os.fsdecode(name) for name in out.split(b"\0")[:-1]}


@given(st.sets(paths, min_size=1, max_size=12), st.dictionaries(paths | st.just(""), rule_files, max_size=3))
@example({"b/a", "b/c/d"}, {"b": "**\\/**"})
@example({"a", "b/a", "b/c/a"}, {"": "**\\/a"})
@example({"a", "b/a", "b/c/a"}, {"": "/b/**\\/a"})
def test_the_files_that_are_ignored_are_those_of_git(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], rules: dict[str, str]
) -> None:
    root = tmp_path_factory.mktemp("rules")
    User(root).git("init", "--quiet", "--template=")
    written = {}
    for path in files:
        place = root / path
        if not place.exists() and not any((root / above).is_file() for above in Path(path).parents):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
    for folder, text in rules.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_bytes(text.encode())
            written[f"{folder}/.gitignore".removeprefix("/")] = text.encode()
    ours, gits = shown_by_us(root, IgnoreRules(written)), shown_by_git(root)
    assert gits <= ours
    if not any(QUIRK.search(text) for text in rules.values()):
        assert ours == gits


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ("\n".join(["*a" * 100 + "b"] * 50), "a" * 255),
        ("**/a/" * 200 + "b", "a/" * 900 + "c"),
        ("[" * 5_000, "["),
        ("\\" * 5_001, "\\"),
        ("[[:" * 1_000 + "]", "x"),
        ("*?" * 2_000, "x" * 255),
    ],
)
def test_a_hostile_pattern_takes_no_time(rules: str, path: str) -> None:
    assert not IgnoreRules({".gitignore": rules.encode()}).ignores(path, is_folder=False)


def test_bytes_that_are_no_text_are_compared_as_they_are() -> None:
    rules = IgnoreRules({".gitignore": b"\xef\xbb\xbfx\xff*\n\0y\n"})
    assert rules.ignores(os.fsdecode(b"x\xff1"), is_folder=False)
    assert not rules.ignores("y", is_folder=False)
