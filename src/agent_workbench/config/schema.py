"""Which keys `.agent.yml` has, what type each is of, and where in the settings its value belongs."""

import re
import typing
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.settings import Settings

# The dotted names of product keys whose place in the types is another one.
RENAMED = {"retrieval.max_chunk_tokens": "retrieval.chunker.max_tokens"}
NOT_YET = {"retrieval.bm25"}
# Stands in a key for a name that the user gives: `endpoints.*.url` is known, `endpoints.local.url` is said.
ANY = "*"
# What the environment can spell too: small letters, and no two underscores beside each other.
GIVEN_NAME = re.compile(r"[a-z](?:[-_]?[a-z0-9])*", re.ASCII)
MAX_NAME = 40


class Leaf(Struct, frozen=True):
    """A key that holds a value: its type, its default and the field it fills (dotted, below `Settings`)."""

    wanted: object
    default: object
    field: str


Known = Mapping[str, Leaf]


def leaves() -> dict[str, Leaf]:
    """Return every key that can be set, dotted as in `model.url`, with `*` for a name that the user gives."""
    return {RENAMED.get(leaf.field, leaf.field): leaf for leaf in _leaves_of(Settings(), "")}


def key_of(said: str, known: Known) -> str:
    """Return the entry of `known` under which the key `said` stands, empty where there is none."""
    if ANY in said:
        return ""
    return said if said in known else next((key for key in known if ANY in key and _fits(said, key)), "")


def is_group(path: str, known: Known) -> bool:
    """Return whether keys stand under `path`."""
    return any(below(path, known))


def below(path: str, known: Known) -> list[str]:
    """Return the names that can stand directly under `path` (empty: at the top), `*` for any."""
    parts = path.split(".") if path else []
    split = (key.split(".") for key in known)
    found = (key[len(parts)] for key in split if len(key) > len(parts) and _fit(parts, key[: len(parts)]))
    return list(dict.fromkeys(found))


def is_given_name(text: str) -> bool:
    """Return whether the user may call an endpoint so."""
    return len(text) <= MAX_NAME and bool(GIVEN_NAME.fullmatch(text))


def build(values: Mapping[str, object]) -> Settings:
    """Return the settings with these values (by dotted key) over the defaults."""
    known = leaves()
    tree: dict[str, typing.Any] = {}
    for said, value in values.items():
        key = key_of(said, known)
        given = next((own for own, each in zip(said.split("."), key.split("."), strict=True) if each == ANY), "")
        *above, last = (given if each == ANY else each for each in known[key].field.split("."))
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        place[last] = value
    return typing.cast("Settings", _filled(Settings(), tree))


def _leaves_of(defaults: object, path: str) -> Iterator[Leaf]:
    for name, wanted in typing.get_type_hints(type(defaults)).items():
        field = f"{path}.{name}" if path else name
        default = getattr(defaults, name)
        entry = _entry_type(wanted)
        if isinstance(default, Struct):
            yield from _leaves_of(default, field)
        elif isinstance(entry, type) and issubclass(entry, Struct):
            yield from _leaves_of(typing.cast("type", entry)(), f"{field}.{ANY}")
        elif entry is not None:
            yield Leaf(entry, (), f"{field}.{ANY}")
        else:
            yield Leaf(wanted, default, field)


def _entry_type(wanted: object) -> object:
    """Return what a mapping of names the user gives holds for each, None where `wanted` is none such."""
    inner = typing.get_args(wanted)[:1]
    pair = typing.get_args(inner[0]) if inner else ()
    # Text to text is a value of its own, such as `ui.keys`.
    return pair[1] if len(pair) == 2 and pair[0] is str and pair[1] not in {str, ...} else None


def _filled(defaults: object, changes: Mapping[str, typing.Any]) -> object:
    hints = typing.get_type_hints(type(defaults))
    values: dict[str, object] = {}
    for name, change in changes.items():
        default, entry = getattr(defaults, name), _entry_type(hints[name])
        if isinstance(default, Struct):
            values[name] = _filled(default, change)
        elif isinstance(entry, type) and issubclass(entry, Struct):
            made = typing.cast("type", entry)
            values[name] = tuple((each, _filled(made(), inner)) for each, inner in change.items())
        elif entry is not None:
            values[name] = tuple(change.items())
        else:
            values[name] = change
    return replace(typing.cast("typing.Any", defaults), **values)


def _fits(said: str, key: str) -> bool:
    parts, wanted = said.split("."), key.split(".")
    return len(parts) == len(wanted) and _fit(parts, wanted)


def _fit(parts: list[str], wanted: list[str]) -> bool:
    return all(each in {part, ANY} for part, each in zip(parts, wanted, strict=True))
