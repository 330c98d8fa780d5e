"""Arguments of calls: what a client may send, and what is refused with the argument's name."""

import pytest

from agent_workbench.mcp.served_tool import (
    Arguments,
    BadArguments,
    JsonObject,
    ServedTool,
    check_arguments,
    files_field,
    name_field,
    number_field,
    schema_of,
    text_field,
)


async def nothing(_: Arguments) -> JsonObject:
    return {}


REVIEW = ServedTool(
    "review",
    "reviews",
    schema_of(
        {"project_root": name_field("root"), "files": files_field("files")},
        {"context": text_field("context"), "limit": number_field("limit", 5)},
    ),
    nothing,
)
GOOD: JsonObject = {"project_root": "/repo", "files": ["a.py"]}


def test_arguments_that_fit_are_taken() -> None:
    taken = check_arguments(REVIEW, {**GOOD, "limit": 3, "context": None})
    assert (taken.text("project_root"), taken.texts("files"), taken.number("limit", 1)) == ("/repo", ("a.py",), 3)
    assert taken.text("context", "none") == "none"


def nested(depth: int) -> object:
    value: object = "deep"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({"files": ["a.py"]}, "project_root"),
        ({"project_root": "", "files": ["a.py"]}, "project_root"),
        ({"project_root": "/repo"}, "files"),
        ({**GOOD, "files": []}, "files"),
        ({**GOOD, "files": "a.py"}, "files"),
        ({**GOOD, "files": [1]}, "files"),
        ({**GOOD, "files": ["a.py"] * 51}, "files"),
        ({**GOOD, "project_root": 7}, "project_root"),
        ({**GOOD, "project_root": "x" * 1_001}, "project_root"),
        ({**GOOD, "limit": 6}, "limit"),
        ({**GOOD, "limit": True}, "limit"),
        ({**GOOD, "limit": 10**400}, "limit"),
        ({**GOOD, "approve": "P-1"}, "approve"),
        ({**GOOD, "context": float("nan")}, "NaN"),
        ({**GOOD, "context": "\ud800"}, "surrogate"),
        ({**GOOD, "context": nested(100)}, "nested"),
        ({**GOOD, "context": nested(100_000)}, "JSON"),
        ({**GOOD, "context": "x" * 400_000}, "characters"),
        (None, "project_root"),
        ([], "object"),
        ({**GOOD, "context": b"bytes"}, "JSON"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(sent: object, named: str) -> None:
    with pytest.raises(BadArguments, match=named):
        check_arguments(REVIEW, sent)
