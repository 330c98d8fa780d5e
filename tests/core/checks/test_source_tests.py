"""Tests inside source files: what alters them, or makes them dead, is found; the program around them is open."""

import time

import pytest

from agent_workbench.core.checks.source_tests import changed_tests

C = """#include <stdio.h>
int sum(int a, int b) {
#ifdef SUM_TESTING /* not in production */
    seen++;
#else
    seen = 0; // don't
#endif
    return a - b;
}
#ifndef NO_TEST
#define SUM_MAX 9
#endif
#if defined(SUM_TEST_MAIN)
#include <assert.h>
#if WIDE
void wide(void) { assert(sum(1L << 40, 1) > 1); }
#endif
int main(void) {
    assert(sum(1, 2) == 3);
    return 0;
}
#endif
"""
RUST = """pub fn sum<'a>(a: &'a str) -> char { '{' }
#[cfg(not(test))]
fn live() {}
#[cfg_attr(test, derive(Debug))]
pub struct Of { a: u8 }
// One comment: {
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn adds() { assert_eq!(sum("}"), '}'); }
}
"""
PYTHON = '''"""Sums.

>>> sum_of(2, 2)
4
"""

def sum_of(a, b):
    """Return a sum.

    >>> sum_of(1, 2)
    3
    """
    return a - b


@mark
def test_sum_of(
    x,
) -> None:
    assert sum_of(1, 2) == 3


def other(): ...
'''
ZIG = 'fn sum(a: u8) u8 {\n    return a;\n}\ntest "adds" {\n    try expect(sum(1) == 2);\n}\n'
D = "int sum(int a) { return a; }\n@safe unittest {\n    assert(sum(1) == 2);\n}\n"
MAIN, MODULE = "`#if defined(SUM_TEST_MAIN)`", "`#[cfg(test)] mod tests`"


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "names"),
    [
        # The program is open: what only other builds have, too.
        ("sum.c", C, "a - b", "a + b", ()),
        ("sum.c", C, "seen = 0;", "seen = 1;", ()),
        ("sum.c", C, "SUM_MAX 9", "SUM_MAX 8", ()),
        ("sum.c", C, "int sum(", "/* #ifdef OTHER_TEST */\nint sum(", ()),
        ("sum.c", C, C, C + "#ifdef MORE_TEST\nint more;\n#endif\n", ()),
        ("lib.rs", RUST, "'{' }", "'}' }", ()),
        ("lib.rs", RUST, "fn live() {}", "fn live() {;}", ()),
        ("lib.rs", RUST, "a: u8", "b: u8", ()),
        ("lib.rs", RUST, RUST, RUST + "#[test]\nfn more() {}\n", ()),
        ("sum.py", PYTHON, "a - b", "a + b", ()),
        ("sum.py", PYTHON, "def other(): ...", "def other():\n    '''\n    >>> other()\n    '''", ()),
        ("sum.zig", ZIG, "return a;", "return a + 1;", ()),
        ("sum.d", D, "return a;", "return a + 1;", ()),
        ("sum.txt", C, "== 3", "== 4", ()),
        ("tests/sum.c", C, "== 3", "== 4", ()),
        # A test is altered, removed or renamed, and begins with something else.
        ("sum.c", C, "== 3", "== -1", (MAIN,)),
        ("sum.c", C, "> 1)", "> 0)", (MAIN,)),
        ("sum.c", C, C[C.index("#if defined(SUM_TEST") :], "", (MAIN,)),
        ("sum.c", C, C, "", ("`#ifdef SUM_TESTING`", MAIN)),
        ("sum.c", C, "    assert(sum(1, 2)", "    return 0;\n    assert(sum(1, 2)", (MAIN,)),
        ("sum.c", C, "defined(SUM_TEST_MAIN)", "defined(SUM_TEST_NEVER)", (MAIN,)),
        ("lib.rs", RUST, "'}')", "'{')", (MODULE,)),
        ("lib.rs", RUST, "mod tests", "mod dead", (MODULE,)),
        ("lib.rs", RUST, "#[cfg(test)]\nmod", "#[cfg(any())]\nmod", (MODULE,)),
        ("sum.py", PYTHON, "\n    3\n", "\n    -1\n", ("the doctest of sum_of",)),
        ("sum.py", PYTHON, ">>> sum_of(2, 2)\n4\n", "", ("the doctest of the module",)),
        ("sum.py", PYTHON, "sum_of(1, 2)\n", "sum_of(1, 2)  # doctest: +SKIP\n", ("the doctest of sum_of",)),
        ("sum.py", PYTHON, "def sum_of", "def sum_off", ("the doctest of sum_of",)),
        ("sum.py", PYTHON, "== 3", "== -1", ("`test_sum_of`",)),
        ("sum.py", PYTHON, "@mark\n", "", ("`test_sum_of`",)),
        ("sum.zig", ZIG, "== 2", "== 1", ('`test "adds"`',)),
        ("sum.d", D, "== 2", "== 1", ("`@safe unittest`",)),
        # It stays as it is, and no longer runs.
        ("sum.c", C, "#if defined(SUM_TEST", "#if 0\n#endif\n#if defined(SUM_TEST", ()),
        ("sum.c", C, "#if defined(SUM_TEST", "#if 0\n#if defined(SUM_TEST", (MAIN,)),
        ("sum.c", C, "int sum(", "#undef SUM_TEST_MAIN\nint sum(", (MAIN,)),
        ("sum.c", C, "#if defined(SUM_TEST", "/* #if\n#if defined(SUM_TEST", (MAIN,)),
        ("sum.c", C, "#if defined(SUM_TEST", "// \\\n#if defined(SUM_TEST", (MAIN,)),
        ("sum.cpp", C, "#if defined(SUM_TEST", 'auto x = R"(\n#if defined(SUM_TEST', (MAIN,)),
        ("sum.c", C, C, C + "#if defined(SUM_TEST_MAIN)\nint exit;\n#endif\n", (MAIN,)),
        ("lib.rs", RUST, "#[cfg(test)]\nmod", "#[cfg(any())]\n#[cfg(test)]\nmod", (MODULE,)),
        ("lib.rs", RUST, RUST, f"mod dead {{ {RUST} }}", (MODULE,)),
        ("lib.rs", RUST, "#[cfg(test)]\nmod", "macro_rules! no { () => {\n#[cfg(test)]\nmod", (MODULE,)),
        ("lib.rs", RUST, "#[cfg(test)]\nmod", "/* /* */\n#[cfg(test)]\nmod", (MODULE,)),
        ("lib.rs", RUST, "pub fn sum", "#![cfg(not(test))]\npub fn sum", (MODULE,)),
        ("sum.py", PYTHON, "def other(): ...", "def sum_of(a, b): ...", ("the doctest of sum_of",)),
    ],
)
def test_a_change_of_tests_inside_a_source_file(
    path: str, text: str, old: str, new: str, names: tuple[str, ...]
) -> None:
    assert old in text
    assert changed_tests(path, text, text.replace(old, new)) == names


