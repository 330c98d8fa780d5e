"""Strict reading of JSON from outside: no name twice, no NaN, and bounds on depth and numbers where it is foreign."""

import json
import re
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

MAX_DEPTH = 48
_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class JsonError(ValueError):
    """The reason why a text is not read as JSON; `str` is a sentence without its full stop."""


class JsonFormError(JsonError):
    """The text is no JSON at all; `str` completes the sentence "it is …"."""


class JsonNameError(JsonError):
    """An object has a name twice; `str` completes the sentence "the name …"."""


def read_json(text: str) -> JsonValue:
    """Return the value of a JSON text; raise `JsonError`."""
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise JsonFormError(f"not one line of JSON: {error.msg} at character {error.pos}") from None
    except JsonError:
        raise
    except ValueError:  # Python reads no number of more than 4300 digits
        raise JsonError("a number is too long") from None
    except RecursionError:
        raise JsonFormError("nested too deeply") from None
    return value


def read_bounded_json(text: str) -> JsonValue:
    """Return the value of a JSON text of at most `MAX_DEPTH` levels, with finite numbers and whole characters.

    Raises `JsonError`.
    """
    if _depth(text) > MAX_DEPTH:
        raise JsonFormError("nested too deeply")
    value = read_json(text)
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # 1e999 is read as infinity, and Python writes no integer of more than 4300 digits
        raise JsonError("a number is too large") from None
    if _SURROGATE.search(written):
        raise JsonError("a text holds half a character (a lone surrogate)")
    return value


def one_line(value: JsonValue) -> str:
    """Return a value as JSON on one line; characters that cannot be seen are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(map(_visible, text))


def indented_json(text: str) -> str:
    """Return JSON text on several lines, as it is where it is no JSON."""
    try:
        return json.dumps(read_json(text), ensure_ascii=False, indent=2)
    except JsonError:
        return text


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def _depth(text: str) -> int:
    """Return the nesting depth of brackets outside of strings."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonValue:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise JsonNameError(f"{repeated!r} stands more than once")
    return dict(pairs)


def _constant(name: str) -> JsonValue:
    raise JsonError(f"{name} is not a JSON value")
