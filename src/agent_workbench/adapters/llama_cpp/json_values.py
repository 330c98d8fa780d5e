"""Values read from a server's JSON, without trust in its structure or its numbers."""

import json
from collections.abc import Mapping, Sequence

JsonObject = Mapping[str, object]

MOST = 1_000_000_000
"""The largest number that is accepted, of tokens or milliseconds; a larger one is read as 0."""
# A smaller duration would make a rate infinite.
_LEAST = 1e-6
_MOST_DIGITS = 18


def parse_object(text: str | bytes) -> JsonObject | None:
    """Return the JSON object in `text`, None if there is none or it nests too deeply."""
    try:
        value: object = json.loads(text, parse_int=_whole, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole(digits: str) -> int:
    """Return the number, 0 if it has too many digits: Python refuses to read more than 4,300."""
    return int(digits) if len(digits) <= _MOST_DIGITS else 0


def _no_number(_: str) -> None:
    """Read NaN and Infinity as None."""


def object_at(value: JsonObject, key: str) -> JsonObject:
    """Return the object under `key`, an empty one if there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def first_at(value: JsonObject, key: str) -> JsonObject:
    """Return the first element of the list under `key` if it is an object, else an empty one."""
    found = value.get(key)
    return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}


def list_at(value: JsonObject, key: str) -> Sequence[object]:
    """Return the list under `key`, an empty one if there is none."""
    found = value.get(key)
    return found if isinstance(found, list) else ()


def text_at(value: JsonObject, key: str) -> str:
    """Return the text under `key`; empty if there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def real_at(value: JsonObject, key: str) -> float:
    """Return the number under `key`; 0.0 if there is none, or it is negative, NaN or above `MOST`."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not _LEAST <= found <= MOST:
        return 0.0
    return float(found)


def number_at(value: JsonObject, key: str) -> int:
    """Return the number under `key` as a whole one, as `real_at` reads it."""
    return int(real_at(value, key))
