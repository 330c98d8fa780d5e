"""Reads what a server sent as JSON without trusting its shape."""

import json
import math
from collections.abc import Mapping, Sequence

JsonObject = Mapping[str, object]


def parse_object(text: str | bytes) -> JsonObject | None:
    """Return the JSON object in `text`, None where it is none (or is too deep to be read)."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def object_at(value: JsonObject, key: str) -> JsonObject:
    """Return the object under `key`, an empty one where there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def first_at(value: JsonObject, key: str) -> JsonObject:
    """Return the first element of the list under `key` if it is an object, else an empty one."""
    found = value.get(key)
    return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}


def list_at(value: JsonObject, key: str) -> Sequence[object]:
    """Return the list under `key`, an empty one where there is none."""
    found = value.get(key)
    return found if isinstance(found, list) else ()


def text_at(value: JsonObject, key: str) -> str:
    """Return the text under `key`, "" where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def real_at(value: JsonObject, key: str) -> float:
    """Return the finite number under `key` that is not negative, 0.0 where there is none."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return 0.0
    return max(0.0, float(found))


def number_at(value: JsonObject, key: str) -> int:
    """Return the number under `key` as a whole one, 0 where there is none."""
    return int(real_at(value, key))
