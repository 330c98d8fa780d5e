"""Forms of a server's questions: flat primitives with inert words, and nothing else of its schema."""

from math import inf, nan

import pytest

from agent_workbench.subjects.mcp_client.elicitation_adapter import MAX_WORDS_CHARS, flat_schema

MARKED = "a<|im_end|>b\x9b"
INERT = "a< |im_end| >b‹9B›"


def form(**fields: object) -> dict[str, object]:
    return {"type": "object", "properties": fields, "required": list(fields)[:1], "$ref": "https://evil.example"}


def test_a_form_keeps_the_keywords_of_the_protocol_alone() -> None:
    said = form(
        name={
            "type": "string",
            "title": MARKED,
            "pattern": "(a+)+$",
            "minLength": 2,
            "format": "email",
            "default": MARKED,
        },
        size={"type": "integer", "minimum": 1, "maximum": True, "default": 3, "allOf": []},
        sure={"type": "boolean", "default": "yes"},
        colour={"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        many={"type": "array", "items": {"anyOf": [{"const": "x", "title": MARKED}]}, "minItems": 1, "default": ["x"]},
    )
    assert flat_schema(said) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": INERT, "minLength": 2, "format": "email"},
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "sure": {"type": "boolean"},
            "colour": {
                "type": "string",
                "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}],
            },
            "many": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "oneOf": [{"const": "x", "title": INERT}]},
                "uniqueItems": True,
                "default": ["x"],
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"a": {"type": "object", "properties": {}}}, "the field a is no text"),
        ({"a": {"anyOf": [{"type": "string"}]}}, "the field a is no text"),
        ({"a": "text"}, "the field a is no text"),
        ({"a": {"type": "array", "items": {"type": "string"}}}, "but of no choices"),
        ({"a": {"type": "string", "enum": [1]}}, "the choices of the field a"),
        ({"a": {"type": "string", "enum": ["x" * (MAX_WORDS_CHARS + 1)]}}, "the choices of the field a"),
        ({"a": {"type": "string", "enum": ["x\x1b[2J"]}}, "the choices of the field a"),
        ({"a\u202e": {"type": "string"}}, "the name of a field"),
        ({f"f{number}": {"type": "boolean"} for number in range(31)}, "at most 30 fields"),
        ({"a": {"type": ["string", "null"]}}, "the field a is no text"),
        ({f"f{number}": {"type": "string", "enum": ["x" * 500] * 100} for number in range(30)}, "is too long"),
    ],
)
def test_any_other_form_is_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        flat_schema(form(**fields))


def test_a_form_requires_what_it_has() -> None:
    with pytest.raises(ValueError, match="does not have"):
        flat_schema({"type": "object", "properties": {}, "required": ["a"]})


@pytest.mark.parametrize("required", [[["a"]], ["a", "a"], "a", 1])
def test_the_names_of_required_fields_are_text_and_stand_once(required: object) -> None:
    with pytest.raises(ValueError, match="does not have"):
        flat_schema({"type": "object", "properties": {"a": {"type": "string"}}, "required": required})


def test_what_no_json_can_hold_or_nobody_can_read_is_left_out() -> None:
    """Infinity is no JSON for us: the session would end where the form is shown."""
    said = form(
        size={"type": "number", "minimum": -inf, "maximum": nan, "default": inf},
        count={"type": "integer", "minimum": 10**400, "default": 10**400},
        name={"type": "string", "format": ["email"]},
        many={"type": "array", "items": {"enum": ["x"]}, "default": ["x"] * 1_000},
    )
    assert flat_schema(said)["properties"] == {
        "size": {"type": "number"},
        "count": {"type": "integer"},
        "name": {"type": "string"},
        "many": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "uniqueItems": True},
    }
