"""Answers of forges, with the fields that are used; unknown ones are ignored.

GitHub's interface is the model for that of Gitea and Forgejo, so one class reads the answers of all of them.
"""

from datetime import datetime
from typing import Annotated, Protocol

from msgspec import Meta, Struct

Time = Annotated[datetime, Meta(tz=True)]
"""Time with its zone: one without would compare with no other."""
_PEOPLE = {"", "User"}


class AccountAnswer(Struct, frozen=True):
    """Account. Gitea's ghosts and bots have ids below 1, GitHub says the `type`."""

    login: str = ""
    id: int = 0
    type: str = ""

    @property
    def person(self) -> bool:
        """True unless it is known to be a program's or nobody's."""
        return self.id > 0 and self.type in _PEOPLE


class LabelAnswer(Struct, frozen=True):
    """Label of a repository or an organization."""

    name: str = ""


class RowAnswer(Protocol):
    """Entry of a list; `key` tells it from the others."""

    @property
    def key(self) -> int:
        """The entry's number or id."""


class IssueAnswer(Struct, frozen=True):
    """Issue; `pull_request` is set if it is one."""

    number: int
    updated_at: Time
    title: str = ""
    body: str | None = None
    labels: tuple[LabelAnswer, ...] | None = ()
    state: str = ""
    pull_request: object = None

    @property
    def key(self) -> int:
        """The number."""
        return self.number


class CommentAnswer(Struct, frozen=True):
    """Comment. `original_author` is its author on the forge that it was imported from."""

    id: int
    created_at: Time
    updated_at: Time
    user: AccountAnswer | None = None
    body: str | None = None
    original_author: str = ""
    original_author_id: int = 0
    performed_via_github_app: object = None

    @property
    def key(self) -> int:
        """The id."""
        return self.id


class StatusAnswer(Struct, frozen=True):
    """State of a commit in one context: `status` on Gitea, `state` on GitHub."""

    id: int = 0
    status: str = ""
    state: str = ""
    context: str = ""
    description: str | None = ""

    @property
    def key(self) -> int:
        """The id."""
        return self.id


class RepoAnswer(Struct, frozen=True):
    """Repository."""

    id: int = 0
    default_branch: str = ""


class BranchAnswer(Struct, frozen=True):
    """One side of a pull request; a fork that was deleted is no repository any more."""

    ref: str = ""
    repo_id: int = 0
    repo: RepoAnswer | None = None

    @property
    def home(self) -> int:
        """The id of its repository, 0 for none."""
        return self.repo_id or (self.repo.id if self.repo is not None else 0)


class PullAnswer(Struct, frozen=True):
    """Pull request."""

    number: int
    state: str = ""
    title: str = ""
    body: str | None = None
    html_url: str = ""
    user: AccountAnswer | None = None
    head: BranchAnswer | None = None
    base: BranchAnswer | None = None

    @property
    def key(self) -> int:
        """The number."""
        return self.number

    @property
    def login(self) -> str:
        """The login of who opened it, in lower case."""
        return self.user.login.lower() if self.user is not None else ""

    @property
    def texts(self) -> tuple[str, str]:
        """Title and text."""
        return self.title, (self.body or "").replace("\r\n", "\n").strip()

    def is_from(self, branch: str) -> bool:
        """Return True for a pull request of this repository's branch, not of a fork's branch with the same name."""
        head, base = self.head, self.base
        return head is not None and base is not None and head.ref == branch and head.home == base.home
