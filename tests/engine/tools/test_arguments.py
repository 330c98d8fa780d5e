import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import (
    MAX_INTEGER,
    MAX_JSON_CHARS,
    Argument,
    ArgumentFault,
    ArgumentKind,
    Arguments,
    check_choices,
    example,
    read_arguments,
    schema_of,
)
from agent_workbench.core.tools.spec import ToolSpec

SCHEMA = (
    Argument("path", ArgumentKind.STRING, "a path", max_length=10),
    Argument("line", ArgumentKind.INTEGER, "a line", required=False),
)


def spec_of(*arguments: Argument) -> ToolSpec:
    return ToolSpec("tool", "a tool", Permission.READ, schema_of(arguments))


SPEC, EMPTY = spec_of(*SCHEMA), spec_of()


def fault(line: str, spec: ToolSpec = SPEC) -> str:
    with pytest.raises(ArgumentFault) as refused:
        read_arguments(line, spec)
    return str(refused.value)


def test_values_come_by_name() -> None:
    found = read_arguments('{"path": "a/é.py", "line": 7}', SPEC)
    assert (found.text("path"), found.number("line", 1)) == ("a/é.py", 7)


def test_what_was_left_out_has_its_default() -> None:
    found = read_arguments('{"path": ""}', SPEC)
    assert (found.text("path", "x"), found.number("line", 1)) == ("", 1)
    assert read_arguments("{}", EMPTY).text("path", "x") == "x"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not one line of JSON: Expecting value at character 0"),
        ("path", "not one line of JSON: Expecting value at character 0"),
        ('{"path": "a"', "not one line of JSON: Expecting ',' delimiter at character 12"),
        ('{"path": "a"} x', "not one line of JSON: Extra data at character 14"),
        ('{"path": "a\tb"}', "not one line of JSON: Invalid control character at at character 11"),
        ("{'path': 'a'}", "not one line of JSON: Expecting property name"),
        ("[]", 'must be one JSON object, such as {"path": "…", "line": 1}'),
        ('"a"', "must be one JSON object"),
        ("null", "must be one JSON object"),
        ('{"path": NaN}', "NaN is not a JSON value"),
        ('{"path": "a", "line": Infinity}', "Infinity is not a JSON value"),
        ('{"path": "a", "line": -Infinity}', "-Infinity is not a JSON value"),
        ('{"path": "a", "path": "b"}', "argument 'path' stands more than once"),
        ('{"path": {"x": 1, "x": 2}}', "argument 'x' stands more than once"),
        ('{"file": "a"}', "unknown argument 'file'; known are: path, line"),
        ("{}", 'argument \'path\' is missing; expected {"path": "…", "line": 1}'),
        ('{"path": 1}', "argument 'path' must be a string"),
        ('{"path": null}', "argument 'path' must be a string"),
        ('{"path": ["a"]}', "argument 'path' must be a string"),
        ('{"path": "12345678901"}', "argument 'path' is longer than 10 characters"),
        ('{"path": "\\ud800"}', "argument 'path' holds half a character (a lone surrogate)"),
        ('{"path": "a\\udc00b"}', "argument 'path' holds half a character (a lone surrogate)"),
        ('{"path": "a", "line": "1"}', "argument 'line' must be a whole number from 0 to 1000000"),
        ('{"path": "a", "line": 1.0}', "argument 'line' must be a whole number"),
        ('{"path": "a", "line": true}', "argument 'line' must be a whole number"),
        ('{"path": "a", "line": -1}', "argument 'line' must be a whole number"),
        ('{"path": "a", "line": 1000001}', "argument 'line' must be a whole number"),
        ('{"path": "a", "line": 1e999}', "argument 'line' must be a whole number"),
        ('{"path": "a", "line": ' + "9" * 5000 + "}", "a number is too long"),
        ('{"path": "a", "line": -' + "9" * 19000 + "}", "a number is too long"),
        ("[" * 9_000 + "]" * 9_000, "nested too deeply"),
        ('{"path": "' + "x" * MAX_JSON_CHARS + '"}', f"longer than {MAX_JSON_CHARS} characters"),
    ],
    ids=lambda text: text[:30],
)
def test_what_does_not_fit_is_named(line: str, reason: str) -> None:
    assert reason in fault(line)


def test_a_tool_without_arguments_takes_none() -> None:
    assert fault('{"a": 1}', EMPTY) == "unknown argument 'a'; known are: none"


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert read_arguments('{"path": "\\ud83d\\ude00"}', SPEC).text("path") == "😀"


@given(st.text(max_size=10).filter(str.isprintable), st.integers(0, MAX_INTEGER))
def test_what_fits_is_taken_as_it_is(path: str, line: int) -> None:
    found = read_arguments(json.dumps({"path": path, "line": line}), SPEC)
    assert found.values == {"path": path, "line": line}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["path", "line", "x"]) | st.text(), inner),
)


@given(JSON.map(json.dumps) | st.text() | st.text(alphabet='{}[]":,path0123456789-eE.\\u'))
def test_only_faults_are_raised(line: str) -> None:
    with contextlib.suppress(ArgumentFault):
        found = read_arguments(line, SPEC)
        assert set(found.values) <= {"path", "line"}
        assert len(found.text("path")) <= 10


def test_an_example_shows_every_argument() -> None:
    assert example(SPEC) == '{"path": "…", "line": 1}'
    assert example(EMPTY) == "{}"


PATHS = (".editorconfig", "README.md", "src/shop/basket.py", "src/shop/cart.py", "web/basket.ts", "zoo/cart.py")


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("basket.py", "near it are: src/shop/basket.py, web/basket.ts"),
        ("lib/Basket.py", "near it are: src/shop/basket.py, web/basket.ts"),
        ("src/shop/cart.js", "near it are: src/shop/cart.py, zoo/cart.py"),
        ("shop/crat.py", "near it are: src/shop/cart.py, zoo/cart.py"),
        ("zoo/cart", "near it are: zoo/cart.py, src/shop/cart.py"),
        ("quite/another", "nothing there is like it"),
    ],
)
def test_a_path_that_is_not_there_is_answered_with_similar_ones(path: str, near: str) -> None:
    with pytest.raises(ArgumentFault) as refused:
        check_choices(Arguments({"path": path}), {"path": PATHS})
    assert str(refused.value) == f"argument 'path' cannot be {path!r}; {near}"
