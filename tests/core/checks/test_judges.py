"""Judges of a task: the files that its commands name, call or are configured by, and who may change them."""

import time

import pytest
from msgspec.structs import replace

from agent_workbench.core.checks.judge_search import JudgeSearch
from agent_workbench.core.checks.judges import (
    Judges,
    Protection,
    changes_runs,
    excused_suite,
    runner_settings,
    test_files,
)
from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import PathScope, Task

FILES = {
    "answer.txt": b"",
    "conftest.py": b"",
    "src/checkout.py": b"",
    "src/flatten.py": b"",
    "tests/conftest.py": b"",
    "tests/test_flatten.py": b"from src.flatten import flatten\nfrom tests.helper import x\nopen('tests/data/a.json')",
    "tests/helper.py": b"",
    "tests/data/a.json": b"",
    "tests/unit/test_sieve.py": b"",
    "run_checks.py": b"",
    "scripts/test.sh": b'#!/bin/sh\ncd "$(dirname "$0")/.."\nexec python run_checks.py\n',
    "Makefile": b"test:\n\t@pytest tests/unit\n",
    "package.json": b'{"scripts": {"test": "npm run unit", "unit": "node web/sum.test.js", "dev": "tests/dev.js"}}',
    "tests/dev.js": b"",
    "web/sum.test.js": b"",
    "python_testcases/test_gcd.py": b"from load_testdata import load\n",
    "python_testcases/load_testdata.py": b"at = here / '../json_testcases' / f'{name}.json'\n",
    "json_testcases/gcd.json": b"",
    "pytest.ini": b"",
}
CONFIG = {"conftest.py", "tests/conftest.py", "pytest.ini", "package.json"}
FLATTEN = ["tests/test_flatten.py", "tests/helper.py", "tests/data/a.json"]


def search(line: str, links: dict[str, str] | None = None, suite: str = "") -> list[str]:
    found = JudgeSearch(FILES, links or {}, (suite,))
    found.command(line)
    while wanted := found.unread:
        found.read({path: FILES[path] for path in wanted})
    assert set(found.found) >= CONFIG
    return [path for path in found.found if path not in CONFIG]


@pytest.mark.parametrize(
    ("line", "judges"),
    [
        ("pytest", []),
        ("pytest -q tests/test_flatten.py", FLATTEN),
        ("pytest tests/test_flatten.py::test_deep -k deep", FLATTEN),
        ("timeout 9 python -P -m pytest -q ./tests/test_flatten.py", FLATTEN),
        ("PYTHONPATH=src bash -c 'pytest tests/unit'", ["tests/unit/test_sieve.py"]),
        ("cd tests && pytest unit", ["tests/unit/test_sieve.py"]),
        ("(cd tests && pytest unit) && ruff check tests", ["tests/unit/test_sieve.py"]),
        ("python -m unittest tests.test_flatten.FlattenTest.test_deep", FLATTEN),
        ("pytest -k 'sieve and not slow'", ["tests/unit/test_sieve.py"]),
        ("./scripts/test.sh", ["scripts/test.sh", "run_checks.py"]),
        ("sh scripts/test.sh", ["scripts/test.sh", "run_checks.py"]),
        ("make test", ["Makefile", "tests/unit/test_sieve.py"]),
        ("npm test", ["web/sum.test.js"]),
        (
            "pytest python_testcases/test_gcd.py",
            ["python_testcases/test_gcd.py", "python_testcases/load_testdata.py", "json_testcases/gcd.json"],
        ),
        ("grep -q right answer.txt", []),
        ("grep -q deep tests/test_flatten.py", []),
        ("python src/flatten.py && diff answer.txt answer.txt", []),
        ("pytest --doctest-modules src/checkout.py", []),
        ("pytest tests/test_new.py 'unclosed", []),
    ],
)
def test_the_files_that_a_command_names_or_calls(line: str, judges: list[str]) -> None:
    assert search(line) == judges


def test_a_link_and_what_it_leads_to() -> None:
    assert search("pytest t/test_flatten.py", {"t": "tests"}) == FLATTEN
    assert search("pytest t/test_flatten.py", {"t": "u", "u": "t"}) == []


def test_the_folders_of_the_repositorys_own_test_command_are_open_for_new_tests() -> None:
    assert search("pytest tests/unit", suite="pytest tests/unit") == []
    assert search("pytest tests/unit/test_sieve.py", suite="pytest tests/unit/test_sieve.py") != []


CHECK = "pytest tests/test_flatten.py"
RED = (CheckResult(CHECK, 1, "", 0.1, ("tests/test_flatten.py::test_deep",)),)
GREEN = (CheckResult(CHECK, 0, "", 0.1),)


