from enum import StrEnum
from typing import get_args

from agent_workbench.config.schema import setting_keys
from agent_workbench.config.value_checks import value_problem
from agent_workbench.core.settings import Rule
from tests.docs.tables import table_rows

NAMES = {
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


def _type(wanted: object, key: str = "") -> str:
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        *most, last = (f"`{each}`" for each in wanted if not value_problem(key, each))
        return f"{', '.join(most)} or {last}"
    entry = get_args(wanted)[:1]
    if entry and isinstance(entry[0], type) and issubclass(entry[0], StrEnum):
        return f"list of {', '.join(f'`{each}`' for each in entry[0])}"
    return next(name for known, name in NAMES.items() if known == wanted)


def _default(wanted: object, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        opening, closing = "{}" if _type(wanted) == "text to text" else "[]"
        return f"`{opening}{', '.join(value)}{closing}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`" if value != "" else ""


def test_the_table_lists_every_key_with_its_type_and_default() -> None:
    rows = table_rows("docs/reference/settings.md", "key")
    assert [row[:3] for row in rows] == [
        [f"`{key.replace('*', 'NAME')}`", _type(each.wanted, key), _default(each.wanted, each.default)]
        for key, each in setting_keys().items()
    ]
    assert [row[0] for row in rows if not row[3]] == []
