"""Settings of workers, of the database that they share, and of the forge that their tasks come from."""

import re
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.text.amounts import time_seconds

MOST_JOBS = 16
"""Tasks that one worker may do at the same time."""
_REPO = r"([A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9_.-]{1,100}?)(?:\.git)?/?"
_REMOTE = re.compile(rf"(?:(https?|ssh)://)?(?:[A-Za-z0-9_.-]+@)?([A-Za-z0-9.-]+)(:\d+)?([/:]){_REPO}", re.ASCII)
"""Address of a git remote with scheme or without, host, port, and repository behind a slash or colon."""

_GITHUB = re.compile(r"https?://(?:github|[a-z0-9-]+\.ghe)\.com(?::\d+)?(?:/|$)", re.ASCII | re.IGNORECASE)


class ParkedEnd(StrEnum):
    """Fate of a parked proposal that nobody decided in time. None of them approves anything."""

    KEEP = "keep"
    REJECT = "reject"


class WorkerSettings(Struct, frozen=True):
    """Time that parked proposals wait, tasks at the same time, and what a machine is among others."""

    park_for: str = ""
    """Time that a proposal waits for you which an unattended run parked: `30min`, `12h`, `3d`; empty: as long as you
    like.
    """
    then: ParkedEnd = ParkedEnd.KEEP
    """Fate of the proposal after that time: `keep` goes on waiting, `reject` rejects it, and the model reads that
    nobody decided in time. Nothing is ever approved this way.
    """
    jobs: int = 1
    """Tasks that `agent worker` does at the same time, 1 to 16; `--jobs` says it for one run."""
    name: str = ""
    """Name of this machine among those that share a database; empty: its host name. Yours alone: no repository may set
    it.
    """
    tags: tuple[str, ...] = ()
    """Words for the purpose of this machine; tasks ask for tags in `needs`. Yours alone."""
    pause_below_percent: float = 20.0
    """With a database: below this share of all workers' capacity nothing new begins."""
    poll_seconds: float = 10.0
    """With a database: time between two looks at what nobody reports."""

    @property
    def park_seconds(self) -> int | None:
        """The time in seconds, None for no end."""
        return time_seconds(self.park_for)


class DatabaseSettings(Struct, frozen=True):
    """The database that machines share, and the keys that sign what is shared."""

    url_env: str = ""
    """The environment variable that holds the address of the PostgreSQL database that machines share; empty: nothing is
    shared.
    """
    remote: str = "origin"
    """The git remote through which checkpoints and branches travel."""
    signing_key: str = ""
    """The private SSH key that signs what this machine shares; empty: one is made in the state folder. Yours alone."""
    allowed_signers: str = ""
    """The file of those whose signatures count, as `ssh-keygen -Y verify` reads it; empty: `allowed_signers` beside
    your settings. Yours alone.
    """

    @property
    def active(self) -> bool:
        """True if a database is set."""
        return bool(self.url_env)


class ForgeKind(StrEnum):
    """Software of the forge. Gitea and Forgejo have the same interface."""

    AUTO = "auto"
    GITEA = "gitea"
    FORGEJO = "forgejo"
    GITHUB = "github"


class ReportPart(StrEnum):
    """Part of a report besides the comments."""

    PUSH = "push"
    PULL_REQUEST = "pull_request"
    STATUS = "status"
    TAG = "tag"


class ForgeSettings(Struct, frozen=True):
    """One repository of a forge; without its address and name there is no forge."""

    kind: ForgeKind = ForgeKind.AUTO
    """The forge that tasks come from and reports go to: `auto` is GitHub at `github.com` and `*.ghe.com`, else Gitea.
    """
    url: str = ""
    """Address of the forge, such as `https://git.example.org`; without it, or without `forge.repo`, there is no forge.
    """
    repo: str = ""
    """The repository on the forge, as `owner/name`."""
    label: str = "agent"
    """Open issues become tasks when one of `forge.users` sets this label."""
    users: tuple[str, ...] = ()
    """Login names of those who may set the label and decide in comments."""
    token_env: str = ""
    """The environment variable that holds the token of the agent's own account, empty: `GITHUB_TOKEN` for GitHub, else
    `GITEA_TOKEN`; tokens do not belong in files.
    """
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

    @property
    def software(self) -> ForgeKind:
        """The kind, or the one that `auto` finds."""
        found = ForgeKind.GITHUB if is_github_host(self.url) else ForgeKind.GITEA
        return found if self.kind is ForgeKind.AUTO else self.kind

    @property
    def token_variable(self) -> str:
        """The environment variable that holds the token."""
        return self.token_env or ("GITHUB_TOKEN" if self.software is ForgeKind.GITHUB else "GITEA_TOKEN")

    def at_remote(self, address: str) -> "ForgeSettings":
        """Return these settings with the forge that the address of a git remote names.

        Without a kind, only GitHub is known by its address; any other one, and an unusable one, changes nothing.
        """
        found = _REMOTE.fullmatch(address)
        if found is None or found[5].rpartition("/")[2] in {".", ".."}:
            return self
        scheme, host, port, divider, repo = found.groups()
        if (divider == "/") is (scheme is None):  # a path of this machine, or an address that git does not take
            return self
        web = scheme if scheme in {"http", "https"} else "https"
        url = f"{web}://{host.lower()}{port or '' if web == scheme else ''}"
        known = self.kind is not ForgeKind.AUTO or is_github_host(url)
        return replace(self, url=url, repo=repo) if known else self

    def allows(self, login: str) -> bool:
        """Return True if the user may set the label and decide; logins do not distinguish case."""
        return bool(login) and login.lower() in {each.lower() for each in self.users}


def is_github_host(url: str) -> bool:
    """Return True for an address at GitHub itself; its Enterprise servers have addresses of their own."""
    return _GITHUB.match(url) is not None
