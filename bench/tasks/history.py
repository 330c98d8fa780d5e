"""Commits with a test from the history of a library: find the place, and make the commit's own tests pass."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from bench.tasks.cases import IGNORED, Clone, TaskCase

NEWEST = 400
MOST_FILES = 3
_TEST_FOLDERS = {"test", "tests", "testing", "spec", "__tests__"}
_TEST_NAME = re.compile(r"(test_.*|.*_test|.*[.-](test|spec))\.(py|js|mjs|cjs)|conftest\.py")
_SOURCE = (".py", ".js", ".mjs", ".cjs")
_TRAILER = re.compile(r"^[A-Z][A-Za-z-]+(-by|-Id|-URL|-Url): .*$", re.MULTILINE)


class ArchivedFiles(Mapping[str, bytes]):
    """The files of a commit, with some replaced. They are read when the first is asked for."""

    def __init__(self, clone: Clone, commit: str, replaced_from: str, paths: tuple[str, ...]) -> None:
        self._clone, self._commit, self._newer, self._paths = clone, commit, replaced_from, paths

    @cached_property
    def _files(self) -> dict[str, bytes]:
        newer = self._clone.files(*self._paths, commit=self._newer)
        return {".gitignore": IGNORED, **self._clone.files(commit=self._commit), **newer}

    def __getitem__(self, path: str) -> bytes:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def history_cases(clone: Clone) -> Iterator[TaskCase]:
    """Give the newest commits that change a test and up to three files of code; not all may be possible."""
    for commit in clone.git("log", "--no-merges", f"-n{NEWEST}", "--format=%H").decode().split():
        case = _case(clone, commit)
        if case is not None:
            yield case


def is_test(path: str) -> bool:
    """Return True for a test, and for what belongs to tests."""
    parts = PurePosixPath(path).parts
    return bool(_TEST_FOLDERS.intersection(parts[:-1])) or _TEST_NAME.fullmatch(parts[-1]) is not None


def _case(clone: Clone, commit: str) -> TaskCase | None:
    said = clone.git("diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "--no-renames", commit).decode()
    fields = said.split("\0")[:-1]
    changed = dict(zip(fields[1::2], fields[::2], strict=True))
    kept = [path for path in changed if changed[path] != "D"]
    runnable = tuple(path for path in kept if _TEST_NAME.fullmatch(PurePosixPath(path).name))
    code = tuple(path for path in changed if path.endswith(_SOURCE) and not is_test(path))
    if not runnable or not 0 < len(code) <= MOST_FILES or any(changed[path] == "D" for path in code):
        return None
    tests = tuple(filter(is_test, kept))
    message = _TRAILER.sub("", clone.git("log", "-1", "--format=%B", commit).decode(errors="replace")).strip()
    there = clone.git("ls-tree", "-r", "-z", "--name-only", f"{commit}^").decode().split("\0")[:-1]
    return TaskCase(
        id=commit[:12],
        words=message,
        files=ArchivedFiles(clone, f"{commit}^", commit, tests),
        edits=(),
        tests=tuple({*tests, *filter(is_test, there)}),
        check=_check(runnable, there),
        solution=clone.files(*code, commit=commit),
    )


def _check(tests: tuple[str, ...], there: list[str]) -> str:
    """Return the command line for these tests, in the language of the first."""
    same = [path for path in tests if PurePosixPath(path).suffix == PurePosixPath(tests[0]).suffix]
    named = shlex.join(path for path in same if PurePosixPath(path).name != "conftest.py")
    if not tests[0].endswith(".py"):
        return f"env NODE_PATH={{node_modules}} node --test {named}"
    folder = "src:." if any(path.startswith("src/") for path in there) else "."
    return f"env PYTHONPATH={folder} {{python}} -m pytest -q {named}"
