"""Settings of the forge that tasks come from and reports go to."""

from enum import StrEnum

from msgspec import Struct


class ForgeKind(StrEnum):
    """Software of the forge. Gitea and Forgejo have the same interface."""

    GITEA = "gitea"
    FORGEJO = "forgejo"


class ReportPart(StrEnum):
    """Part of a report besides the comments."""

    PUSH = "push"
    PULL_REQUEST = "pull_request"
    STATUS = "status"
    TAG = "tag"


class ForgeSettings(Struct, frozen=True):
    """One repository of a forge; without its address and name there is no forge."""

    kind: ForgeKind = ForgeKind.GITEA
    """The forge that tasks come from and reports go to."""
    url: str = ""
    """Address of the forge, such as `https://git.example.org`; without it, or without `forge.repo`, there is no forge.
    """
    repo: str = ""
    """The repository on the forge, as `owner/name`."""
    label: str = "agent"
    """Open issues become tasks when one of `forge.users` sets this label."""
    users: tuple[str, ...] = ()
    """Login names of those who may set the label and decide in comments."""
    token_env: str = "GITEA_TOKEN"  # noqa: S105 - the name of a variable
    """The environment variable that holds the token of the agent's own account; tokens do not belong in files."""
    report: tuple[ReportPart, ...] = tuple(ReportPart)
    """Parts of a report besides its comments: the task's branch, a pull request, the state of the commit, the tag
    `task-<id>-done`.
    """
    poll_seconds: float = 60.0
    """Time between two looks at the forge."""
    plain_http: bool = False
    """Send the token to an address without TLS that is not on this machine."""

    @property
    def active(self) -> bool:
        """True if a forge is set."""
        return bool(self.url and self.repo)

    def allows(self, login: str) -> bool:
        """Return True if the user may set the label and decide; logins do not distinguish case."""
        return bool(login) and login.lower() in {each.lower() for each in self.users}
