"""JSON Schema of the types that `typed_values` reads, so that an editor knows what the reader knows."""

import types
import typing
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from agent_workbench.core.ids import TASK_ID, TaskId
from agent_workbench.core.plan import OrNumber
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.core.yaml_documents.typed_values import NUMBER_LIMIT, mapping_fields, required_fields

JsonSchema: TypeAlias = "dict[str, JsonValue]"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MOST_DIGITS = 18


def schema_of(wanted: object) -> JsonSchema:
    """Return the schema of a type that `read_value` takes."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is types.UnionType:
        return or_nothing(schema_of(arguments[0]))
    if wanted == OrNumber:
        return {"type": ["string", "integer"], "minimum": 0}
    if origin is tuple and typing.get_args(arguments[0]):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if wanted is TaskId:
        return {"type": "string", "pattern": f"^(?:{TASK_ID.pattern})$"}
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return {"enum": [each.value for each in wanted]}
    if isinstance(wanted, type) and issubclass(wanted, Struct):
        properties: JsonSchema = {name: schema_of(hint) for name, hint in mapping_fields(wanted).items()}
        return mapping_schema(properties, required_fields(wanted))
    return _SCALARS.get(wanted, {"type": "string"}) if isinstance(wanted, type) else {"type": "string"}


def mapping_schema(properties: JsonSchema, required: typing.Collection[str] = ()) -> JsonSchema:
    """Return the schema of a mapping with these keys and no others; a value that is not required may be left open."""
    known: JsonSchema = {
        name: schema if name in required else or_nothing(schema)
        for name, schema in properties.items()
        if isinstance(schema, dict)
    }
    needed: list[JsonValue] = [*sorted(required)]
    return {"type": "object", "properties": known, "additionalProperties": False, "required": needed}


def or_nothing(schema: JsonSchema) -> JsonSchema:
    """Return the schema that also takes a value that was left open (`key:` alone)."""
    return schema if "anyOf" in schema else {"anyOf": [schema, {"type": "null"}]}


_SCALARS: typing.Mapping[type, JsonSchema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0, "maximum": 10**_MOST_DIGITS - 1},
    float: {"type": "number", "minimum": 0, "exclusiveMaximum": NUMBER_LIMIT},
}
