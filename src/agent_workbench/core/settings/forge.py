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
    """One repository `repo` (`owner/name`) of the forge at `url`; without both of them there is no forge.

    Issues with `label`, set by one of `users`, become tasks, and these users may decide in comments. `token_env` and
    `webhook_secret_env` name environment variables. `plain_http` allows an address without TLS beyond this machine.
    """

    kind: ForgeKind = ForgeKind.GITEA
    url: str = ""
    repo: str = ""
    label: str = "agent"
    users: tuple[str, ...] = ()
    token_env: str = "GITEA_TOKEN"  # noqa: S105 - the name of a variable
    report: tuple[ReportPart, ...] = tuple(ReportPart)
    poll_seconds: float = 60.0
    webhook_secret_env: str = ""
    plain_http: bool = False

    @property
    def active(self) -> bool:
        """True if a forge is set."""
        return bool(self.url and self.repo)

    def allows(self, login: str) -> bool:
        """Return True if the user may set the label and decide; logins do not distinguish case."""
        return bool(login) and login.lower() in {each.lower() for each in self.users}