def test_a_file_that_is_removed_and_one_that_is_new() -> None:
    assert changed_tests("lib.rs", RUST, None) == (MODULE,)
    assert changed_tests("lib.rs", None, RUST) == ()


def test_examples_in_the_comments_of_rust() -> None:
    text = "/// Adds.\n/// ```\n/// assert_eq!(1, crate::add(0));\n/// ```\npub fn add() {}\n"
    assert changed_tests("lib.rs", text, text.replace("add() {}", "add() { 1 }")) == ()
    name = "the example in the comments of add"
    assert changed_tests("lib.rs", text, text.replace("(1,", "(2,")) == (name,)
    assert changed_tests("lib.rs", text, text.replace("```\n/// a", "```ignore\n/// a")) == (name,)
    assert changed_tests("lib.rs", text, text + text.replace("add", "more")) == ()
    prose = "//! ```toml\n//! add = 1\n//! ```\n" + text.replace("pub", "/// Slow.\npub")
    assert changed_tests("lib.rs", prose, prose.replace("= 1", "= 2").replace("Slow", "Fast")) == ()


@pytest.mark.parametrize(
    ("path", "head", "tail"),
    [
        ("sum.rs", "#[cfg(any(unix, test))]\nfn f() -> i32 { ", " }\n"),
        ("sum.rs", "#[cfg(all(unix, not(test)))]\nfn f() -> i32 { ", " }\n"),
        ("sum.c", "#if defined(__linux__) || defined(UNIT_TEST)\nint f = ", ";\n#endif\n"),
        ("sum.c", "#ifdef HAVE_TEST_AND_SET\nint f = ", ";\n#endif\n"),
    ],
)
def test_what_a_build_without_tests_has_too_is_open(path: str, head: str, tail: str) -> None:
    assert changed_tests(path, f"{head}1{tail}", f"{head}2{tail}") == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.c", "".join(f"#ifdef TEST{number}\n#endif\n#define TEST{number}\n" for number in range(5_000))),
        ("a.c", "#if X\n" * 10_000 + "#ifdef TEST\n#endif\n" * 10_000),
        ("a.rs", "#[cfg(a " * 40_000),
        ("a.py", "class " + "Test" * 40_000),
        ("a.py", "@a\n" * 1_500_000),
    ],
    ids=["macros", "conditions", "attributes", "name", "decorators"],
)
def test_a_hostile_file_is_read_in_no_time(path: str, text: str) -> None:
    began = time.process_time()
    changed_tests(path, text, "")
    assert time.process_time() - began < 3
