"""Protocols of the forge that tasks come from and results go to. `tests/contracts` holds implementations to them."""

from collections.abc import Collection
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ids import CommitId, TaskId


class BuildState(StrEnum):
    """State of a commit on the forge."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


class ForgeIssue(Struct, frozen=True):
    """An issue as it was when an allowed user labelled it: `text_sha` is the SHA-256 of title and text.

    `problem` says why its text is not known to be the one that was labelled; `label_event` tells one labelling from
    the next.
    """

    number: int
    title: str
    text: str
    text_sha: str
    labelled_by: str
    label_event: int = 0
    problem: str = ""


class ForgeComment(Struct, frozen=True):
    """A comment.

    `own`: the agent's account wrote it; `key` is then what `Forge.comment` was given. `edited`: it is not as it was
    first written. `bot`: a program wrote it, or it was imported from another forge under another person's name.
    """

    id: int
    author: str
    text: str
    own: bool = False
    edited: bool = False
    bot: bool = False
    key: str = ""


class AnnotatedTag(Struct, frozen=True):
    """An annotated tag; `time` is UTC in ISO 8601, so the same tag is the same object each time."""

    name: str
    message: str
    time: str


class ShownPullRequest(Struct, frozen=True):
    """A pull request of a task as its user is asked about it: valid for this commit and this repository only.

    `commits` (short hash and title) and `diff` are those that the user's branch lacks; `address` and `token_variable`
    say where it goes and with which token.
    """

    task: TaskId
    commit: CommitId
    branch: str
    title: str
    text: str
    commits: tuple[str, ...]
    diff: str
    address: str
    token_variable: str


class PullRequests(Protocol):
    """Pull requests of finished tasks, asked for by their user. Each method may raise `WorkbenchError`."""

    async def preview(self, task: TaskId) -> ShownPullRequest:
        """Return the pull request as it would be opened; nothing is sent."""

    async def open(self, shown: ShownPullRequest) -> str:
        """Push the branch and open its pull request as it was shown; return its address."""


class Forge(Protocol):
    """One project on a forge such as Gitea or GitHub.

    Reports are idempotent: the same call again changes nothing, so it can be repeated after a crash. All text that
    comes from the forge is foreign. Every method raises `ForgeError` if the forge refuses or does not answer.
    """

    async def issues(self, known: Collection[int] = ()) -> tuple[ForgeIssue, ...]:
        """Return the open issues with the agent's label, set by an allowed user, except the `known` ones; by number."""

    async def comments(self, issue: int, after: int = 0) -> tuple[ForgeComment, ...]:
        """Return the comments with an id above `after`, by id; raise `ForgeError` for an unknown issue."""

    async def comment(self, issue: int, key: str, text: str) -> None:
        """Write the agent's comment with this key, or replace its text."""

    async def may_write(self, login: str) -> bool:
        """Return False if the forge says that this user may not write to the repository; not every forge tells it."""

    async def set_state(self, commit: CommitId, context: str, state: BuildState, text: str) -> None:
        """Set the state that a commit has in `context` (one line of its checks)."""

    async def request_merge(self, branch: str, title: str, text: str, *, again: bool = False) -> str:
        """Open the branch's pull request, or update the open one; return its address.

        One that somebody closed stays closed, and no other is opened unless `again`.
        """

    async def close(self) -> None:
        """Close all connections."""


class ForgeRemote(Protocol):
    """The forge's git repository."""

    async def push(self, branch: str, commit: CommitId, tag: AnnotatedTag | None) -> None:
        """Push a commit to the branch, which only moves forward, and the tag on it; both or none.

        What is there already is left as it is. Raises `ForgeError`.
        """
