"""Which tests failed, read from what the runners really print (pytest and unittest are run, the others quoted)."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.checks.failure_report import MAX_FAILURES, MAX_ID_CHARS, failed_tests

PYTEST_FILE = """
import pytest

def test_good(): pass
def test_bad(): assert 1 == 2, "FAILED tests/other.py::test_said - by a message"
@pytest.mark.parametrize("word", ["a b", "c::d"])
def test_words(word): assert not word
@pytest.fixture
def broken(): raise RuntimeError("no")
def test_error(broken): pass
class TestInside:
    def test_deep(self): assert False
@pytest.mark.xfail
def test_expected(): assert False
def test_logs():
    import logging
    logging.error("not::a::test")
    print("ERROR some::thing")
    assert False
"""


def run(folder: Path, *argv: str) -> str:
    # Without the plugins that happen to be installed: they print nothing of it, and loading them takes a second.
    environment = {"COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *argv], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("-q",), ("--color=yes",), ("-v", "-ra"), ("-q", "--tb=no")])
def test_pytest_as_it_prints(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PYTEST_FILE)
    (tmp_path / "test_broken.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    output = run(tmp_path, "pytest", *options, "-p", "no:cacheprovider", "--continue-on-collection-errors")
    assert set(failed_tests(output)) == {
        "test_broken.py",
        "test_it.py::test_bad",
        "test_it.py::test_words[a b]",
        "test_it.py::test_words[c::d]",
        "test_it.py::test_error",
        "test_it.py::TestInside::test_deep",
        "test_it.py::test_logs",
    }, output


def test_unittest_as_it_prints(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import unittest\n"
        "class Case(unittest.TestCase):\n"
        "    def test_good(self): pass\n"
        "    def test_bad(self): print('FAIL: not (a.test)'); self.fail('no')\n"
        "    def test_error(self): raise RuntimeError\n"
        "    def test_parts(self):\n"
        "        with self.subTest(i=1): self.fail()\n"
        "class Broken(unittest.TestCase):\n"
        "    @classmethod\n"
        "    def setUpClass(cls): raise RuntimeError\n"
        "    def test_never(self): pass\n"
    )
    assert set(failed_tests(run(tmp_path, "unittest"))) == {
        "test_it.Case.test_bad",
        "test_it.Case.test_error",
        "test_it.Case.test_parts (i=1)",
        "test_it.Broken.setUpClass",
    }


def test_a_green_run_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_good(): pass\n")
    assert failed_tests(run(tmp_path, "pytest", "-p", "no:cacheprovider")) == ()


GO = """\
=== RUN   TestAdd
    add_test.go:9: got 3
--- FAIL: TestAdd (0.00s)
    --- FAIL: TestAdd/negative (0.00s)
--- PASS: TestSub (0.00s)
FAIL
FAIL\texample.com/calc\t0.003s
ok  \texample.com/other\t0.002s
--- FAIL: TestAdd (0.01s)
FAIL\texample.com/more\t0.003s
FAIL\texample.com/broken [build failed]
FAIL
"""

CARGO = """\
running 3 tests
test tests::adds ... ok
test tests::subtracts ... FAILED
test src/lib.rs - halve (line 4) ... FAILED

failures:
    tests::subtracts

test result: FAILED. 1 passed; 2 failed; 0 ignored
"""

TAP = """\
TAP version 13
ok 1 - adds
not ok 2 - subtracts (1.25ms)
    not ok 1 - nested one
not ok 3 - later # TODO not yet
not ok 4 - elsewhere # SKIP no network
1..4
"""

# `node --test` on a file with tests of tape.
WRAPPED_TAP = """\
TAP version 13
# TAP version 13
# \\# totals
# ok 1 adds
# not ok 2 item \\#3
#   ---
#     operator: equal
#   ...
# 1..2
# Subtest: sum.test.js
not ok 1 - sum.test.js
1..1
# tests 1
# fail 1
"""

# What a program that is tested may print.
PRINTED_TAP = """\
# TAP version 13
# not ok 1 - no test
not ok 1 - item \\\\#4
"""

JEST = """\
 FAIL  src/sum.test.js
  sum
    ✓ adds (2 ms)
    ✕ subtracts (3 ms)
    ✕ is 5 ms late
"""

NODE = """\
✔ adds (0.4ms)
✖ subtracts (0.812ms)
ℹ fail 1
✖ failing tests:
test at sum.test.js:3:1
✖ subtracts (0.9ms)
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (WRAPPED_TAP, ("item #3", "sum.test.js")),
        (PRINTED_TAP, ("item \\\\#4",)),
        (
            GO,
            (
                "example.com/calc.TestAdd",
                "example.com/calc.TestAdd/negative",
                "example.com/more.TestAdd",
                "example.com/broken [build failed]",
            ),
        ),
        ("--- FAIL: TestAlone (0.00s)\nFAIL\nexit status 1\n", ("TestAlone",)),
        (CARGO, ("tests::subtracts", "src/lib.rs - halve (line 4)")),
        (TAP, ("subtracts", "nested one")),
        (JEST, ("src/sum.test.js", "subtracts", "is 5 ms late")),
        (NODE, ("subtracts",)),
        (" FAIL  src/a.test.ts > sum > subtracts\r\n", ("src/a.test.ts > sum > subtracts",)),
        ("", ()),
        ("make: *** [Makefile:3: all] Error 1\nFAILED: build.ninja\nERROR: no such file\n", ()),
        ("ERROR    root:mod.py:3 said::something\nFAILED (failures=1)\n", ()),
    ],
)
def test_other_runners(output: str, expected: tuple[str, ...]) -> None:
    assert failed_tests(output) == expected


def test_what_comes_back_is_bounded() -> None:
    head = "=== short test summary info ===\n"
    many = head + "".join(f"FAILED t.py::test_{i}\n" for i in range(MAX_FAILURES + 50))
    assert len(failed_tests(many)) == MAX_FAILURES
    assert [len(name) for name in failed_tests(f"{head}FAILED t.py::{'x' * 100_000}\n")] == [MAX_ID_CHARS]


def test_long_output_is_read_in_time() -> None:
    output = (
        ("FAILED " + "a - :" * 2000 + "\n") * 200 + "=== short test summary info ===\n" + "FAILED x :: - \n" * 100_000
    )
    began = time.process_time()
    failed_tests(output * 2)
    assert time.process_time() - began < 5


@given(st.text(alphabet="FAILED ERRORtest not ok 1-:.py(=)\n✕×\t[]", max_size=300))
def test_anything_can_be_read(output: str) -> None:
    assert all(name and name == name.strip() for name in failed_tests(output)[:MAX_ID_CHARS])
