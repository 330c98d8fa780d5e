"""JSON Schema of a queue file: one task, with the keys that its reader knows."""

from agent_workbench.adapters.plans.queued_task import KEYS
from agent_workbench.adapters.plans.task_parser import EDIT_KEYS, MAX_EDITS, SUBTASK, VERIFY, VerifyCommand
from agent_workbench.core.plan import Task, TaskEdit
from agent_workbench.core.yaml_documents.json_schema import DIALECT, JsonSchema, mapping_schema, schema_of
from agent_workbench.core.yaml_documents.typed_values import mapping_fields

TITLE = "Task in a queue (tasks/queue/PROJECT/*.yaml)"


def queue_task_schema() -> JsonSchema:
    """Return the schema. It is looser than the reader only about texts, such as globs and diffs."""
    known = mapping_fields(Task)
    edits = mapping_fields(TaskEdit)
    forms = [mapping_schema({key: schema_of(str) for key in edits if key in form}, form) for form in EDIT_KEYS]
    own: JsonSchema = {
        "priority": schema_of(int),
        VERIFY: {"type": "array", "items": {"anyOf": [schema_of(str), schema_of(VerifyCommand)]}},
        "edits": {"type": "array", "maxItems": MAX_EDITS, "items": {"oneOf": [*forms]}},
        "subtask": {"type": "string", "pattern": f"^(?:{SUBTASK.pattern})?$"},
    }
    schema = mapping_schema({key: own.get(key) or schema_of(known[key]) for key in KEYS})
    return {"$schema": DIALECT, "title": TITLE, **schema, "anyOf": [_with("goal"), _with("description")]}


def _with(key: str) -> JsonSchema:
    return {"required": [key], "properties": {key: {"type": "string"}}}
