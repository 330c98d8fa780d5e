"""Parser of one task in YAML, as plans and queue files spell it."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.denied_commands import denial, pattern_fault
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.plan import Task, TaskEdit, TaskStatus
from agent_workbench.core.skills import SkillEntry, check_named
from agent_workbench.core.yaml_documents import (
    DocumentError,
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    expected,
    is_nothing,
    join,
    read_mapping,
    read_value,
)

SUBTASK = re.compile(r"[1-9]\d*/[1-9]\d*", re.ASCII)
MAX_EDITS = 100
VERIFY = "verify"
EDITEDIT_KEYS = "{path, find, replace}, {path, content} or {diff}"
EDIT_KEYS = ({"path", "find", "replace"}, {"path", "content"}, {"diff"})


class VerifyCommand(Struct, frozen=True):
    """A command in the list `verify`."""

    command: str


def read_task(node: Node, path: str) -> Task:
    """Return the task that a mapping spells; raise `DocumentError`. `verify` is another name of `accept_tests`."""
    verify = node.get(VERIFY) if isinstance(node, YamlMapping) else None
    task = read_mapping(without_keys(node, {VERIFY}), Task, path)
    if not task.description.strip():
        raise expected(child(node, "description"), "some words", join(path, "description"))
    if task.subtask and not SUBTASK.fullmatch(task.subtask):
        raise expected(child(node, "subtask"), "a part of a whole such as 1/4", join(path, "subtask"))
    edits = child(node, "edits")
    if len(task.edits) > MAX_EDITS:
        problem = f"expected at most {MAX_EDITS} edits, found {len(task.edits)}"
        raise DocumentError(edits.start, f"{join(path, 'edits')}: {problem}")
    for number, edit in enumerate(task.edits):
        _check_edit(item(edits, number), edit, join(path, f"edits[{number}]"))
    verified = () if verify is None or is_nothing(verify) else _verify_commands(verify, join(path, VERIFY))
    whole = replace(task, accept_tests=(*task.accept_tests, *verified))
    if task.status is not TaskStatus.DONE:
        _check_patterns(node, task, path)
        check_commands(node, whole, path)
    return whole


def check_commands(node: Node, task: Task, path: str) -> None:
    """Raise `DocumentError` for an acceptance command that the task itself denies."""
    tests, patterns = child(node, "accept_tests"), task.constraints.denylisted_commands
    own = len(tests.items) if isinstance(tests, YamlSequence) else 0
    _check_denied(tests, task.accept_tests[:own], patterns, join(path, "accept_tests"))
    _check_denied(child(node, VERIFY), task.accept_tests[own:], patterns, join(path, VERIFY))


def check_task_skills(node: Node, known: Sequence[SkillEntry]) -> None:
    """Raise `DocumentError` for a skill of a task that is unknown or cannot be used."""
    named = child(node, "applicable_skills")
    for each in named.items if isinstance(named, YamlSequence) else ():
        if isinstance(each, YamlScalar):
            try:
                check_named(known, (each.text,))
            except ConfigError as error:
                raise DocumentError(each.start, str(error), error.advice) from error


def without_keys(node: Node, keys: set[str]) -> Node:
    """Return a mapping without some of its keys; any other node as it is."""
    if not isinstance(node, YamlMapping):
        return node
    return YamlMapping(
        tuple((key, value) for key, value in node.entries if key.text not in keys), node.flow, node.start, node.end
    )


def item(node: Node, number: int) -> Node:
    """Return an item of a list, the node itself if it is none."""
    return node.items[number] if isinstance(node, YamlSequence) else node


def child(node: Node, key: str) -> Node:
    """Return the value of a key; a value that was left out is at the place of the mapping."""
    found = node.get(key) if isinstance(node, YamlMapping) else None
    return found if found is not None else YamlScalar("", True, node.start, node.end)


def _verify_commands(node: Node, path: str) -> tuple[str, ...]:
    if not isinstance(node, YamlSequence):
        raise expected(node, "a list of commands", path)
    return tuple(_verify_command(each, f"{path}[{number}]") for number, each in enumerate(node.items))


def _verify_command(node: Node, path: str) -> str:
    if isinstance(node, YamlMapping):
        command, place = read_mapping(node, VerifyCommand, path).command, child(node, "command")
    else:
        command, place = str(read_value(node, str, path)), node
    if not command.strip():
        raise expected(place, "a command", path)
    return command


def _check_edit(node: Node, edit: TaskEdit, path: str) -> None:
    """Refuse an edit that has none of the forms, or that changes nothing."""
    given = {key.text for key, value in node.entries if not is_nothing(value)} if isinstance(node, YamlMapping) else {}
    if set(given) not in EDIT_KEYS:
        names = ", ".join(sorted(given)) or "nothing"
        raise DocumentError(node.start, f"{path}: expected {EDITEDIT_KEYS}, found {names}")
    for key in ("path", "find", "diff"):
        if key in given and not (getattr(edit, key) or "").strip():
            raise expected(child(node, key), "some text", f"{path}.{key}")
    if edit.find is not None and edit.find == edit.replace:
        raise DocumentError(child(node, "replace").start, f"{path}.replace: expected another text than `find`")


def _check_patterns(node: Node, task: Task, path: str) -> None:
    """Refuse a denied command that is no glob."""
    for number, pattern in enumerate(task.constraints.denylisted_commands):
        wrong, advice = pattern_fault(pattern)
        if wrong:
            place = item(child(child(node, "constraints"), "denylisted_commands"), number).start
            key = join(path, f"constraints.denylisted_commands[{number}]")
            raise DocumentError(place, f"{key}: {wrong}", advice)


def _check_denied(node: Node, lines: Sequence[str], patterns: Sequence[str], path: str) -> None:
    """Refuse an acceptance command that the task itself denies."""
    for number, line in enumerate(lines):
        if why := denial(line, patterns):
            advice = "change the command, or denylisted_commands of the task"
            raise DocumentError(item(node, number).start, f"{path}[{number}]: {why}", advice)
