"""Parsers of single JSON Schema keywords: `type`, the sizes of strings and arrays, the bounds of numbers."""

from collections.abc import Mapping

from agent_workbench.core.tools.strict_json import JsonValue

JsonObject = Mapping[str, JsonValue]

_OBJECT = ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties")
_ARRAY = ("items", "minItems", "maxItems", "prefixItems", "contains", "uniqueItems")
_STRING = ("minLength", "maxLength", "pattern")
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_GROUPS = {"object": _OBJECT, "array": _ARRAY, "string": _STRING, "number": _NUMBER}
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")


class SchemaError(ValueError):
    """The reason why a schema is refused; it completes the sentence "its schema …"."""


def named_place(place: str) -> str:
    """Return the path of a place in a schema, for error messages."""
    return place or "its top"


def allowed_types(schema: JsonObject, place: str) -> tuple[str, ...]:
    """Return the types that a schema allows; without `type`, the type that its keywords belong to."""
    given = schema.get("type")
    if given is None:
        return (next((name for name, words in _GROUPS.items() if any(word in schema for word in words)), "any"),)
    names = given if isinstance(given, list) else [given]
    found = tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name in TYPES))
    if not found or len(found) < len(names):
        raise SchemaError(f"is not valid at {named_place(place)}: type {str(given)[:80]!r}")
    return found


def types_of(value: JsonValue) -> tuple[str, ...]:
    """Return the JSON Schema types of a value."""
    match value:
        case bool():
            return ("boolean",)
        case None:
            return ("null",)
        case int():
            return ("integer", "number")
        case float():
            return ("number", "integer") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case _:
            return ("object",)


def size_keyword(schema: JsonObject, keyword: str, place: str) -> int | None:
    """Return the value of a size keyword such as `maxLength`, None if the schema has none."""
    value = schema.get(keyword)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        raise SchemaError(f"is not valid at {named_place(place)}: {keyword} {str(value)[:40]}")
    return int(value)


def bounded_size(least: int, most: int | None, cap: int, place: str) -> int:
    """Return the maximum size: `most` of the schema, limited to `cap`, but never less than `least`."""
    if most is not None and most < least:
        raise SchemaError(f"allows no value at {named_place(place)}")
    return max(least, cap if most is None else min(most, cap))


def number_bounds(schema: JsonObject, place: str) -> tuple[float | None, float | None, bool, bool]:
    """Return minimum and maximum of a number, and for each a flag if it is exclusive."""
    least, above = _number(schema, "minimum", place), _number(schema, "exclusiveMinimum", place)
    most, below = _number(schema, "maximum", place), _number(schema, "exclusiveMaximum", place)
    low = above if least is None or (above is not None and above >= least) else least
    high = below if most is None or (below is not None and below <= most) else most
    return low, high, low is not None and low == above, high is not None and high == below


def _number(schema: JsonObject, keyword: str, place: str) -> float | None:
    value = schema.get(keyword)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"is not valid at {named_place(place)}: {keyword} {str(value)[:40]}")
    return value


def whole_range(low: int, high: int, largest: int) -> tuple[int, int] | None:
    """Return the range of integers from `low` to `high`, limited to ±`largest`; None if it is empty."""
    low, high = max(low, -largest), min(high, largest)
    return (low, high) if low <= high else None
