"""Reading of a request for a run: bounded values, none of which Ansible can read as an option or a template."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from agent_workbench.core.errors import PatchError, UsageError
from agent_workbench.core.patch.paths import check_path
from agent_workbench.core.playbooks import PlaybookRequest
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, one_line, read_bounded_json

MAX_CHARS = 400
MAX_EXTRA_VARS = 8_000
_HOSTS = re.compile(r"[A-Za-z0-9_.:\[\]-]+(?:,[A-Za-z0-9_.:\[\]-]+)*,", re.ASCII)
_LIMIT = re.compile(r"(?![-@])[A-Za-z0-9_.:,&!*?\[\]~-]+", re.ASCII)
_TAGS = re.compile(r"(?!-)[A-Za-z0-9_.,:-]+", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


def checked_request(
    playbook: str, inventory: str = "", limit: str = "", tags: str = "", extra_vars: str = "", *, check: bool = True
) -> PlaybookRequest:
    """Return the request with normal forms; raise `UsageError` for a value that is not accepted."""
    playbook, inventory, limit, tags = (each.strip() for each in (playbook, inventory, limit, tags))
    for name, value in (("playbook", playbook), ("inventory", inventory), ("limit", limit), ("tags", tags)):
        if len(value) > MAX_CHARS or not value.isprintable():
            raise UsageError(f"{name}: {quoted(value[:80])} is too long or not printable", advice="use a plain value")
    if PurePosixPath(playbook).suffix not in {".yml", ".yaml"}:
        raise UsageError(f"playbook: {quoted(playbook)} is no .yml or .yaml file", advice="find_playbook names them")
    _check_inside("playbook", playbook)
    if inventory.endswith(",") and not _HOSTS.fullmatch(inventory):
        raise UsageError(f"inventory: {quoted(inventory)} is no list of hosts", advice="use names joined by commas")
    if inventory and not inventory.endswith(","):
        _check_inside("inventory", inventory)
    if limit and not _LIMIT.fullmatch(limit):
        raise UsageError(
            f"limit: {quoted(limit)} is no pattern of hosts", advice="use names, groups, `:`, `,`, `&`, `!`"
        )
    if tags and not _TAGS.fullmatch(tags):
        raise UsageError(f"tags: {quoted(tags)} is no list of tags", advice="use names joined by commas")
    return PlaybookRequest(playbook, inventory, limit, tags, _checked_variables(extra_vars), check)


def _check_inside(name: str, path: str) -> None:
    try:
        check_path(path)
    except PatchError as error:
        raise UsageError(f"{name}: {quoted(path)}: {error}", advice="name a file of the repository") from error
    if path.startswith("-"):
        raise UsageError(f"{name}: {quoted(path)} would be read as an option", advice="rename the file")


def _checked_variables(text: str) -> str:
    """Return extra variables as one line of JSON; empty if there are none."""
    if not text.strip():
        return ""
    if len(text) > MAX_EXTRA_VARS:
        raise UsageError(f"extra_vars: {len(text):,} characters, at most {MAX_EXTRA_VARS:,}", advice="use a vars file")
    try:
        value = read_bounded_json(text)
    except JsonError as error:
        raise UsageError(
            f"extra_vars: {quoted(text[:80])} is no JSON: {error}",
            advice='write one JSON object, such as {"version": "1.2"}',
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"extra_vars: {quoted(text[:80])} is no JSON object", advice='write it as {"name": value}')
    _check_names(value)
    line = one_line(value)
    if _TEMPLATE.search(line):
        raise UsageError(
            "extra_vars: a value holds a template, which Ansible would evaluate", advice="write plain values"
        )
    return line if value else ""


def _check_names(variables: Mapping[str, JsonValue]) -> None:
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(f"extra_vars: {quoted(name[:80])} is no name of a variable", advice="use letters and `_`")
        if name.lower().startswith("ansible_"):
            raise UsageError(
                f"extra_vars: {name} would decide how hosts are reached",
                advice="set it in the inventory; passwords and keys are named in your own settings",
            )
