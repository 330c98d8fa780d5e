"""Files that decide whether a task is done, who may change them, and old failures that do not count against it."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from configparser import Error as IniError
from configparser import RawConfigParser
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.patch.paths import fold_path, literal_glob, takes_place_of
from agent_workbench.core.patch.values import FileOperation, FilePatch, LineKind
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.path_kinds import is_test
from agent_workbench.core.task_words import asks_for_test, is_about_failures, keeps_tests, named_words, stated_goal

WHOLE_CONFIGS = frozenset(
    {
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "sitecustomize.py",
        "usercustomize.py",
        "noxfile.py",
        ".mocharc.json",
        ".mocharc.js",
        ".mocharc.cjs",
        ".mocharc.yml",
        ".mocharc.yaml",
        "nextest.toml",
    }
)
"""Names of files that change how tests run, wherever they are."""
CONFIG_STEMS = frozenset(
    {"jest.config", "jest.setup", "vitest.config", "vitest.setup", "karma.conf", "vitest.workspace"}
)
SHADOWS = frozenset({"pytest", "_pytest", "unittest", "pluggy", "doctest", "nose2"})
"""Modules of test runners; a new one of these names in the repository would be run instead."""
SECTIONS = {
    "pyproject.toml": (("tool", "pytest"), ("tool", "tox"), ("tool", "nox")),
    "tox.ini": (("pytest",), ("tox",), ("testenv",)),
    "setup.cfg": (("tool:pytest",), ("tox",), ("testenv",)),
    "package.json": (("scripts",), ("jest",), ("mocha",), ("vitest",), ("ava",), ("tap",)),
}
"""Files of which only these sections are about tests: the rest of them is no judge."""
_DOCTEST_FAILS = re.compile(r"^Failed example:$|\[doctest\]", re.MULTILINE)


# What a failure says is not there: Python, JavaScript, C, Go and Rust.
_MISSING = re.compile(
    r"(?:cannot import name|no module named|has no attribute|\bname|export named|unexpected keyword argument"
    r"|undefined reference to|implicit declaration of function|cannot find \w{1,40}) ['`\u2018\"](\w{1,200})"
    r"|\bundefined: (\w{1,200})|\b(\w{1,200}) is not (?:defined|a function)",
    re.IGNORECASE,
)


class Protection(StrEnum):
    """Protection of a judge: read-only, or open to a change that a person approves."""

    READ_ONLY = "read_only"
    PERSON = "person"


class Judges(Struct, frozen=True):
    """Judges of a run, as its journal tells them.

    `paths` are those that were found when the task started. `required` are the acceptance commands, `baseline` their
    results before any change (None: not known).
    """

    task: Task
    paths: tuple[str, ...]
    required: tuple[str, ...]
    baseline: tuple[CheckResult, ...] | None

    def protected(self, protection: Protection) -> tuple[str, ...]:
        """Return the judges that are protected in this way, in order. The files of failing tests are among them."""
        return tuple(path for path in self._all() if self.protection(path) is protection)

    def protection(self, path: str) -> Protection | None:
        """Return who may change `path`: None for a file that is no judge, or that the task may change."""
        return self.of_named(path) if any(takes_place_of(path, judge) for judge in self._all()) else None

    def of_named(self, path: str) -> Protection | None:
        """Return who may change a file that counts as a judge. The task's scope and its words may name it.

        The scope of a task opens what it names exactly. Words open it where the checks passed before any change; where
        they failed, a sentence that names the failing test is no permission to change it, so that a person decides. Nor
        does a sentence open it that says to leave the tests as they are.
        """
        if literal_glob(path) in self.task.scope.allowed_write_globs or path in self.task.scope.allowed_write_globs:
            return None
        folded = path.casefold()
        named = bool({folded, folded.rpartition("/")[2]} & named_words(self.task))
        if not named or (is_test(path) and keeps_tests(self.task)):
            return Protection.READ_ONLY
        return None if self.passed_before else Protection.PERSON

    def of_source_test(self, path: str, name: str) -> Protection | None:
        """Return who may change the test `name` inside a source file (`source_tests`); the words may name it.

        The test counts as a judge if the acceptance failed, or a command names the file; in Python only if its tests
        are known to run.
        """
        commands = " ".join(self.required)
        runs = any(self._failed()) or path.rpartition("/")[2] in commands
        if path.endswith(".py"):
            doctests = "doctest" in commands or any(_DOCTEST_FAILS.search(each.output) for each in self._failed())
            runs = runs and (doctests or path in self._failing())
        if not runs:
            return None
        meant = {each for each in re.findall(r"\w+", name.casefold()) if "test" in each} - {"test", "tests"}
        if not asks_for_test(self.task) and not meant & named_words(self.task):
            return Protection.READ_ONLY
        return None if self.passed_before else Protection.PERSON

    @property
    def passed_before(self) -> bool:
        """True if the acceptance commands are known to have passed before any change."""
        return self.baseline is not None and not any(True for _ in self._failed())

    def _failed(self) -> Iterator[CheckResult]:
        return (each for each in self.baseline or () if each.command in self.required and not each.passed)

    def _all(self) -> tuple[str, ...]:
        # A program with tests of its own stays open: only these tests are read-only.
        failing = (path for path in self._failing() if is_test(path) or not path.endswith(".py"))
        return tuple(dict.fromkeys((*self.paths, *failing)))

    def _failing(self) -> Iterator[str]:
        return (path for each in self._failed() for test in each.failed_tests for path in test_files(test))


def excused_suite(task: Task, suite: str, baseline: Sequence[CheckResult] | None) -> tuple[str, ...]:
    """Return the repository's own test command if its old failures do not count against the task, else nothing.

    They count if the words speak of failures, or name a failing test, its file, the file that it or its class tests, or
    what a failure says is missing, and where they say what the name of a failing test says.
    """
    before = next((each for each in baseline or () if each.command == suite and suite), None)
    if before is None or before.passed or not before.failed_tests or is_about_failures(task):
        return ()
    words = named_words(task)
    missing = _missing_names(before.output)
    if not missing.isdisjoint(part for word in words for part in (word, word.rpartition(".")[2])):
        return ()
    stems = {subject(word) for word in words if "." in word or "/" in word}
    for test in before.failed_tests:
        files = [path.casefold() for path in test_files(test)]
        names = {*files, *(_name(path) for path in files), _last_name(test).casefold()}
        if names & words or _says(task, test) or {*(subject(path) for path in files), *_tested_by_class(test)} & stems:
            return ()
    return (suite,)


@lru_cache(maxsize=8)
def _missing_names(output: str) -> frozenset[str]:
    """Return what failures say is missing. A run is asked often whether it passes, and its baseline stays the same."""
    return frozenset(name.casefold() for names in _MISSING.findall(output) for name in names if name)


def _says(task: Task, test: str) -> bool:
    """Return True if the task's words have all words of a test's name, or two of them: `test_slice_after_removal`."""
    own = _beginnings(_last_name(test)) - {"test"}
    return len(own & _beginnings(f"{task.description}\n{stated_goal(task)}")) >= min(len(own), 2) > 0


def _beginnings(text: str) -> frozenset[str]:
    """Return the first letters of the words that have four or more, in lower case: `slice` and `slicing` share them."""
    return frozenset(word[:4].casefold() for word in re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", text) if len(word) > 3)


def subject(path: str) -> str:
    """Return the name of the file that a test file is about: `cart` for `tests/test_cart.py`, and for `cart.py`."""
    stem = path.rpartition("/")[2].partition(".")[0]
    return stem.removeprefix("test_").removesuffix("_test")


def _tested_by_class(test: str) -> frozenset[str]:
    """Return what the classes of a test are about by their names: `slugify` for `__main__.TestSlugify.test_x`."""
    classes = re.findall(r"(?:^|[.:])([A-Z]\w*)", test.partition("[")[0])
    about = (re.sub(r"^test_?|_?test(?:s|_?case)?$", "", each.casefold()) for each in classes)
    return frozenset(filter(None, about))


def _last_name(test: str) -> str:
    """Return the name of a test itself, without its file, class and parameters."""
    return re.split(r"::|\.| > ", test.partition("[")[0])[-1].strip()


def only_new_tests_fail(
    files: Sequence[FilePatch], results: Sequence[CheckResult], before: Sequence[Sequence[CheckResult]]
) -> bool:
    """Return True if a diff only adds tests, and of what failed in none of the runs `before` only these fail."""
    lines = [line for file in files for hunk in file.hunks for line in hunk.lines]
    adds = all(file.operation in {FileOperation.CREATE, FileOperation.MODIFY} and is_test(file.path) for file in files)
    if not adds or any(line.kind is LineKind.REMOVED for line in lines):
        return False
    old = {test for run in before for result in run for test in result.failed_tests}
    unnamed = {result.command for run in before for result in run if not result.passed and not result.failed_tests}
    added = "\n".join(line.text for line in lines if line.kind is LineKind.ADDED)
    words, paths = frozenset(re.findall(r"\w+", added)), {file.path for file in files}
    found = False
    for result in results:
        if result.passed or (not result.failed_tests and result.command in unnamed):
            continue
        new = [test for test in result.failed_tests if test not in old]
        if not result.failed_tests or not all(_last_name(test) in words or test in paths for test in new):
            return False
        found = found or bool(new)
    return found


def test_files(test: str) -> tuple[str, ...]:
    """Return the paths of the files that a test's id may stand for, none if it names no file."""
    place = test.partition("::")[0].partition(" > ")[0].strip()
    if "/" in place or place.endswith((".py", ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx")):
        return (place.removeprefix("./"),)
    names = place.partition(" ")[0].split(".")
    if len(names) < 2 or not all(name.isidentifier() for name in names):
        return ()
    paths = (f"{'/'.join(names[:size])}.py" for size in range(1, len(names)))
    return tuple(path for path in paths if is_test(path))


test_files.__test__ = False  # type: ignore[attr-defined] # the name would make pytest collect it


def is_config(path: str) -> bool:
    """Return True for a file that configures test runners, whether or not other things too."""
    return changes_runs(path) or has_runner_settings(path)


def has_runner_settings(path: str) -> bool:
    """Return True for a file of which a part configures test runners (`runner_settings`)."""
    return _name(path) in SECTIONS


def changes_runs(path: str) -> bool:
    """Return True for a file that is only about how tests run, or would be run instead of a test runner."""
    name = _name(path)
    stem = name.rpartition(".")[0]
    package = path.casefold().rpartition("/")[0].rpartition("/")[2]
    shadows = name.endswith(".py") and (stem in SHADOWS or (name == "__init__.py" and package in SHADOWS))
    return name in WHOLE_CONFIGS or stem in CONFIG_STEMS or name.endswith(".pth") or shadows


def runner_settings(path: str, text: str | None) -> object:
    """Return what a file of `SECTIONS` says about tests, None if that is nothing.

    A text that cannot be parsed is returned as it is, so that it differs from any other.
    """
    wanted = SECTIONS.get(_name(path), ())
    if text is None or not wanted:
        return None
    try:
        found = _sections(path, text)
    except (ValueError, IniError, RecursionError):
        return text
    chosen = {".".join(keys): value for keys in wanted if (value := _at(found, keys)) is not None}
    return chosen or None


def _sections(path: str, text: str) -> object:
    if path.endswith(".json"):
        return json.loads(text)
    if path.endswith(".toml"):
        return tomllib.loads(text)
    parser = RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _at(found: object, keys: Sequence[str]) -> object:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _name(path: str) -> str:
    return fold_path(path).rpartition("/")[2]


def judges_to_name(paths: Iterable[str], most: int = 6) -> str:
    """Return judges as a list for a sentence, without configuration; the number of more than `most` is told."""
    named = [path for path in paths if not is_config(path)]
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return ", ".join(named[:most]) + more
