"""Kubernetes objects read by the types of the published client: unknown keys, wrong types and missing keys fail."""

import re
from typing import Any

from kubernetes.client import models

LIST, MAPPING = re.compile(r"[Ll]ist\[(.+)\]"), re.compile(r"[Dd]ict[\[(]str, (.+)[\])]")
PLAIN = {"str": str, "int": int, "bool": bool, "float": float}


def read_object(value: dict[str, Any]) -> object:
    """Return a manifest as the client's object; raise `ValueError` or `TypeError` with the place of the fault."""
    group, _, version = value["apiVersion"].rpartition("/")
    prefix = {"": "", "apps": ""}[group] + version.capitalize()
    return _read(f"{prefix}{value['kind']}", value, value["kind"])


def _read(kind: str, value: Any, place: str) -> Any:
    if found := LIST.fullmatch(kind):
        return [_read(found[1], each, f"{place}[{index}]") for index, each in enumerate(_checked(list, value, place))]
    if found := MAPPING.fullmatch(kind):
        return {key: _read(found[1], each, f"{place}.{key}") for key, each in _checked(dict, value, place).items()}
    if kind in PLAIN:
        return _checked(PLAIN[kind], value, place)
    if kind == "object":
        return value
    model = getattr(models, kind)
    names = {key: attribute for attribute, key in model.attribute_map.items()}
    if unknown := _checked(dict, value, place).keys() - names.keys():
        raise ValueError(f"{place}: unknown {sorted(unknown)}")
    read = {names[key]: _read(model.openapi_types[names[key]], each, f"{place}.{key}") for key, each in value.items()}
    return model(**read)


def _checked(kind: type, value: Any, place: str) -> Any:
    # A bool is an int to Python alone.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{place}: {value!r} is no {kind.__name__}")
    return value
