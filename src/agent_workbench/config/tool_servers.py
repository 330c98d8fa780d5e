"""MCP servers in the settings: `.mcp.json` as a layer, and the checks after all layers are merged."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import fields

from agent_workbench.config.layers import Layer, SourcedValue
from agent_workbench.config.schema import is_given_name
from agent_workbench.config.value_checks import value_problem
from agent_workbench.core.errors import ConfigError, StorageError
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json
from agent_workbench.core.yaml_documents import MAX_BYTES, is_clean
from agent_workbench.system.repo_files import read_inside

FILE = ".mcp.json"
GROUP = "mcp_servers."
LISTED = "mcpServers"
MAX_SERVERS = 20
_TRANSPORTS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamablehttp": "url"}
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


class SharedServers(Struct, frozen=True):
    """The servers that `.mcp.json` lists, and the reasons why others are left out."""

    layer: Layer
    problems: tuple[str, ...] = ()


def shared_servers(root: Path) -> SharedServers:
    """Return the servers of the repo's `.mcp.json`, written for other programs: unusable ones are left out. Blocks."""
    try:
        data = read_inside(root, FILE, MAX_BYTES)
    except StorageError as error:
        return SharedServers({}, (str(error),))
    if data is None:
        return SharedServers({})
    try:
        said = read_bounded_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        return SharedServers({}, (f"{FILE} is not UTF-8",))
    except JsonError as error:
        return SharedServers({}, (f"{FILE}: {error}",))
    listed = said.get(LISTED, {}) if isinstance(said, dict) else None
    if not isinstance(listed, dict):
        return SharedServers({}, (f"{FILE}: expected an object with {LISTED!r}",))
    return _read_servers(listed)


def _read_servers(listed: Mapping[str, JsonValue]) -> SharedServers:
    layer: dict[str, SourcedValue] = {}
    problems: list[str] = []
    names: set[str] = set()
    for said, entry in listed.items():
        name = _NOT_IN_NAMES.sub("-", said.lower()).strip("-")
        problem = _name_problem(name, names)
        values = _values(entry) if not problem else {}
        problem = problem or (values if isinstance(values, str) else "")
        if problem or isinstance(values, str):
            problems.append(f"{FILE}: the server {quoted(said)} is left out: {problem}")
            continue
        names.add(name)
        for key, value in values.items():
            layer[f"{GROUP}{name}.{key}"] = SourcedValue(value, FILE, FILE)
    return SharedServers(layer, tuple(problems))


def _name_problem(name: str, names: set[str]) -> str:
    if not is_given_name(name):
        return "expected a name that begins with a letter and has at most 40 letters and digits"
    if name in names:
        return f"another server is called {name}"
    return f"there are more than {MAX_SERVERS} servers" if len(names) >= MAX_SERVERS else ""


def _values(entry: JsonValue) -> dict[str, object] | str:
    """Return the values of one entry by the key of a setting, or why it cannot be used; unknown keys are ignored."""
    if not isinstance(entry, dict):
        return "expected an object"
    if entry.get("disabled") is True:
        return "it is disabled"
    kind = entry.get("type", entry.get("transport", ""))
    if kind and kind not in _TRANSPORTS:
        return f"its transport {quoted(str(kind))} is not supported: expected stdio or http"
    values: dict[str, object] = {}
    for field in fields(ToolServerSettings):
        if field.name not in entry:
            continue
        value = _typed(entry[field.name], field.default)
        if value is None:
            return f"{field.name}: expected {_NAMES[type(field.default)]}"
        if wrong := value_problem(f"{GROUP}*.{field.name}", value):
            return f"{field.name}: {wrong}"
        values[field.name] = value
    if bool(values.get("command")) == bool(values.get("url")):
        return "expected its command or its url, and not both"
    words = (values.get("command"), *flat([values.get("args")]))
    if (PurePosixPath(str(words[0])).name, *words[1:2]) == ("agent", "mcp") or "agent_workbench" in words:
        return "it is the workbench itself"
    return values


_NAMES: Mapping[type, str] = {str: "text", bool: "true or false", tuple: "a list of text, or an object of text"}


def _typed(value: JsonValue, default: object) -> object:
    """Return a JSON value as the type that its setting has, None where it cannot be one."""
    match value, default:
        case bool(), bool():
            return value
        case str(), str():
            return value if is_clean(value) else None
        case list(), tuple():
            return tuple(value) if all(isinstance(each, str) and is_clean(each) for each in value) else None
        case dict(), tuple():
            return (
                tuple(value.items())
                if all(isinstance(each, str) and is_clean(each) for each in value.values())
                else None
            )
        case _:
            return None


def check_own_servers(own: Layer) -> None:
    """Raise `ConfigError` for a server of the user's that is a file of whatever repository they are in."""
    for name in server_names(own):
        said = server_entry(own, name).get("command")
        command = str(said.value) if said is not None else ""
        if said is not None and "/" in command and not command.startswith(("/", "~/")):
            raise ConfigError(
                f"{said.location}: {GROUP}{name}.command: expected a name on your PATH or an absolute path, "
                f"found {quoted(command)}, which is another file in each repository",
                advice="a server of one repository belongs into its .agent.yml",
            )


def check_servers(merged: Layer) -> None:
    """Raise `ConfigError` for a server without a program and an address, with both, or for too many servers."""
    names = server_names(merged)
    for name in names:
        own = server_entry(merged, name)
        place = next(iter(own.values())).location
        given = [key for key in ("command", "url") if key in own and own[key].value]
        if len(given) != 1:
            found = "both" if given else "neither"
            raise ConfigError(
                f"{place}: {GROUP}{name}: expected its command or its url, found {found}",
                advice="command is a program that speaks MCP over its standard streams, url an address of a server",
            )
        grants = [
            key for key in ("args", "env", "read", "write", "network", "unconfined") if key in own and own[key].value
        ]
        if "url" in given and grants:
            raise ConfigError(
                f"{own[grants[0]].location}: {GROUP}{name}.{grants[0]} has no meaning for a server at a url",
                advice="remove it; headers are what such a server gets",
            )
        if "command" in given and "headers" in own and own["headers"].value:
            raise ConfigError(
                f"{own['headers'].location}: {GROUP}{name}.headers has no meaning for a command",
                advice="use env, the variables that the program gets",
            )
    if len(names) > MAX_SERVERS:
        raise ConfigError(f"{len(names)} MCP servers are set, the limit is {MAX_SERVERS}", advice="remove some")


def server_names(layer: Layer) -> tuple[str, ...]:
    """Return the names of the servers in a layer, in their order."""
    return tuple(dict.fromkeys(key.split(".")[1] for key in layer if key.startswith(GROUP)))


def server_entry(layer: Layer, name: str) -> dict[str, SourcedValue]:
    """Return the values of one server by the last part of their key."""
    above = f"{GROUP}{name}."
    return {key.removeprefix(above): said for key, said in layer.items() if key.startswith(above)}


def without_servers(layer: Layer, names: tuple[str, ...]) -> Layer:
    """Return the layer without these servers: entries are replaced as a whole, so that no key of the user's joins."""
    gone = tuple(f"{GROUP}{name}." for name in names)
    return {key: said for key, said in layer.items() if not (gone and key.startswith(gone))}


def flat(values: list[object]) -> Iterator[str]:
    """Yield the texts in values that are texts or lists of texts."""
    for value in values:
        if isinstance(value, tuple):
            yield from value
        elif isinstance(value, str):
            yield value
