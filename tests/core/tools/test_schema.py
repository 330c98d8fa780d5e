"""Schemas from outside: what a grammar can hold of them, and those that are refused with the reason."""

import json

import pytest

from agent_workbench.core.tools.schema import MAX_NODES, MAX_SCHEMA_CHARS, MAX_TEXT, SchemaError, read_schema
from agent_workbench.core.tools.shapes import (
    AnyShape,
    ArrayShape,
    ConstShape,
    IntegerShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    UnionShape,
)


def reading_of(**properties: object) -> tuple[dict[str, Shape], tuple[str, ...]]:
    found = read_schema(json.dumps({"type": "object", "properties": properties}))
    assert isinstance(found.shape, ObjectShape)
    return {each.name: each.shape for each in found.shape.properties}, found.unheld


def refusal(schema: object) -> str:
    with pytest.raises(SchemaError) as refused:
        read_schema(schema if isinstance(schema, str) else json.dumps(schema))
    return str(refused.value)


def nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def multiplying(levels: int) -> dict[str, object]:
    """Return a schema of a few hundred characters whose references stand for 4 to the power of `levels` schemas."""
    definitions = {
        f"d{at}": {"type": "object", "properties": {x: {"$ref": f"#/$defs/d{at + 1}"} for x in "abcd"}}
        for at in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def test_plain_keywords_are_held() -> None:
    shapes, unheld = reading_of(
        text={"type": "string", "maxLength": 9},
        count={"type": "integer", "minimum": 0, "exclusiveMaximum": 10},
        kind={"enum": ["a", 1, None]},
        list={"type": "array", "items": {"const": True}, "maxItems": 3},
        either={"type": ["string", "null"]},
        shared={"$ref": "#/properties/count"},
    )
    assert unheld == ()
    assert shapes["text"] == StringShape(0, 9)
    assert shapes["count"] == shapes["shared"] == IntegerShape(0, 9)
    assert shapes["kind"] == ConstShape(('"a"', "1", "null"))
    assert shapes["list"] == ArrayShape(ConstShape(("true",)), 0, 3)
    assert isinstance(shapes["either"], UnionShape)


def test_a_text_without_bounds_has_those_of_the_grammar() -> None:
    assert reading_of(text={"type": "string"})[0]["text"] == StringShape(0, MAX_TEXT)


@pytest.mark.parametrize(
    ("keyword", "schema"),
    [
        ("pattern", {"type": "string", "pattern": "^(a+)+$"}),
        ("multipleOf", {"type": "integer", "multipleOf": 3}),
        ("uniqueItems", {"type": "array", "uniqueItems": True}),
        ("minItems", {"type": "array", "minItems": 10_000}),
        ("minLength", {"type": "string", "minLength": 10**9}),
        ("allOf", {"allOf": [{"type": "string"}]}),
        ("not", {"not": {}}),
        ("if", {"type": "string", "if": {"minLength": 3}}),
        ("patternProperties", {"type": "object", "patternProperties": {"(a|a)*$": {}}}),
        ("minProperties", {"type": "object", "minProperties": 2}),
        ("dependentRequired", {"type": "object", "dependentRequired": {"a": ["b"]}}),
        ("unevaluatedProperties", {"type": "object", "unevaluatedProperties": {"type": "string"}}),
        ("anyOf", {"type": "object", "anyOf": [{"required": ["a"]}]}),
        ("oneOf", {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 2}]}),
        ("minLength", {"enum": ["a", "bb"], "minLength": 2}),
        ("minimum or maximum", {"type": "number", "minimum": 0.25, "maximum": 0.5}),
        ("minimum or maximum", {"type": "integer", "minimum": 10**20}),
        ("$ref", {"$ref": "#/properties/place"}),
        ("$ref", {"$ref": "#/$defs/x", "maxLength": 2}),
        ("$id", {"$id": "inner", "$ref": "#/$defs/x"}),
        ("$dynamicRef", {"$dynamicRef": "#meta"}),
        ("enum", {"enum": list(range(10_000))}),
    ],
)
def test_a_keyword_outside_of_the_subset_is_told_with_its_place(keyword: str, schema: object) -> None:
    assert f"{keyword} at place" in reading_of(place=schema)[1]


@pytest.mark.parametrize(
    ("reason", "schema"),
    [
        ("cannot be read: not one line of JSON", "{"),
        ("cannot be read: NaN is not a JSON value", '{"minimum": NaN}'),
        ("cannot be read: 'a' stands more than once", '{"a": 1, "a": 2}'),
        ("cannot be read: nested too deeply", '{"a":' * 9_000 + "1" + "}" * 9_000),
        ("cannot be read: a text holds half a character", '{"properties": {"\\ud800": {}}}'),
        ("cannot be read: a number is too", '{"minimum": ' + "9" * 5_000 + "}"),
        (f"more than {MAX_SCHEMA_CHARS:,}", {"description": "x" * 10_000_000}),
        ("is no JSON object", []),
        ("is no JSON object", True),
        ("does not describe an object", {"type": "string"}),
        ("does not describe an object", {"enum": [1]}),
        ("nested deeper than", nested(20)),
        (f"more than {MAX_NODES:,} parts", multiplying(6)),
        ("names more than 100 properties", {"properties": {f"p{at}": {} for at in range(101)}}),
        ("a property of more than", {"properties": {"x" * 101: {}}}),
        (
            "'https://evil.example/schema', which is outside of it; nothing is fetched",
            {"$ref": "https://evil.example/schema"},
        ),
        ("'other.json#/a', which is outside", {"properties": {"a": {"allOf": [{"$ref": "other.json#/a"}]}}}),
        ("'file:passwd', which is outside", {"properties": {"a": {"$dynamicRef": "file:passwd"}}}),
        ("'#/nowhere', which is not in it", {"properties": {"a": {"$ref": "#/nowhere"}}}),
        ("'#anchor', which is not in it", {"properties": {"a": {"$ref": "#anchor"}}}),
        ("allows no value at a", {"properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}}),
        ("allows no value at a", {"properties": {"a": {"type": "string", "minLength": 2, "maxLength": 1}}}),
        ("allows no value at a", {"properties": {"a": {"enum": [1], "type": "string"}}}),
        ("allows no value at a", {"properties": {"a": False}, "required": ["a"]}),
        ("allows no value at a", {"additionalProperties": False, "required": ["a"]}),
        ("type 'text'", {"properties": {"a": {"type": "text"}}}),
        ("neither an object nor true or false", {"properties": {"a": 1}}),
        ("minimum x", {"properties": {"a": {"type": "integer", "minimum": "x"}}}),
        ("maxLength -1", {"properties": {"a": {"type": "string", "maxLength": -1}}}),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(reason: str, schema: object) -> None:
    assert reason in refusal(schema)


def test_references_that_never_end_are_cut_where_they_begin_again() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}
    found = read_schema(json.dumps({"$ref": "#/$defs/node", "$defs": {"node": node}}))
    assert found.unheld == ("$ref at next",)
    assert isinstance(found.shape, ObjectShape)
    assert found.shape.properties[1] == Property("next", AnyShape())
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert read_schema(json.dumps(loop)).unheld == ("$ref",)
    assert read_schema(json.dumps({"$ref": "#"})).shape == ObjectShape(others=AnyShape())