def judges(words: str, baseline: tuple[CheckResult, ...] | None = RED, globs: tuple[str, ...] = ("**",)) -> Judges:
    task = Task(TaskId("T-1"), words, f"It works, and {CHECK} passes.", accept_tests=(CHECK,), scope=PathScope(globs))
    return Judges(task, ("tests/test_flatten.py",), (CHECK,), baseline)


@pytest.mark.parametrize(
    ("of", "protection"),
    [
        (judges("Mend flatten"), Protection.READ_ONLY),
        (judges("Mend flatten", GREEN), Protection.READ_ONLY),
        (judges("Mend flatten", None), Protection.READ_ONLY),
        (judges("Mend flatten: @tests/test_flatten.py::test_deep fails."), Protection.PERSON),
        (judges("Mend flatten: `test_flatten.py` fails.", None), Protection.PERSON),
        (judges("Add a case to tests/test_flatten.py", GREEN), None),
        (judges("Mend flatten: test_flatten.py fails. Leave the tests as they are."), Protection.READ_ONLY),
        (judges("Tidy flatten; keep tests/test_flatten.py as it is", GREEN), Protection.READ_ONLY),
        (judges("Tidy flatten without touching the tests in test_flatten.py", GREEN), Protection.READ_ONLY),
        (judges("Keep it short. Do not print; change the tests in test_flatten.py", GREEN), None),
        (judges("Keep the names that test_flatten.py uses, and add a test there", GREEN), None),
        (judges("Mend flatten", RED, ("src/**", "tests/test_flatten.py")), None),
        (judges("Mend flatten", RED, ("src/**", "tests/**")), Protection.READ_ONLY),
    ],
)
def test_who_may_change_a_judge(of: Judges, protection: Protection | None) -> None:
    assert of.protection("tests/test_flatten.py") is protection
    assert of.protection("tests/test_other.py") is None


@pytest.mark.parametrize(
    "path",
    ["tests/TEST_flatten.py", "Tests/test_flatten.py", "tests/test_flatten/__init__.py", "tests/test_flatten.py/x"],
)
def test_other_spellings_and_a_package_instead_of_a_judge(path: str) -> None:
    assert judges("Mend flatten").protection(path) is Protection.READ_ONLY


@pytest.mark.parametrize(
    ("test", "files"),
    [
        ("tests/test_a.py::T::test_x", ("tests/test_a.py",)),
        ("tests.test_a.T.test_x", ("tests.py", "tests/test_a.py", "tests/test_a/T.py")),
        ("shop.tests.CartTest.test_x", ("shop/tests.py", "shop/tests/CartTest.py")),
        ("web/a.test.ts > adds", ("web/a.test.ts",)),
        ("github.com/x/y.TestIt", ("github.com/x/y.TestIt",)),
        ("TestIt", ()),
    ],
)
def test_the_file_of_a_test(test: str, files: tuple[str, ...]) -> None:
    assert test_files(test) == files


def test_the_files_of_failing_tests_are_judges_of_a_whole_suite() -> None:
    task = Task(TaskId("T-1"), "Mend flatten", accept_tests=("pytest",))
    failed = CheckResult("pytest", 1, "", 0.1, ("tests/test_flatten.py::test_deep",))
    assert Judges(task, (), ("pytest",), (failed,)).protected(Protection.READ_ONLY) == ("tests/test_flatten.py",)
    assert Judges(task, (), ("other",), (failed,)).protected(Protection.READ_ONLY) == ()


MAKE = CheckResult("make test", 2, "", 0.1)
CARGO = CheckResult("cargo test", 1, "", 0.1, ("tests::adds",))
BUILT = CheckResult("cc -DSUM_TEST_MAIN src/sum.c && ./a.out", 0, "", 0.1)
DOCTEST = CheckResult("pytest", 1, "", 0.1, ("src/sum.py::sum.sum_of",))
PLAIN = CheckResult("make", 1, "*****\nFailed example:\n    sum_of(1, 2)\n", 0.1)


