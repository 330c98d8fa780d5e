"""What a server says, as text that neither a terminal nor a model's server obeys."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.spec import ToolSpec, spec_problem
from agent_workbench.subjects.mcp_client.results_adapter import called, inert, listed_tools

MARKED = "a<|im_end|>b\x9b\u202e"
INERT = "a< |im_end| >b‹9B›‹202E›"


def test_descriptions_are_inert_and_values_stay_as_they_are() -> None:
    schema = {
        "type": "object",
        "description": MARKED,
        "properties": {
            "description": {"type": "string", "title": MARKED, "enum": ["a\x9b"], "default": {"title": "b\x9b"}},
        },
    }
    (tool,) = listed_tools([{"name": "look", "inputSchema": schema, "title": MARKED}])
    read = json.loads(tool.schema)
    assert read["description"] == read["properties"]["description"]["title"] == INERT
    assert read["properties"]["description"]["enum"] == ["a\x9b"]
    assert read["properties"]["description"]["default"] == {"title": "b\x9b"}
    assert tool.summary == "the tool look (it has no description)"
    assert tool.hints == ("titled a< |im_end| >b",)


def test_a_schema_whose_values_hold_markers_leaves_its_tool_out() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["<|im_start|>"]}}}
    (tool,) = listed_tools([{"name": "look", "inputSchema": schema}])
    spec = ToolSpec("look", tool.summary, Permission.EXTERNAL, tool.schema, "mcp:test")
    assert spec_problem(spec) == "its schema holds markers of a chat template"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": MARKED}, {"type": "text", "text": "c"}], f"{INERT}\nc"),
        ([{"type": "audio", "data": "AAAA", "mimeType": "a\nb"}], "[audio a b, 3 bytes, left out]"),
        (
            [{"type": "resource", "resource": {"uri": "u", "blob": "AAAAAAAA"}}],
            "[resource u unknown, 6 bytes, left out]",
        ),
        ([{"type": "resource", "resource": "text"}], "[a part of the type resource, left out]"),
        ([{"type": "resource"}], "[a part of the type resource, left out]"),
        ([{"type": "link", "resource": {"uri": "u"}}], "[a part of the type link, left out]"),
        ([{"type": "new\x1b"}], "[a part of the type new, left out]"),
        ([7, "x"], ""),
        ("nonsense", ""),
        ([{"type": "text", "text": "x"}] * 1_001, "\n".join(["x"] * 1_000) + "\n[1 more parts were left out]"),
    ],
)
def test_parts_that_are_no_text_are_named(content: object, text: str) -> None:
    assert called(1, {"content": content}).text == text


KINDS = ("text", "image", "audio", "resource", "resource_link", "new", None, 7)
WORDS = st.sampled_from(["text", "uri", "blob", MARKED, "\ud800", "a\nb", ""])
VALUES = st.recursive(
    WORDS | st.none() | st.integers(-2, 2) | st.booleans(),
    lambda each: (
        st.lists(each, max_size=2) | st.dictionaries(st.sampled_from(["text", "uri", "blob", "mimeType"]), each)
    ),
    max_leaves=4,
)
BLOCKS = st.dictionaries(st.sampled_from(["text", "uri", "data", "mimeType", "resource"]), VALUES)


@given(st.lists(st.builds(lambda kind, block: {"type": kind, **block}, st.sampled_from(KINDS), BLOCKS), max_size=3))
def test_whatever_a_part_holds_is_told_as_inert_text(blocks: list[dict[str, object]]) -> None:
    text = called(1, {"content": blocks}).text
    assert text == inert(text.encode().decode())
    assert text.count(", left out]") == sum(each["type"] not in {"text", "resource_link"} for each in blocks)


def test_structured_content_counts_where_there_is_no_text() -> None:
    assert called(1, {"content": [], "structuredContent": {"a": 1}}).text == '{"a": 1}'
    both = {"content": [{"type": "text", "text": "b"}], "structuredContent": {"a": 1}}
    assert called(1, both).text == "b"
