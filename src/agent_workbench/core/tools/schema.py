"""Reader of JSON Schemas: the shape that a grammar can hold arguments to, and the keywords that it cannot.

Nothing is fetched, no pattern is compiled, and size, depth and references are bounded before they are followed.
"""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from agent_workbench.core.tools.shapes import (
    AnyShape,
    ArrayShape,
    BooleanShape,
    ConstShape,
    IntegerShape,
    NullShape,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    UnionShape,
)
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, one_line, read_bounded_json

JsonObject = Mapping[str, JsonValue]

_OBJECT = ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties")
_ARRAY = ("items", "minItems", "maxItems", "prefixItems", "contains", "uniqueItems")
_STRING = ("minLength", "maxLength", "pattern")
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_GROUPS = {"object": _OBJECT, "array": _ARRAY, "string": _STRING, "number": _NUMBER}
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")

MAX_SCHEMA_CHARS = 65_536
MAX_DEPTH = 16
MAX_NODES = 1_000
MAX_PROPERTIES = 100
MAX_NAME_CHARS = 100
MAX_VALUES, MAX_VALUE_CHARS = 200, 10_000
MAX_TEXT = 2_000
"""Characters of a text, where the schema does not say another number."""
MAX_LONG_TEXT = 16_000
"""Characters of a text whose schema allows more than `MAX_TEXT`, such as a script."""
MAX_ITEMS = 16
"""Elements of an array, where the schema does not allow fewer."""
LARGEST = 10**15 - 1
"""Whole numbers beyond it are not written: a JSON reader may round them."""
LARGEST_WITH_FRACTION = 10**9 - 1
"""The same for numbers with six digits behind the point."""