@pytest.mark.parametrize(
    ("path", "name", "words", "result", "protection"),
    [
        ("src/sum.c", "`#ifdef SUM_TEST_MAIN`", "Mend the sum: make test passes", MAKE, Protection.READ_ONLY),
        ("src/sum.c", "`#ifdef SUM_TEST_MAIN`", "SUM_TEST_MAIN fails in src/sum.c", MAKE, Protection.PERSON),
        ("src/sum.c", "`#ifdef SUM_TEST_MAIN`", "Sum three numbers", replace(MAKE, exit_code=0), None),
        ("src/sum.c", "`#ifdef SUM_TEST_MAIN`", "Sum three numbers", BUILT, Protection.READ_ONLY),
        ("src/sum.c", "`#ifdef SUM_TEST_MAIN`", "Sum three numbers, and add a test", BUILT, None),
        ("src/sum.rs", "`#[cfg(test)] mod tests`", "The tests of sum fail", CARGO, Protection.READ_ONLY),
        ("src/sum.rs", "`#[cfg(test)] mod tests`", "Add a test of sum", CARGO, Protection.PERSON),
        ("src/sum.py", "the doctest of sum_of", "Mend the sum", DOCTEST, Protection.READ_ONLY),
        ("src/sum.py", "the doctest of sum_of", "Mend the sum", PLAIN, Protection.READ_ONLY),
        ("src/sum.py", "the doctest of sum_of", "Mend the sum, and its doctest", PLAIN, Protection.PERSON),
        # Examples in a docstring that no command runs are documentation.
        ("src/sum.py", "the doctest of sum_of", "Mend the sum", MAKE, None),
        ("src/other.py", "the doctest of sum_of", "Mend the sum", DOCTEST, None),
    ],
)
def test_who_may_change_a_test_inside_a_source_file(
    path: str, name: str, words: str, result: CheckResult, protection: Protection | None
) -> None:
    of = Judges(Task(TaskId("T-1"), words), (), (result.command,), (result,))
    assert of.of_source_test(path, name) is protection
    assert of.protection(path) is None


PROJECT = '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-q"\n'


@pytest.mark.parametrize(
    ("path", "before", "after", "same"),
    [
        ("pyproject.toml", PROJECT, PROJECT.replace('"x"', '"y"'), True),
        ("pyproject.toml", PROJECT, PROJECT.replace("-q", "-k nothing"), False),
        ("pyproject.toml", None, '[project]\nname = "x"\n', True),
        ("pyproject.toml", None, PROJECT, False),
        ("pyproject.toml", PROJECT, "[", False),
        ("setup.cfg", "[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n", "[metadata]\nname = x\n", False),
        ("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = true\n", False),
        ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}', False),
        ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest"}, "private": true}', True),
    ],
)
def test_what_a_file_of_the_project_says_about_tests(path: str, before: str | None, after: str, *, same: bool) -> None:
    assert (runner_settings(path, before) == runner_settings(path, after)) is same


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("conftest.py", True),
        ("tests/deep/CONFTEST.py", True),
        ("sitecustomize.py", True),
        ("pytest.py", True),
        ("unittest/__init__.py", True),
        ("x.pth", True),
        ("jest.config.ts", True),
        ("src/app.py", False),
        ("tests/__init__.py", False),
        ("pyproject.toml", False),
    ],
)
def test_files_that_change_how_tests_run(path: str, *, changes: bool) -> None:
    assert changes_runs(path) is changes


@pytest.mark.parametrize(
    ("literal", "judges"),
    [
        ('f"cases/{name}.json"', {"cases/a.json", "cases/deep/b.csv"}),
        ('"cases/%s.json" % name', {"cases/a.json", "cases/deep/b.csv"}),
        ('Path("cases") / name', {"cases/a.json", "cases/deep/b.csv"}),
        ('"cases/a.json"', {"cases/a.json"}),
        ('"../cases/*.json"', {"cases/a.json", "cases/deep/b.csv"}),
        # Nothing of the source, nor of the whole repository.
        ('"src"', set()),
        ('f"src/{name}.json"', set()),
        ('"."', set()),
        ('f"{name}.json"', set()),
        ('""', set()),
        ('"/"', set()),
        ('"top.json"', set()),
    ],
)
def test_data_that_a_test_loads_by_a_computed_name_judges(literal: str, judges: set[str]) -> None:
    files = ("src/app.py", "src/table.json", "cases/a.json", "cases/deep/b.csv", "top.json")
    tests = {"tests/test_app.py": b"from loading import load\n", "tests/loading.py": f"load({literal})\n".encode()}
    search = JudgeSearch((*files, *tests), {})
    search.command("pytest tests/test_app.py")
    while search.unread:
        search.read({path: tests.get(path, b"") for path in search.unread})
    assert set(search.found) - set(tests) == judges


