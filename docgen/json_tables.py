"""Tables of the fields of JSON documents that are made of structs: one row for each path, such as `tasks[].id`."""

import types
import typing
from collections.abc import Iterator
from enum import StrEnum
from importlib import import_module

from msgspec import Struct
from msgspec.structs import fields

from docgen.markdown import code, plain, table
from docgen.structs import doc_text, field_texts, type_text


def json_part(words: str) -> str:
    """Return the table for `module:Class`, and a prefix of its paths; `without NAME` leaves out a field."""
    place, _, rest = words.partition(" ")
    prefix, _, left_out = rest.partition("without ")
    module, name = place.split(":")
    cls = getattr(import_module(f"agent_workbench.{module}"), name)
    rows = [row for row in _rows(cls, prefix.strip()) if not left_out or not row[0].startswith(f"`{left_out}")]
    return f"{plain(doc_text(cls))}\n\n{table(('field', 'type', 'meaning'), rows)}"


def _rows(cls: type[Struct], prefix: str) -> Iterator[tuple[str, str, str]]:
    hints, texts = typing.get_type_hints(cls), field_texts(cls)
    for each in fields(cls):
        hint = hints[each.name]
        inner, path = _struct_in(hint), f"{prefix}{each.encode_name}"
        about = texts.get(each.name, "") or (doc_text(inner).split("\n\n", 1)[0] if inner else "")
        yield code(path), _type(hint), plain(about)
        if inner is not None:
            yield from _rows(inner, f"{path}{'[].' if typing.get_origin(hint) is tuple else '.'}")


def _struct_in(hint: object) -> type[Struct] | None:
    """Return the struct that a field is, or that all items of its list are."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    items = [each for each in typing.get_args(hint) if each not in {types.NoneType, Ellipsis}]
    return _struct_in(items[0]) if len(items) == 1 else None


def _type(hint: object) -> str:
    items = [each for each in typing.get_args(hint) if each is not Ellipsis]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return "object"
    if typing.get_origin(hint) in {types.UnionType, typing.Union}:
        return " or ".join(_type(each) if each is not types.NoneType else "null" for each in items)
    if typing.get_origin(hint) is tuple:
        return f"list of {'objects' if _struct_in(items[0]) else _type(items[0])}" if len(items) == 1 else "list"
    if isinstance(hint, type) and issubclass(hint, int) and not issubclass(hint, bool | StrEnum):
        return "whole number"
    return type_text(hint)
