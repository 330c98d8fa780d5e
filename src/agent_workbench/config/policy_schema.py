"""JSON Schema of a policy: the settings that one may hold, with their types and what the reader refuses of them."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from agent_workbench.config.policy_file import ALLOWED
from agent_workbench.config.schema import setting_keys
from agent_workbench.config.value_checks import value_problem
from agent_workbench.core.settings import ALL_TOOLS, TOOL_ALIASES, Permission, Rule
from agent_workbench.core.tools.permissions import PERMISSIONS
from agent_workbench.core.yaml_documents.json_schema import DIALECT, JsonSchema, mapping_schema, schema_of
from agent_workbench.core.yaml_documents.typed_values import mapping_fields

TITLE = "Policy of unattended work (agent run --policy, agent worker --policy)"


def policy_schema() -> JsonSchema:
    """Return the schema. It is looser than the reader only about texts, such as the paths of rules."""
    leaves = {key: _value_schema(key, leaf.wanted) for key, leaf in setting_keys().items() if key.startswith(ALLOWED)}
    return {"$schema": DIALECT, "title": TITLE, **_group_schema("", leaves)}


def _group_schema(prefix: str, leaves: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return the schema of a group: of its settings, and of the groups in it."""
    names = dict.fromkeys(key.removeprefix(prefix).partition(".")[0] for key in leaves if key.startswith(prefix))
    return mapping_schema(
        {name: leaves.get(f"{prefix}{name}") or _group_schema(f"{prefix}{name}.", leaves) for name in names}
    )


def _value_schema(key: str, wanted: object) -> JsonSchema:
    """Return the schema of a setting, narrowed by what `value_problem` says about it."""
    if wanted == tuple[Rule, ...]:
        return {"type": "array", "items": {"oneOf": list(_rule_schemas())}}
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return {"enum": [each.value for each in wanted if not value_problem(key, each)]}
    schema = schema_of(wanted)
    if schema.get("minimum") == 0 and value_problem(key, 0):
        return {**{name: value for name, value in schema.items() if name != "minimum"}, "exclusiveMinimum": 0}
    if schema.get("type") == "array" and value_problem(key, ("no such name",)):
        names = (*ALL_TOOLS, *TOOL_ALIASES)
        return {"type": "array", "items": {"enum": [name for name in names if not value_problem(key, (name,))]}}
    return schema


def _rule_schemas() -> Iterator[JsonSchema]:
    """Yield a schema for each form of a rule: its kind with exactly one of the fields that fit it."""
    fields = mapping_fields(Rule)
    for kind in Permission:
        for name in PERMISSIONS[kind].rule_fields:
            schema = schema_of(fields[name])
            if name == "any":
                schema = {"const": True}
            elif schema.get("type") == "array":
                schema = {**schema, "minItems": 1}
            yield mapping_schema({"kind": {"const": kind.value}, name: schema}, ("kind", name))
