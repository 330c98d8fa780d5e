"""Strict parser of the front matter of a `SKILL.md`: YAML between two lines of `---`."""

import re
from collections.abc import Mapping

import yaml
from msgspec import Struct

from agent_workbench.core.errors import ConfigError

NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
_OTHER_KEYS = ("license", "compatibility", "allowed-tools")
_KEYS = ("name", "description", "metadata", *_OTHER_KEYS)
_FENCE = "---"
# The front matter begins in the second line of the file; YAML counts from 0.
_FIRST_LINE = 2


class SkillHead(Struct, frozen=True):
    """Front matter of a skill: name, description, and the metadata by which it may be chosen."""

    name: str
    description: str
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class _Fault(Exception):
    """Fault in a front matter, with its line (from 1)."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def read_skill(text: str, file: str, folder: str) -> tuple[SkillHead, str]:
    """Return front matter and body of the skill in `folder`; raise `ConfigError` with `file` and line."""
    try:
        head, body = _divide(text)
        return _head(_entries(head), folder), body.strip("\n")
    except _Fault as fault:
        raise ConfigError(
            f"{file}:{fault.line}: {fault}",
            advice="a SKILL.md begins with a line ---, then `name:` and `description:`, then a line --- again",
        ) from fault


def _divide(text: str) -> tuple[str, str]:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise _Fault(1, f"expected a line {_FENCE} and the front matter after it")
    end = next((row for row, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)
    if not end:
        raise _Fault(len(lines), f"expected a line {_FENCE} that ends the front matter")
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])


def _entries(head: str) -> Mapping[str, yaml.Node]:
    try:
        node = yaml.compose(head, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise _Fault(line + _FIRST_LINE, f"not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _Fault(_FIRST_LINE, f"not YAML: {str(error) or 'nested too deeply'}") from error
    if node is None:
        raise _Fault(_FIRST_LINE, "the front matter is empty")
    return _mapping(node, "the front matter")


def _mapping(node: yaml.Node, what: str) -> Mapping[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _Fault(_line(node), f"{what}: expected keys with values")
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _text(key, "a key")
        if name in entries:
            raise _Fault(_line(key), f"{name!r} stands there twice")
        entries[name] = value
    return entries


def _head(entries: Mapping[str, yaml.Node], folder: str) -> SkillHead:
    for key, node in entries.items():
        if key not in _KEYS:
            raise _Fault(_line(node), f"unknown key {key!r}; there are {', '.join(_KEYS)}")
    for key in ("name", "description"):
        if key not in entries:
            raise _Fault(_FIRST_LINE, f"{key!r} is missing")
    name, description = _text(entries["name"], "name"), _text(entries["description"], "description")
    if not is_skill_name(name):
        raise _Fault(_line(entries["name"]), f"{name!r} is no name: small letters and digits, divided by '-'")
    if name != folder:
        raise _Fault(_line(entries["name"]), f"the name is {name!r}, but the folder's is {folder!r}")
    if not 0 < len(description.strip()) <= LONGEST_DESCRIPTION:
        raise _Fault(_line(entries["description"]), f"description: expected 1 to {LONGEST_DESCRIPTION} characters")
    metadata = _mapping(entries["metadata"], "metadata") if "metadata" in entries else {}
    domains, languages, patterns = (_words(metadata, key) for key in ("domains", "languages", "patterns"))
    return SkillHead(name, " ".join(description.split()), domains, languages, patterns)


def is_skill_name(name: str) -> bool:
    """Return True for a valid name of a skill."""
    return len(name) <= LONGEST_NAME and bool(NAME.fullmatch(name))


def _words(metadata: Mapping[str, yaml.Node], key: str) -> tuple[str, ...]:
    """Return a list of words, given as a YAML list or as one text with commas."""
    node = metadata.get(key)
    if node is None:
        return ()
    if isinstance(node, yaml.SequenceNode):
        return tuple(_text(each, f"metadata.{key}") for each in node.value)
    return tuple(word.strip() for word in _text(node, f"metadata.{key}").split(",") if word.strip())


def _text(node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _Fault(_line(node), f"{what}: expected a text")
    if node.tag == "tag:yaml.org,2002:null":
        raise _Fault(_line(node), f"{what}: expected a text, found nothing")
    return str(node.value)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + _FIRST_LINE
