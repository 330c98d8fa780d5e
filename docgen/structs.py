"""Fields of structs: name, type in words, default, and the text that the class has for each."""

import ast
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from agent_workbench.core.proposed_action import ProposedAction
from docgen.markdown import choice, code, table

_MOST_CHOICES = 8
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", object: "any value"}
_NEW_TYPES = {"JsonValue": "any value", "JsonObject": "object"}


class Field(typing.NamedTuple):
    """A field as a row of a table."""

    name: str
    type: str
    default: str
    text: str


def struct_table(cls: type[Struct]) -> str:
    """Return the table of a struct's fields."""
    return table(("field", "type", "default", "meaning"), struct_fields(cls))


def struct_fields(cls: type[Struct]) -> Iterator[Field]:
    """Yield the fields of a struct as JSON has them."""
    hints, texts = typing.get_type_hints(cls), field_texts(cls)
    for each in fields(cls):
        yield Field(code(each.encode_name), type_text(hints[each.name]), _default(each), texts.get(each.name, ""))


def section_name(cls: type[Struct]) -> str:
    """Return the name of the section about a struct: the kinds of proposals have one section."""
    return "Proposal" if issubclass(cls, ProposedAction) else cls.__name__


def doc_text(cls: type) -> str:
    """Return the docstring of a class as one Markdown text with its paragraphs."""
    return inspect.cleandoc(cls.__doc__ or "")


@cache
def field_texts(cls: type) -> dict[str, str]:
    """Return the texts below the fields of a class, also those of the classes that it extends."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if issubclass(each, Struct) and each is not Struct and each.__module__.startswith("agent_workbench"):
            found |= _own_texts(each)
    return found


def _own_texts(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in _class_bodies(cls.__module__)[cls.__name__]:
        match line:
            case ast.Expr(ast.Constant(str(text))) if name:
                found[name] = inspect.cleandoc(text)
            case ast.AnnAssign(ast.Name(target)) | ast.Assign([ast.Name(target)]):
                name = target
            case _:
                name = ""
    return found


@cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of each class of a module: Python keeps no texts of fields."""
    tree = ast.parse(Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8"))
    return {each.name: each.body for each in tree.body if isinstance(each, ast.ClassDef)}


def member_texts(cls: type) -> dict[str, str]:
    """Return the texts below the members of an enumeration."""
    return _own_texts(cls)


def inner_structs(cls: type[Struct]) -> Iterator[type[Struct]]:
    """Yield the structs that the fields of a struct hold, and those that these hold."""
    for hint in typing.get_type_hints(cls).values():
        for each in _structs_in(hint):
            yield each
            yield from inner_structs(each)


def _structs_in(hint: object) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for each in typing.get_args(hint):
        yield from _structs_in(each)


def type_text(hint: object) -> str:
    """Return a type as people say it; a struct becomes a link to its section of the page."""
    origin, items = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, typing.NewType):
        return type_text(hint.__supertype__)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return choice(hint) if len(hint) <= _MOST_CHOICES else f"one of {', '.join(map(code, hint))}"
    if isinstance(hint, type) and issubclass(hint, Struct):
        name = section_name(hint)
        return f"[{name}](#{name.lower()})"
    if origin in {types.UnionType, typing.Union}:
        named = dict.fromkeys(type_text(each) for each in items if each is not types.NoneType)
        return " or ".join([*named, *(["null"] if types.NoneType in items else [])])
    if origin in {tuple, list, frozenset} or _is_sequence(origin):
        inner = dict.fromkeys(type_text(each) for each in items if each is not Ellipsis)
        return f"list of {' and '.join(inner)}" if inner else "list"
    if origin is not None and re.search("dict|Mapping", str(origin)):
        return f"object of {type_text(items[1])}"
    if isinstance(hint, type) and hint in _WORDS:
        return _WORDS[hint]
    return _NEW_TYPES.get(getattr(hint, "__name__", ""), "any value")


def _is_sequence(origin: object) -> bool:
    return "Sequence" in str(origin)


def _default(each: typing.Any) -> str:  # msgspec's FieldInfo, which its stubs do not export
    if each.default_factory is not NODEFAULT or each.default is NODEFAULT:
        return ""
    return default_text(each.default)


def default_text(value: object) -> str:
    """Return a default as code, nothing for what is empty."""
    if value is None or value in {"", ()}:
        return ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, float):
        return code(f"{value:g}")
    if isinstance(value, tuple):
        return code(f"[{', '.join(map(str, value))}]")
    return code(str(value)) if isinstance(value, str | int) else ""
