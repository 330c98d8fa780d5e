"""Answers of Gitea and Forgejo, with the fields that are used; unknown ones are ignored."""

from datetime import datetime

from msgspec import Struct


class GiteaUser(Struct, frozen=True):
    """Account. Ghosts and built-in bots have ids below 1."""

    login: str = ""
    id: int = 0


class GiteaLabel(Struct, frozen=True):
    """Label of a repository or an organization."""

    name: str = ""
    id: int = 0


class GiteaRow(Struct, frozen=True):
    """Entry of a list; `key` tells it from the others."""

    @property
    def key(self) -> int:
        """The entry's number or id."""
        raise NotImplementedError


class GiteaIssue(GiteaRow, frozen=True):
    """Issue; `pull_request` is set if it is one."""

    number: int
    updated_at: datetime
    title: str = ""
    body: str | None = None
    labels: tuple[GiteaLabel, ...] | None = ()
    state: str = ""
    pull_request: object = None

    @property
    def key(self) -> int:
        """The number."""
        return self.number


class GiteaEvent(GiteaRow, frozen=True):
    """Entry of an issue's timeline. A label was added if the body of its event is `1`."""

    created_at: datetime
    id: int = 0
    type: str | int = ""
    user: GiteaUser | None = None
    body: str | None = None
    label: GiteaLabel | None = None

    @property
    def key(self) -> int:
        """The id."""
        return self.id


class GiteaComment(GiteaRow, frozen=True):
    """Comment. `original_author` is its author on the forge that it was imported from."""

    id: int
    created_at: datetime
    updated_at: datetime
    user: GiteaUser | None = None
    body: str | None = None
    original_author: str = ""
    original_author_id: int = 0

    @property
    def key(self) -> int:
        """The id."""
        return self.id


class GiteaStatus(GiteaRow, frozen=True):
    """State of a commit in one context."""

    id: int = 0
    status: str = ""
    context: str = ""
    description: str = ""

    @property
    def key(self) -> int:
        """The id."""
        return self.id


class GiteaBranch(Struct, frozen=True):
    """One side of a pull request."""

    ref: str = ""
    repo_id: int = 0


class GiteaPull(GiteaRow, frozen=True):
    """Pull request."""

    number: int
    state: str = ""
    title: str = ""
    body: str | None = None
    html_url: str = ""
    user: GiteaUser | None = None
    head: GiteaBranch | None = None
    base: GiteaBranch | None = None

    @property
    def key(self) -> int:
        """The number."""
        return self.number


class GiteaRepo(Struct, frozen=True):
    """Repository."""

    default_branch: str = ""
