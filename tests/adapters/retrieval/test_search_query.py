"""Queries: the places they name, and what else they say."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.retrieval.search_query import MentionedPlace, PathLookup, read_query
from agent_workbench.core.repo.retrieval import CodeQuery

FILES = [
    *("setup.py", "Makefile", "src/flask/app.py", "src/flask/json/tag.py", "tests/test_app.py", "web/src/index.ts"),
    *("a/util.py", "b/util.py", "c/util.py", "d/util.py", "crates/core/main.rs", "cmd/run.go"),
]
NAMES = PathLookup(FILES)

PYTHON_TRACE = """Traceback (most recent call last):
  File "/home/me/flask/src/flask/app.py", line 1455, in wsgi_app
    response = self.full_dispatch_request()
  File "/usr/lib/python3.11/site-packages/werkzeug/setup.py", line 12, in dumps
KeyError: 'x'
"""


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (PYTHON_TRACE, [MentionedPlace("src/flask/app.py", 1455)]),
        ("tests/test_app.py:31: AssertionError", [MentionedPlace("tests/test_app.py", 31)]),
        ("FAILED tests/test_app.py::test_login - assert 1 == 2", [MentionedPlace("tests/test_app.py")]),
        ("  --> crates/core/main.rs:7:13", [MentionedPlace("crates/core/main.rs", 7)]),
        ("    at f (/home/me/web/src/index.ts:10:5)", [MentionedPlace("web/src/index.ts", 10)]),
        ("\t/root/x/cmd/run.go:88 +0x1d", [MentionedPlace("cmd/run.go", 88)]),
        (r"in C:\me\flask\src\flask\app.py:line 3", [MentionedPlace("src/flask/app.py")]),
        ("--- a/src/flask/app.py\n+++ b/src/flask/app.py", [MentionedPlace("src/flask/app.py")]),
        ("look into app.py.", [MentionedPlace("src/flask/app.py")]),
        ("json/tag.py and ./setup.py", [MentionedPlace("src/flask/json/tag.py"), MentionedPlace("setup.py")]),
        ("tag.py, line 5", [MentionedPlace("src/flask/json/tag.py", 5)]),
        ("the Makefile", [MentionedPlace("Makefile")]),
        ("a util.py of many", []),
        ("b/util.py", [MentionedPlace("b/util.py")]),
        ("../../src/flask/app.py", [MentionedPlace("src/flask/app.py")]),
        ("nothing here. Or there: app, flask", []),
        ("src/flask/app.py:999999999999999999999999", [MentionedPlace("src/flask/app.py", 9999999)]),
        ("//// ... \\\\ .. /", []),
    ],
)
def test_places(text: str, places: list[MentionedPlace]) -> None:
    assert list(read_query(text, NAMES).places) == places


def test_what_is_said_often_counts_twice_at_most() -> None:
    query = read_query("retries " + "retry " * 50 + "queues", NAMES)
    assert sorted(query.written[root] for root in query.stems) == ["queues", "retries", "retries"]


def test_a_query_that_speaks_of_tests_or_documents_says_so() -> None:
    assert read_query("fix the tests", NAMES).of_tests
    assert not read_query("fix the latest", NAMES).of_tests
    assert not read_query("fix the parser\n" + "=" * 400 + "\nFAILED tests/test_app.py", NAMES).of_tests
    assert read_query("README is wrong", NAMES).of_documents
    assert not read_query("read me", NAMES).of_documents


@given(st.text(st.characters(exclude_categories=())) | st.text('a/\\.:0 "py,line(', max_size=200))
def test_whatever_is_asked_places_are_files_that_are_there(text: str) -> None:
    assert {place.path for place in read_query(text, NAMES).places} <= set(FILES)


@pytest.mark.parametrize(
    "text", ["a" * 400_000, "a/" * 200_000, "/" * 400_000, "x.py:1 " * 60_000, '", line ' * 50_000]
)
def test_long_queries_are_read_quickly(text: str) -> None:
    start = time.process_time()
    query = read_query(text, NAMES)
    assert time.process_time() - start < 2.0
    assert len(query.stems) <= 600


def test_members_are_names_and_files_are_none() -> None:
    query = read_query("Give Cart.__len__ a body, as cart.total() in app.py has. Or json/tag.py", NAMES)
    assert query.names == ("Cart", "__len__", "cart", "total")


def test_names_written_as_code_and_words_that_may_be_one_are_told_apart() -> None:
    query = read_query("Fix `retry` in run_all() and HttpClient\n\nplain words", NAMES)
    assert query.names == ("retry", "run_all", "HttpClient")
    assert query.first_line == "Fix `retry` in run_all() and HttpClient"
    assert "word" not in query.title


def test_who_signed_where_it_was_talked_of_and_what_only_fails_loudly_are_noise() -> None:
    said = "Close the pool (#123)\n\nSee https://example.invalid/wizard\nSigned-off-by: Ann Onymous <a@example.invalid>"
    query = read_query(CodeQuery(said, "collected 3 zebras\nE   TypeError: giraffe"), NAMES)
    words = set(query.written.values())
    assert {"close", "pool", "giraffe"} <= words
    assert not words & {"wizard", "ann", "onymous", "zebras", "123"}


SHELL = """/bin/sh: 1: pytset: not found
bash: line 3: frobnicate: command not found
cat: missing.cfg: No such file or directory
make[2]: *** [Makefile:12: test] Error 2
npm ERR! code ELIFECYCLE
exit status 127
error Command failed with exit code 1.
"""


def test_words_of_the_shell_are_not_searched() -> None:
    assert read_query(CodeQuery("", SHELL), NAMES).stems == ()
    assert set(read_query(CodeQuery("sum prices", SHELL), NAMES).written.values()) == {"sum", "prices"}


def test_what_a_program_says_of_missing_things_is_searched() -> None:
    output = (
        "FileNotFoundError: [Errno 2] No such file or directory: 'shelf.cfg'\nE  ShelfError: book not found in shelf"
    )
    assert {"shelf", "book"} <= set(read_query(CodeQuery("", SHELL + output), NAMES).written.values())


def test_a_command_that_is_asked_about_is_searched() -> None:
    assert "found" in read_query("say which command was not found", NAMES).written.values()


@given(st.text(max_size=2_000))
def test_any_output_is_read(text: str) -> None:
    read_query(CodeQuery("", text * 5), NAMES)


def test_files_come_first_and_only_those_that_are_there() -> None:
    query = CodeQuery("see b/util.py", files=("cmd/run.go", "absent.py", "util.py"))
    assert read_query(query, NAMES).places == (MentionedPlace("cmd/run.go"), MentionedPlace("b/util.py"))


def test_two_words_may_be_one_name() -> None:
    assert read_query("the rate limit of calls", NAMES).pairs == ("ratelimit", "rate_limit")
