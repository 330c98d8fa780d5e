"""Addition of an MCP server to a settings file, which changes no other character of it."""

import json
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import fields

from agent_workbench.config.layers import file_layer
from agent_workbench.config.schema import is_given_name
from agent_workbench.config.tool_servers import GROUP, server_names
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.errors import ConfigError, UsageError
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.yaml_documents import (
    MAX_BYTES,
    DocumentError,
    YamlMapping,
    YamlScalar,
    after_lines,
    decode_document,
    is_nothing,
    with_lines,
)
from agent_workbench.system.repo_files import change_inside


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
    wanted = {f"{GROUP}{name}.{key}": value for key, value in _values(entry)}
    if said != wanted or any(layer[key].value != value.value for key, value in before.items()):
        raise _by_hand(file, lines)
    return after


def _values(entry: ToolServerSettings) -> Iterator[tuple[str, object]]:
    for field in fields(ToolServerSettings):
        if (value := getattr(entry, field.name)) != field.default:
            yield field.name, value


def _lines(name: str, entry: ToolServerSettings) -> Iterator[str]:
    yield f"{name}:"
    for key, value in _values(entry):
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