_HELD = frozenset(
    {
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const", "anyOf", "oneOf", "type"),
    }
)
_UNHELD = frozenset(
    {
        *("allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
        *("unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems", "prefixItems"),
        *(
            "additionalItems",
            "multipleOf",
            "pattern",
            "$dynamicRef",
            "$recursiveRef",
            "disallow",
            "extends",
            "divisibleBy",
        ),
    }
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ASSERTIONS = _HELD | _UNHELD


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


class SchemaReading(Struct, frozen=True):
    """The part of a schema that a grammar can enforce: `shape`.

    `unheld` are the keywords that it cannot, with their places.
    """

    shape: ObjectShape | UnionShape
    unheld: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def read_schema(text: str) -> SchemaReading:
    """Return the reading of a schema of arguments; raise `SchemaError` for one that is refused."""
    if len(text) > MAX_SCHEMA_CHARS:
        raise SchemaError(f"has {len(text):,} characters, more than {MAX_SCHEMA_CHARS:,}")
    try:
        schema = read_bounded_json(text)
    except JsonError as error:
        raise SchemaError(f"cannot be read: {error}") from None
    if not isinstance(schema, dict):
        raise SchemaError("is no JSON object")
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise SchemaError(f"refers to {reference[:200]!r}, which is outside of it; nothing is fetched")
    reader = _SchemaReader(schema)
    shape = reader.read(schema, "", 0, ())
    return SchemaReading(_objects_only(shape), tuple(dict.fromkeys(reader.unheld)))


def _objects_only(shape: Shape) -> ObjectShape | UnionShape:
    """Return the shape of arguments, restricted to objects."""
    if isinstance(shape, ObjectShape):
        return shape
    if isinstance(shape, UnionShape):
        objects = tuple(each for each in shape.choices if isinstance(each, ObjectShape))
        if objects:
            return objects[0] if len(objects) == 1 else UnionShape(objects)
    if isinstance(shape, AnyShape):
        return ObjectShape(others=AnyShape())
    raise SchemaError("does not describe an object")


def _references(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (found for name in _REFERENCES if isinstance(found := value.get(name), str))
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


class _SchemaReader:
    """Walks one schema; `unheld` collects the keywords that the shapes leave out."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0
        self.unheld: list[str] = []

    def read(self, schema: JsonValue, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        """Return the shape of the schema at `place`; `followed` are the references on the way to it."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise SchemaError(f"has more than {MAX_NODES:,} parts when its references are followed")
        if depth > MAX_DEPTH:
            raise SchemaError(f"is nested deeper than {MAX_DEPTH} levels")
        if schema is True:
            return AnyShape()
        if schema is False:
            raise SchemaError(f"allows no value at {named_place(place)}")
        if not isinstance(schema, dict):
            raise SchemaError(f"is not valid at {named_place(place)}: neither an object nor true or false")
        if depth and any(isinstance(schema.get(name), str) for name in ("$id", "id", "$anchor", "$dynamicAnchor")):
            # It changes what the references below it mean.
            return self._any("$id", place)
        if "$ref" in schema:
            return self._followed(schema, place, depth, followed)
        for keyword in schema:
            if keyword in _UNHELD and schema[keyword] is not False:
                self._leave(keyword, place)
        return self._of_keywords(schema, place, depth, followed)

    def _of_keywords(self, schema: JsonObject, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        asserted = {keyword for keyword in schema if keyword in _ASSERTIONS}
        for keyword in ("const", "enum"):
            if keyword in schema:
                return self._values(schema, keyword, asserted - {keyword, "type"}, place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                if asserted - {keyword}:
                    self._leave(keyword, place)
                    continue
                return self._union(schema, keyword, place, depth, followed)
        shapes = tuple(self._of_type(each, schema, place, depth, followed) for each in allowed_types(schema, place))
        return shapes[0] if len(shapes) == 1 else UnionShape(shapes)

    def _of_type(self, name: str, schema: JsonObject, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        match name:
            case "object":
                return self._object(schema, place, depth, followed)
            case "array":
                return self._array(schema, place, depth, followed)
            case "string":
                return self._string(schema, place)
            case "integer":
                return self._integer(schema, place)
            case "number":
                return self._number(schema, place)
            case "boolean":
                return BooleanShape()
            case "null":
                return NullShape()
            case _:
                return AnyShape()

    def _followed(self, schema: JsonObject, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        reference = schema["$ref"]
        if not isinstance(reference, str):
            raise SchemaError(f"is not valid at {named_place(place)}: $ref is no text")
        if reference in followed or "%" in reference or any(keyword in _ASSERTIONS for keyword in schema):
            return self._any("$ref", place)
        target = _target(self._root, reference)
        return self.read(target, place, depth + 1, (*followed, reference))

    def _values(self, schema: JsonObject, keyword: str, others: set[str], place: str) -> Shape:
        given = schema[keyword]
        values = [given] if keyword == "const" else given if isinstance(given, list) else []
        types = set(allowed_types(schema, place)) if "type" in schema else set(TYPES)
        texts = tuple(dict.fromkeys(one_line(value) for value in values if types & set(types_of(value))))
        if not texts:
            raise SchemaError(f"allows no value at {named_place(place)}")
        if len(texts) > MAX_VALUES or sum(map(len, texts)) > MAX_VALUE_CHARS:
            return self._any(keyword, place)
        for other in sorted(others - _UNHELD):
            self._leave(other, place)
        return ConstShape(texts)

    def _union(self, schema: JsonObject, keyword: str, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        given = schema[keyword]
        if not isinstance(given, list) or not given:
            raise SchemaError(f"is not valid at {named_place(place)}: {keyword} is no list of schemas")
        choices = [each for each in given if each is not False]
        shapes = tuple(self.read(each, place, depth + 1, followed) for each in choices)
        if not shapes:
            raise SchemaError(f"allows no value at {named_place(place)}")
        if keyword == "oneOf" and not _disjoint(shapes):
            self._leave(keyword, place)
        return shapes[0] if len(shapes) == 1 else UnionShape(shapes)

    def _string(self, schema: JsonObject, place: str) -> Shape:
        least = size_keyword(schema, "minLength", place) or 0
        most = size_keyword(schema, "maxLength", place)
        if least > MAX_TEXT:
            self._leave("minLength", place)
            return StringShape(MAX_TEXT, MAX_TEXT)
        return StringShape(least, bounded_size(least, most, MAX_TEXT if most is None else MAX_LONG_TEXT, place))

    def _integer(self, schema: JsonObject, place: str) -> Shape:
        least, most, above, below = number_bounds(schema, place)
        low = None if least is None else math.floor(least) + 1 if above else math.ceil(least)
        high = None if most is None else math.ceil(most) - 1 if below else math.floor(most)
        if low is not None and high is not None and low > high:
            raise SchemaError(f"allows no value at {named_place(place)}")
        found = whole_range(-LARGEST if low is None else low, LARGEST if high is None else high, LARGEST)
        return IntegerShape(*found) if found else self._any("minimum or maximum", place)

    def _number(self, schema: JsonObject, place: str) -> Shape:
        least, most, above, below = number_bounds(schema, place)
        if least is not None and most is not None and (least > most or (least == most and (above or below))):
            raise SchemaError(f"allows no value at {named_place(place)}")
        low, high = (-LARGEST if least is None else least), (LARGEST if most is None else most)
        shape = NumberShape(
            whole=whole_range(
                math.floor(low) + 1 if above else math.ceil(low),
                math.ceil(high) - 1 if below else math.floor(high),
                LARGEST,
            ),
            fractions=whole_range(max(0, math.ceil(low)), math.floor(high) - 1, LARGEST_WITH_FRACTION),
            negative_fractions=whole_range(max(0, math.ceil(-high)), math.floor(-low) - 1, LARGEST_WITH_FRACTION),
        )
        if shape == NumberShape(None, None, None):
            return self._any("minimum or maximum", place)
        return shape

    def _array(self, schema: JsonObject, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        least, most = size_keyword(schema, "minItems", place) or 0, size_keyword(schema, "maxItems", place)
        given = schema.get("items", True)
        if isinstance(given, list):
            self._leave("items", place)
            given = True
        if given is False or most == 0:
            if least:
                raise SchemaError(f"allows no value at {named_place(place)}")
            return ArrayShape(None)
        if least > MAX_ITEMS:
            self._leave("minItems", place)
            least, most = MAX_ITEMS, None
        items = self.read(given, f"{place}[]", depth + 1, followed)
        return ArrayShape(items, least, bounded_size(least, most, MAX_ITEMS, place))

    def _object(self, schema: JsonObject, place: str, depth: int, followed: tuple[str, ...]) -> Shape:
        given = schema.get("properties", {})
        required = schema.get("required", [])
        if not isinstance(given, dict) or not isinstance(required, list):
            raise SchemaError(f"is not valid at {named_place(place)}: properties or required")
        names = dict.fromkeys((*given, *(name for name in required if isinstance(name, str))))
        if len(names) > MAX_PROPERTIES:
            raise SchemaError(f"names more than {MAX_PROPERTIES} properties at {named_place(place)}")
        others = schema.get("additionalProperties", True)
        found: list[Property] = []
        for name in names:
            below = f"{place}.{name}" if place else name
            if len(name) > MAX_NAME_CHARS:
                raise SchemaError(f"has a property of more than {MAX_NAME_CHARS} characters: {name[:40]!r}…")
            of_name = given.get(name, others)
            if of_name is False and name not in required:
                continue
            shape = self.read(of_name, below, depth + 1, followed)
            found.append(Property(name, shape, name in required, _note(of_name)))
        if found or others is False:
            return ObjectShape(tuple(found))
        return ObjectShape(others=self.read(others, f"{place}.*" if place else "*", depth + 1, followed))

    def _leave(self, keyword: str, place: str) -> None:
        self.unheld.append(f"{keyword} at {place}" if place else keyword)

    def _any(self, keyword: str, place: str) -> Shape:
        self._leave(keyword, place)
        return AnyShape()


def _target(root: JsonObject, reference: str) -> JsonValue:
    """Return the part of the schema that a reference names; raise `SchemaError` if there is none."""
    value: JsonValue = dict(root)
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name[:6]) < len(value):
            value = value[int(name[:6])]
        else:
            raise SchemaError(f"refers to {reference[:200]!r}, which is not in it")
    if not reference.startswith("#/") and reference != "#":
        raise SchemaError(f"refers to {reference[:200]!r}, which is not in it")
    return value


def _disjoint(shapes: tuple[Shape, ...]) -> bool:
    """Return True if no value can be of two of these shapes."""
    seen: set[type] = set()
    for shape in shapes:
        kind = IntegerShape if isinstance(shape, NumberShape) else type(shape)
        if kind in seen or kind in {AnyShape, ConstShape, UnionShape}:
            return False
        seen.add(kind)
    return True


def _note(schema: JsonValue) -> str:
    found = schema.get("description") if isinstance(schema, dict) else None
    return found if isinstance(found, str) else ""
