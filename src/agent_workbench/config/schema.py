"""Schema of `.agent.yml`: its keys and their fields, derived from the types and defaults in `core/settings`."""

import re
import typing
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.settings import Settings

# Keys whose field in the types has another name.
RENAMED = {"retrieval.max_chunk_tokens": "retrieval.chunker.max_tokens"}
# Wildcard for a name that the user gives: the key `endpoints.*.url` matches `endpoints.local.url`.
ANY = "*"
# Names that environment variables can spell too: small letters, no double underscore.
GIVEN_NAME = re.compile(r"[a-z](?:[-_]?[a-z0-9])*", re.ASCII)
MAX_NAME = 40


class SettingKey(Struct, frozen=True):
    """Key with a value: its type, default, and field (dotted, below `Settings`)."""

    wanted: object
    default: object
    field: str


KnownKeys = Mapping[str, SettingKey]


def setting_keys() -> dict[str, SettingKey]:
    """Return all keys, dotted as in `model.url`, with `*` for names that the user gives."""
    return {RENAMED.get(leaf.field, leaf.field): leaf for leaf in _keys_of(Settings(), "")}


def known_key(said: str, known: KnownKeys) -> str:
    """Return the known key that matches `said`, empty if there is none."""
    if ANY in said:
        return ""
    return said if said in known else next((key for key in known if ANY in key and _matches(said, key)), "")


def is_group(path: str, known: KnownKeys) -> bool:
    """Return True if there are keys below `path`."""
    return any(child_names(path, known))


def child_names(path: str, known: KnownKeys) -> list[str]:
    """Return the possible names directly below `path` (empty: at the top), `*` for any name."""
    parts = path.split(".") if path else []
    split = (key.split(".") for key in known)
    found = (key[len(parts)] for key in split if len(key) > len(parts) and _prefix_matches(parts, key[: len(parts)]))
    return list(dict.fromkeys(found))


def is_given_name(text: str) -> bool:
    """Return True for a valid name of an endpoint."""
    return len(text) <= MAX_NAME and bool(GIVEN_NAME.fullmatch(text))


def build(values: Mapping[str, object]) -> Settings:
    """Return the default settings with these values (by dotted key) replaced."""
    known = setting_keys()
    tree: dict[str, typing.Any] = {}
    for said, value in values.items():
        key = known_key(said, known)
        given = next((own for own, each in zip(said.split("."), key.split("."), strict=True) if each == ANY), "")
        *above, last = (given if each == ANY else each for each in known[key].field.split("."))
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        place[last] = value
    return typing.cast("Settings", _fill(Settings(), tree))


def _keys_of(defaults: object, path: str) -> Iterator[SettingKey]:
    for name, wanted in typing.get_type_hints(type(defaults)).items():
        field = f"{path}.{name}" if path else name
        default = getattr(defaults, name)
        entry = _entry_type(wanted)
        if isinstance(default, Struct):
            yield from _keys_of(default, field)
        elif isinstance(entry, type) and issubclass(entry, Struct):
            yield from _keys_of(typing.cast("type", entry)(), f"{field}.{ANY}")
        elif entry is not None:
            yield SettingKey(entry, (), f"{field}.{ANY}")
        else:
            yield SettingKey(wanted, default, field)


def _entry_type(wanted: object) -> object:
    """Return the value type of a mapping with user-given names, None for any other type."""
    inner = typing.get_args(wanted)[:1]
    pair = typing.get_args(inner[0]) if inner else ()
    # A mapping from text to text is a single value, such as `ui.keys`.
    return pair[1] if len(pair) == 2 and pair[0] is str and pair[1] not in {str, ...} else None


def _fill(defaults: object, changes: Mapping[str, typing.Any]) -> object:
    hints = typing.get_type_hints(type(defaults))
    values: dict[str, object] = {}
    for name, change in changes.items():
        default, entry = getattr(defaults, name), _entry_type(hints[name])
        if isinstance(default, Struct):
            values[name] = _fill(default, change)
        elif isinstance(entry, type) and issubclass(entry, Struct):
            made = typing.cast("type", entry)
            values[name] = tuple((each, _fill(made(), inner)) for each, inner in change.items())
        elif entry is not None:
            values[name] = tuple(change.items())
        else:
            values[name] = change
    return replace(typing.cast("typing.Any", defaults), **values)


def _matches(said: str, key: str) -> bool:
    parts, wanted = said.split("."), key.split(".")
    return len(parts) == len(wanted) and _prefix_matches(parts, wanted)


def _prefix_matches(parts: list[str], wanted: list[str]) -> bool:
    return all(each in {part, ANY} for part, each in zip(parts, wanted, strict=True))
