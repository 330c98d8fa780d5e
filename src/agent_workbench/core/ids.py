"""The names of things: identifier types, and the shapes they must have."""

import re
from typing import NewType

from agent_workbench.core.errors import UsageError

TaskId = NewType("TaskId", str)
SessionId = NewType("SessionId", str)
NO_SESSION = SessionId("")
ProposalId = NewType("ProposalId", str)
CommitId = NewType("CommitId", str)

TASK_ID = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
SESSION_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[a-z2-7]{6}")


def task_id(text: str) -> TaskId:
    """Return `text` as a task id; raise `UsageError` when it does not have the shape of one."""
    if not TASK_ID.fullmatch(text) or ".." in text or text.endswith((".", ".lock")):
        raise UsageError(
            f"{text!r} is not a task id",
            advice="a task id starts with a letter and has at most 64 letters, digits, '.', '_' or '-', such as T-1",
        )
    return TaskId(text)


def session_id(text: str) -> SessionId:
    """Return `text` as a session id; raise `UsageError` when it does not have the shape of one."""
    if not SESSION_ID.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a session id",
            advice="`agent sessions list` shows them; one looks like 20261120T101500-ab2cde",
        )
    return SessionId(text)


def session_suffix(session: SessionId) -> str:
    """Return the six characters that tell this session's branches from others of the same task."""
    return session.rpartition("-")[2]
