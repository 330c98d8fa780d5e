"""Table of the keys of `.agent.yml`."""

import re
import typing
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from agent_workbench.config.schema import ANY, SettingKey, setting_keys
from agent_workbench.config.value_checks import value_problem
from agent_workbench.core.settings import Rule, Settings
from docgen.markdown import choice, code, plain, table
from docgen.structs import default_text, field_texts

_ROLES = ("planner", "executor", "reflexion")
_ROLE = re.compile(rf"(sampling\.)(?:{'|'.join(_ROLES)})\.")
_WORDS: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    float | None: "number",
    int | None: "whole number",
    tuple[str, ...]: "list of text",
    tuple[tuple[str, str], ...]: "text to text",
    tuple[Rule, ...]: "list of rules",
}


def settings() -> str:
    """Return the table of all keys."""
    keys = setting_keys()
    rows = ((_named(key), _type(each, key), _default(each), _meaning(key, each)) for key, each in keys.items())
    return table(("key", "type", "default", "meaning"), dict.fromkeys(rows))


def _named(key: str) -> str:
    return code(_ROLE.sub(r"\1ROLE.", key).replace(ANY, "NAME"))


def _meaning(key: str, each: SettingKey) -> str:
    """Return the text of a key; what a role has of its own is told once for all roles."""
    for_all = _ROLE.sub(r"\1", key)
    if for_all == key:
        return plain(_text(each.field))
    return f"In place of {code(for_all)} for one role: {choice(_ROLES)}."


def _type(key: SettingKey, name: str) -> str:
    wanted = key.wanted
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return choice(each for each in wanted if not value_problem(name, each))
    entry = typing.get_args(wanted)[:1]
    if entry and isinstance(entry[0], type) and issubclass(entry[0], StrEnum):
        return f"list of {', '.join(map(code, entry[0]))}"
    return _WORDS[wanted]


def _default(key: SettingKey) -> str:
    if key.default == ():
        return code("{}" if _WORDS.get(key.wanted) == "text to text" else "[]")
    return default_text(key.default)


def _text(field: str) -> str:
    """Return the text below a field, dotted as in `endpoints.*.url`, in the types of the settings."""
    cls: type[Struct] = Settings
    *above, name = [part for part in field.split(".") if part != ANY]
    for part in above:
        cls = next(each for each in _structs(typing.get_type_hints(cls)[part]))
    return field_texts(cls)[name]


def _structs(hint: object) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for each in typing.get_args(hint):
        yield from _structs(each)
