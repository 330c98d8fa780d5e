"""Result of a queued task as a JSON document, also of a file without a task; and the issue of a task."""

import json
import re

import msgspec
from msgspec import Struct

from agent_workbench.core.errors import ExitCode, StorageError
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.plan import TaskOrigin, TaskStatus
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonError, read_bounded_json

VERSION = 1
RESULT_SUFFIX = ".result.json"
"""End of the name of a result's file, behind the name of the task's file without its own suffix."""
ENDS = frozenset({TaskStatus.DONE, TaskStatus.FAILED})

FORGES = ("gitea", "forgejo", "github")
FORMS = "gitea:owner/repo#7 or gitea:project:7"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?"
_NUMBER = r"[1-9]\d{0,8}"
_WITH_OWNER = re.compile(rf"({'|'.join(FORGES)}):({_NAME}/{_NAME})#({_NUMBER})", re.ASCII)
_PROJECT = re.compile(rf"({'|'.join(FORGES)}):({_NAME}):({_NUMBER})", re.ASCII)


class CheckOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """One command of the last checks; `exit_code` is None if it did not end."""

    command: str
    exit_code: int | None
    seconds: float


class PlaybookOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """One run of a playbook: its hosts, a line each, and what ansible-lint found after a failure."""

    playbook: str
    check: bool
    failed: bool
    hosts: tuple[str, ...] = ()
    analysis_result: str = ""


class TaskResult(Struct, frozen=True, forbid_unknown_fields=True):
    """Result of a queued task: done or failed, why, and its traces.

    `task` is the task's id (of a file that held none: the file's name). `exit_code` is what `agent run` would end with.
    `journal_head` is `session:seq:hash` of the event that was the last one then; `agent sessions verify` proves the
    journal. `files` are the paths of the commit. `started` and `finished` are UTC times in ISO 8601. `source` is the
    issue that the task names. Fields are empty where there is nothing to say.
    """

    task: str
    status: TaskStatus
    reason: str
    exit_code: int
    version: int = VERSION
    origin: TaskOrigin = TaskOrigin.LOCAL
    source: str = ""
    session: SessionId = NO_SESSION
    journal_head: str = ""
    branch: str = ""
    commit: str = ""
    tag: str = ""
    checks: tuple[CheckOutcome, ...] = ()
    files: tuple[str, ...] = ()
    tokens: int = 0
    dollars: float = 0.0
    playbooks: tuple[PlaybookOutcome, ...] = ()
    started: str = ""
    finished: str = ""


def no_task(name: str, reason: str, finished: str, origin: TaskOrigin = TaskOrigin.LOCAL) -> TaskResult:
    """Return the result of a file that is no task."""
    return TaskResult(name, TaskStatus.FAILED, reason, ExitCode.USAGE, origin=origin, finished=finished)


def encode_result(result: TaskResult) -> str:
    """Return the document of a result, in ASCII."""
    return json.dumps(msgspec.to_builtins(result), ensure_ascii=True, indent=1) + "\n"


def decode_result(text: str, name: str) -> TaskResult:
    """Return the result in a document; raise `StorageError` that names the document and what does not fit."""
    try:
        result = msgspec.convert(read_bounded_json(text), TaskResult)
    except (JsonError, msgspec.ValidationError) as error:
        raise StorageError(f"{name} is not the result of a task: {error}") from error
    if result.version != VERSION:
        advice = "the file may come from a newer version of Agent Workbench"
        raise StorageError(f"{name} has version {result.version}; version {VERSION} is read here", advice=advice)
    if result.status not in ENDS:
        raise StorageError(f"{name} is not the result of a task: its status is {quoted(result.status)}")
    return result


class IssueSource(Struct, frozen=True):
    """An issue of a forge. `repo` is `owner/repo`, or a project's name alone where the settings know its repository."""

    forge: str
    repo: str
    number: int


def names_forge(source: str) -> bool:
    """Return True if a source begins as one of an issue does."""
    return source.partition(":")[0] in FORGES and ":" in source


def read_source(source: str) -> IssueSource | None:
    """Return the issue that a source names, None if it is any other text."""
    found = _WITH_OWNER.fullmatch(source) or _PROJECT.fullmatch(source)
    return None if found is None else IssueSource(found[1], found[2], int(found[3]))
