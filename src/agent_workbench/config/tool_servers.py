"""MCP servers in the settings: `.mcp.json` as a layer, checks after all layers, and the addition of one to a file."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import fields

from agent_workbench.config.layers import Layer, SourcedValue, file_layer
from agent_workbench.config.schema import is_given_name
from agent_workbench.config.value_checks import value_problem
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.errors import ConfigError, StorageError, UsageError
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json
from agent_workbench.core.yaml_documents import (
    MAX_BYTES,
    DocumentError,
    YamlMapping,
    YamlScalar,
    after_lines,
    decode_document,
    is_clean,
    is_nothing,
    with_lines,
)
from agent_workbench.system.repo_files import change_inside, read_inside

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


def add_server(folder: Path, file: str, name: str, entry: ToolServerSettings) -> None:
    """Write a server into `folder/file`, which need not exist. Blocks.

    Raises `UsageError` for a name that cannot be used or is taken, `ConfigError` for a file that cannot be edited,
    `StorageError`.
    """
    if not is_given_name(name):
        raise UsageError(
            f"{quoted(name)} is no name of a server", advice="use small letters and digits, joined by single '-' or '_'"
        )
    fresh = not (folder / file).exists()

    def changed(data: bytes | None) -> bytes:
        try:
            return with_server(decode_document(data) if data else "", name, entry, file).encode()
        except DocumentError as fault:
            raise ConfigError(fault.in_file(file), advice=fault.advice) from fault

    change_inside(folder, file, MAX_BYTES, changed)
    if fresh:
        (folder / file).chmod(0o600)


def with_server(text: str, name: str, entry: ToolServerSettings, file: str) -> str:
    """Return the text with the server; raise `UsageError`, `ConfigError`, or `DocumentError` for invalid text."""
    root = compose_text(text)
    before = file_layer(root, file)
    if name in server_names(before):
        raise UsageError(f"{file} has a server {quoted(name)} already", advice="change it there, or take another name")
    lines = list(_lines(name, entry))
    group = root.get(GROUP.rstrip(".")) if isinstance(root, YamlMapping) else None
    if isinstance(group, YamlMapping) and group.entries and not group.flow:
        indent = " " * (group.entries[0][0].start.column - 1)
        at = after_lines(text, group)
    elif isinstance(group, YamlScalar) and is_nothing(group) and not group.text:
        indent, at = "  ", after_lines(text, group)
    elif group is None and (root is None or is_nothing(root) or (isinstance(root, YamlMapping) and not root.flow)):
        indent, at = "  ", len(text)
        lines = [f"{GROUP.rstrip('.')}:", *(f"{indent}{line}" for line in lines)]
        indent = ""
    else:
        raise _by_hand(file, lines)
    after = with_lines(text[:at], "".join(f"{indent}{line}\n" for line in lines), text[at:])
    try:
        layer = file_layer(compose_text(after), file)
    except DocumentError as fault:
        # The values are the user's; the place is in a text that does not exist.
        raise UsageError(f"{name} was not added: {fault.what}", advice=fault.advice) from fault
    said = {key: value.value for key, value in layer.items() if key not in before}
    wanted = {f"{GROUP}{name}.{key}": value for key, value in _entry_values(entry)}
    if said != wanted or any(layer[key].value != value.value for key, value in before.items()):
        raise _by_hand(file, lines)
    return after


def _entry_values(entry: ToolServerSettings) -> Iterator[tuple[str, object]]:
    for field in fields(ToolServerSettings):
        if (value := getattr(entry, field.name)) != field.default:
            yield field.name, value


def _lines(name: str, entry: ToolServerSettings) -> Iterator[str]:
    yield f"{name}:"
    for key, value in _entry_values(entry):
        yield f"  {key}: {_rendered(value)}"


def _rendered(value: object) -> str:
    if isinstance(value, bool):
        return "true"
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "{" + ", ".join(f"{_rendered(name)}: {_rendered(text)}" for name, text in value) + "}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_rendered, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _by_hand(file: str, lines: list[str]) -> ConfigError:
    said = "; ".join(line.strip() for line in lines)
    return ConfigError(
        f"the server could not be written into {file}", advice=f"add it under {GROUP.rstrip('.')} by hand: {said}"
    )