@pytest.mark.parametrize(
    ("test", "text", "judge"),
    [
        ("grade_school_test.py", "from grade_school import (\n    School,\n)", ""),
        ("validate.test.js", "require('./validate.js')", ""),
        ("test/cart.test.js", "import { valid } from '../src/validate'", ""),
        ("tests/test_cart.py", "from cart.checks.stock import check", ""),
        ("tests/test_cart.py", "import snapshot", ""),
        ("test_cart.py", "from check_cart import check", "check_cart.py"),
        ("spec/cart.js", "require('./expect/all')", "spec/expect/all.js"),
        ("tests/test_cart.py", "from testing.builders import cart", "testing/builders.py"),
        ("tests/test_cart.py", "from cart import golden", "cart/golden.py"),
        ("tests/test_cart.py", "from verify.harness import run", "verify/harness.py"),
        ("tests/test_cart.py", "open('checks/cart.json')", "checks/cart.json"),
    ],
)
def test_a_program_is_no_judge_because_its_name_says_what_it_does(test: str, text: str, judge: str) -> None:
    programs = ("grade_school.py", "validate.js", "src/validate.js", "cart/checks/stock.py", "snapshot.py")
    helpers = ("check_cart.py", "spec/expect/all.js", "testing/builders.py", "cart/golden.py", "checks/cart.json")
    search = JudgeSearch((*programs, *helpers, "checks/run.py", "verify/harness.py", test), {})
    search.command(f"run {test}")
    while search.unread:
        search.read({path: text.encode() if path == test else b"" for path in search.unread})
    assert search.found == tuple(filter(None, (test, judge)))


@pytest.mark.parametrize(
    ("test", "counts"),
    [
        ("__main__.TestSlugify.test_custom_separator", True),
        ("tests/test_all.py::SlugifyTests::test_custom_separator", True),
        ("__main__.TestSlugifyUnicode.test_custom_separator", False),
        ("tests/test_all.py::Tests::test_custom_separator", False),
    ],
)
def test_an_old_failure_counts_where_the_words_name_what_its_class_tests(test: str, counts: bool) -> None:
    task = Task(TaskId("T-1"), "The separator of slugify() in slugify/slugify.py is ignored", "It is right.")
    before = (CheckResult("make test", 1, "", 0.1, (test,)),)
    assert excused_suite(task, "make test", before) == (() if counts else ("make test",))


@pytest.mark.parametrize(
    ("said", "output", "counts"),
    [
        ("Add an implementation of unzip", "E   ImportError: cannot import name 'unzip' from 'toolz' (x.py)", True),
        ("Rename pipeline() to compose_left()", "ImportError: cannot import name 'compose_left' from 'toolz'", True),
        ("Give Cart.total a body", "AttributeError: 'Cart' object has no attribute 'total'", True),
        ("Add `parse`", "TypeError: parse is not a function", True),
        ("Write Sum", "./sum_test.go:5:9: undefined: Sum", True),
        ("Add sdsrange", "sds.c:9: undefined reference to `sdsrange'", True),
        ("Add an implementation of unzip", "ModuleNotFoundError: No module named 'numpy'", False),
        ("Add an implementation of unzip", "E   assert unzip(1) == 2", False),
    ],
)
def test_an_old_failure_counts_where_the_words_name_what_it_misses(said: str, output: str, counts: bool) -> None:
    task = Task(TaskId("T-1"), said)
    before = (CheckResult("make test", 2, output, 0.1, ("tests/test_core.py",)),)
    assert excused_suite(task, "make test", before) == (() if counts else ("make test",))


@pytest.mark.parametrize(
    ("said", "test", "counts"),
    [
        ("Fix slicing after removals", "tests/test_sets.py::test_iset_slice_after_removal", True),
        ("Raise in partition_all when the length is invalid", "test_itertools.py::test_partition_all", True),
        ("Implement basic Compose.__signature__", "tests/test_func.py::test_compose", True),
        ("Add multiply()", "tests/test_calc.py::test_add", False),
        ("Let add() take negative numbers", "tests/test_calc.py::test_subtract_negative", False),
        ("Test all tests", "tests/test_calc.py::test_tests", False),
    ],
)
def test_an_old_failure_counts_where_the_words_say_what_its_name_says(said: str, test: str, counts: bool) -> None:
    before = (CheckResult("make test", 1, "", 0.1, (test,)),)
    assert excused_suite(Task(TaskId("T-1"), said), "make test", before) == (() if counts else ("make test",))


@pytest.mark.parametrize("output", ["a" * 64_000, "x y " * 16_000, "name 'a" * 9_000, "cannot find a " * 4_500])
def test_what_a_failure_misses_is_looked_for_quickly(output: str) -> None:
    start = time.process_time()
    excused_suite(Task(TaskId("T-1"), "Add total"), "make test", (CheckResult("make test", 1, output, 0.1, ("t",)),))
    assert time.process_time() - start < 2.0
