"""Arguments of consultants, and the lines of their prompts."""

import pytest

from agent_workbench.core.consult_requests import (
    CONSULTANTS,
    MAX_FIELD_CHARS,
    ConsultRequest,
    check_root,
    judged_paths,
    knowledge_words,
    request_of,
    task_lines,
)
from agent_workbench.core.errors import UsageError

ROOT = "/repo"


@pytest.mark.parametrize(
    ("skill", "arguments", "lines"),
    [
        ("tdd_red", {"spec": "s", "test_cmd": "t"}, "phase: red\nproject_root: /repo\nspec: s\nmodel: m\ntest_cmd: t"),
        (
            *("tdd_green", {"test_path": "a.py", "test_cmd": "t"}),
            "phase: green\nproject_root: /repo\ntest_path: a.py\nmodel: m\ntest_cmd: t",
        ),
        (
            *("tdd_refactor", {"test_path": "a.py", "impl_path": "b.py"}),
            "phase: refactor\nproject_root: /repo\ntest_path: a.py\nimpl_path: b.py\nmodel: m",
        ),
        (
            *("review", {"files": ["a.py", "b.py"], "context": "c"}),
            "phase: review\nproject_root: /repo\nfiles: a.py, b.py\ncontext: c\nmodel: m",
        ),
        ("debug", {"error": "e", "context": "c"}, "phase: debug\nproject_root: /repo\nerror: e\ncontext: c\nmodel: m"),
        (
            *("spec", {"requirements": "r", "output_path": "o.md", "context": "c"}),
            "phase: spec\nproject_root: /repo\nrequirements: r\noutput_path: o.md\ncontext: c\nmodel: m",
        ),
    ],
)
def test_the_lines_stand_in_the_order_of_the_arguments(skill: str, arguments: dict[str, object], lines: str) -> None:
    assert task_lines(request_of(skill, arguments), ROOT, "m") == lines


def test_what_is_not_given_has_no_line() -> None:
    assert task_lines(request_of("debug", {"error": "e"}), ROOT, "") == "phase: debug\nproject_root: /repo\nerror: e"


@pytest.mark.parametrize(
    ("skill", "arguments", "named"),
    [
        ("tdd_red", {}, "spec"),
        ("tdd_green", {"test_path": " "}, "test_path"),
        ("tdd_refactor", {"test_path": "a"}, "impl_path"),
        ("review", {"files": []}, "files"),
        ("review", {"files": "a.py"}, "files"),
        ("debug", {}, "error"),
        ("spec", {}, "requirements"),
        ("retrospective", {}, "session_id"),
        ("trainer", {}, "session_id"),
        ("debug", {"error": 7}, "error"),
        ("debug", {"eror": "x"}, "'error'"),
        ("debug", {"error": "x" * (MAX_FIELD_CHARS + 1)}, "error"),
        ("debug", {"error": "x", "session_id": "a\x1b[2J"}, "label"),
        ("debug", {"error": "x", "session_id": "a" * 201}, "label"),
        ("revue", {}, "'review'"),
    ],
)
def test_a_wrong_argument_is_named(skill: str, arguments: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        request_of(skill, arguments)


def test_the_root_is_the_served_one() -> None:
    request = request_of("debug", {"project_root": "/repo/", "error": "e"})
    check_root(request, ROOT)
    with pytest.raises(UsageError, match="project_root is '/etc'"):
        check_root(request_of("debug", {"project_root": "/etc", "error": "e"}), ROOT)


def test_what_is_judged_and_what_is_searched() -> None:
    review = ConsultRequest("review", (("context", "why"),), ("a.py", "a.py", "b.py"))
    assert judged_paths(review) == ("a.py", "b.py")
    assert knowledge_words(review) == "a.py a.py b.py why"
    assert knowledge_words(request_of("tdd_green", {"test_path": "a.py"})) == ""
    assert [name for name, facts in CONSULTANTS.items() if facts.searched] == ["tdd_red", "review", "debug", "spec"]


def test_a_family_has_one_chain() -> None:
    assert CONSULTANTS["tdd_red"].skills == ("tdd_red", "tdd")
    assert CONSULTANTS["review"].skills == ("review",)
