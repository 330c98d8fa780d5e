"""Which keys `.agent.yml` has, what type each is of, and what its value must hold beyond the type."""

import dataclasses
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from agent_workbench.core.settings import Settings

# The dotted names of product keys whose place in the types is another one.
RENAMED = {"retrieval.max_chunk_tokens": "retrieval.chunker.max_tokens"}
NOT_YET = {
    *("roles", "endpoints", "cost_cap_daily", "memory.summarise_threshold", "retrieval.bm25", "retrieval.embeddings"),
}
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A key that holds a value: its type, its default and the field it fills (dotted, below `Settings`)."""

    wanted: object
    default: object
    field: str


def leaves() -> dict[str, Leaf]:
    """Return every key that can be set, dotted as in `model.url`."""
    found: dict[str, Leaf] = {}
    for name, wanted, default in _fields(Settings, Settings()):
        if dataclasses.is_dataclass(default):
            for inner, inner_wanted, inner_default in _fields(type(default), default):
                field = f"{name}.{inner}"
                found[RENAMED.get(field, field)] = Leaf(inner_wanted, inner_default, field)
        else:
            found[name] = Leaf(wanted, default, name)
    return found


def groups(known: Mapping[str, Leaf]) -> set[str]:
    """Return the dotted names under which keys stand."""
    return {".".join(parts[:end]) for key in known for parts in [key.split(".")] for end in range(1, len(parts))}


def build(values: Mapping[str, object]) -> Settings:
    """Return the settings with these values (by dotted key) over the defaults."""
    known = leaves()
    top: dict[str, object] = {}
    inner: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        group, dot, name = known[key].field.partition(".")
        if dot:
            inner.setdefault(group, {})[name] = value
        else:
            top[group] = value
    defaults = Settings()
    for group, changes in inner.items():
        top[group] = dataclasses.replace(getattr(defaults, group), **changes)
    return dataclasses.replace(defaults, **typing.cast("dict[str, typing.Any]", top))


def problem(key: str, value: object) -> str:
    """Return what is wrong with a value of the right type as a sentence, empty when nothing is."""
    rule = _rules().get(key)
    return rule(value) if rule is not None else ""


def _fields(of: object, defaults: object) -> list[tuple[str, object, object]]:
    hints = typing.get_type_hints(of)
    return [(name, wanted, getattr(defaults, name)) for name, wanted in hints.items()]


def _rules() -> Mapping[str, Callable[[object], str]]:
    positive = (
        *("model.context_tokens", "model.answer_seconds", "model.answer_tokens", "limits.max_tool_calls_per_task"),
        *("limits.consecutive_failure_threshold", "limits.command_seconds", "retrieval.chunker.max_tokens"),
    )
    return {
        "model.url": _url_problem,
        "model.api_key_env": _variable_problem,
        "memory.dir": _path_problem,
        "memory.plan": _path_problem,
        "workspace.link": _paths_problem,
        "skills.dirs": _paths_problem,
        **dict.fromkeys(positive, _positive_problem),
    }


def _positive_problem(value: object) -> str:
    return "" if isinstance(value, int | float) and value > 0 else f"expected more than 0, found {value}"


def _url_problem(value: object) -> str:
    text = str(value)
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        return f"expected an address such as http://127.0.0.1:8080: {error}"
    if parts.password or parts.username:
        return "expected an address without user and password; name a variable in model.api_key_env instead"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return f"expected an address such as http://127.0.0.1:8080, found {text!r}"
    return ""


def _variable_problem(value: object) -> str:
    if not value or ENVIRONMENT_NAME.fullmatch(str(value)):
        return ""
    # What was found is not said: it may be the key itself.
    return "expected the name of an environment variable (letters, digits, underscores), found something else"


def _paths_problem(value: object) -> str:
    paths = value if isinstance(value, tuple) else ()
    return next((found for path in paths if (found := _path_problem(path))), "")


def _path_problem(value: object) -> str:
    path = PurePosixPath(str(value))
    if path.is_absolute() or not path.parts or ".." in path.parts or any(each.lower() == ".git" for each in path.parts):
        return f"expected a path inside the repo (relative, without '..' and '.git'), found {str(value)!r}"
    return ""
