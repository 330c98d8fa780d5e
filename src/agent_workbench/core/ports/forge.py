"""Protocol of the forge that tasks come from and results go to. `tests/contracts` holds implementations to it."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ids import CommitId


class BuildState(StrEnum):
    """State of a commit on the forge."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


class ForgeIssue(Struct, frozen=True):
    """An issue as it was when an allowed user labelled it: `text_sha` is the SHA-256 of title and text."""

    number: int
    title: str
    text: str
    text_sha: str
    labelled_by: str


class ForgeComment(Struct, frozen=True):
    """A comment. `own`: the agent's account wrote it; `edited`: it is not as it was first written."""

    id: int
    author: str
    text: str
    own: bool = False
    edited: bool = False


class Forge(Protocol):
    """One project on a forge such as Gitea or GitHub.

    Reports are idempotent: the same call again changes nothing, so it can be repeated after a crash. All text that
    comes from the forge is foreign. Every method raises `ForgeError` if the forge refuses or does not answer.
    """

    async def issues(self) -> tuple[ForgeIssue, ...]:
        """Return the open issues with the agent's label, set by an allowed user; by number."""

    async def comments(self, issue: int, after: int = 0) -> tuple[ForgeComment, ...]:
        """Return the comments with an id above `after`, by id; raise `ForgeError` for an unknown issue."""

    async def comment(self, issue: int, key: str, text: str) -> None:
        """Write the agent's comment with this key, or replace its text."""

    async def set_state(self, commit: CommitId, context: str, state: BuildState, text: str) -> None:
        """Set the state that a commit has in `context` (one line of its checks)."""

    async def request_merge(self, branch: str, title: str, text: str) -> str:
        """Open the branch's pull request, or update the open one; return its address."""
