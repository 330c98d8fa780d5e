"""GitHub and GitHub Enterprise as a forge: labellings and edits from GraphQL, and the permissions of users."""

from http import HTTPStatus
from typing import ClassVar, Self
from urllib.parse import urlsplit

from msgspec import Struct

from agent_workbench.core.errors import ForgeError
from agent_workbench.core.ports.forge import ForgeIssue
from agent_workbench.core.settings.worker import ForgeSettings, is_github_host
from agent_workbench.subjects.forge.client_adapter import ApiAnswer, ApiDialect, ForgeApi, NotFound
from agent_workbench.subjects.forge.http_adapter import (
    CHANGED,
    ForgeRoutes,
    HttpForge,
    IssueAnswer,
    LabelAnswer,
    RowAnswer,
    Time,
    as_issue,
)

DIALECT = ApiDialect(
    scheme="Bearer",
    headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    advice={
        HTTPStatus.FORBIDDEN: "give the token read and write access to contents, issues, pull requests and commit "
        "statuses of the repository"
    },
)
_WRITERS = {"admin", "write"}
"""Permissions that include writing; GitHub reports `maintain` as `write`, and `triage` as `read`."""
_EVENT = "createdAt actor{__typename login} label{name}"
QUERY = (
    "query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){issue(number:$number){"
    "title body lastEditedAt "
    "labellings:timelineItems(last:100,itemTypes:[LABELED_EVENT,UNLABELED_EVENT]){nodes{__typename "
    f"...on LabeledEvent{{{_EVENT}}} ...on UnlabeledEvent{{{_EVENT}}}}}}} "
    "renamings:timelineItems(last:1,itemTypes:[RENAMED_TITLE_EVENT]){nodes{__typename "
    "...on RenamedTitleEvent{createdAt}}}}}}"
)


class GithubActor(Struct, frozen=True, rename={"kind": "__typename"}):
    """Account that did something; `kind` is `User` for a person."""

    kind: str = ""
    login: str = ""


class GithubEvent(Struct, frozen=True, rename={"kind": "__typename", "at": "createdAt"}):
    """Event of an issue."""

    at: Time
    kind: str = ""
    actor: GithubActor | None = None
    label: LabelAnswer | None = None


class GithubEvents(Struct, frozen=True):
    """Newest events of some kinds, in order."""

    nodes: tuple[GithubEvent, ...] = ()


class GithubIssue(Struct, frozen=True, rename={"edited_at": "lastEditedAt"}):
    """An issue's text with the times of its changes, as of one moment."""

    title: str
    body: str
    labellings: GithubEvents
    renamings: GithubEvents
    edited_at: Time | None = None


class GithubRepository(Struct, frozen=True):
    """Repository with the issue that was asked for."""

    issue: GithubIssue | None = None


class GithubData(Struct, frozen=True):
    """Data of a query."""

    repository: GithubRepository | None = None


class GithubProblem(Struct, frozen=True):
    """Reason why a query has no data, or not all."""

    message: str = ""


class GithubAnswer(Struct, frozen=True):
    """Answer to a query."""

    data: GithubData | None = None
    errors: tuple[GithubProblem, ...] = ()


class GithubPermission(Struct, frozen=True):
    """Permission of a user in a repository."""

    permission: str = ""


class GithubForge(HttpForge):
    """A repository on GitHub or a GitHub Enterprise server."""

    routes: ClassVar = ForgeRoutes(
        statuses="commits/{}/statuses",
        page=100,
        page_size="per_page",
        issues={},
        pulls={"sort": "updated", "direction": "desc"},
    )

    def __init__(self, api: ForgeApi, settings: ForgeSettings) -> None:
        super().__init__(api, settings, "" if is_github_host(settings.url) else "/v3")

    @classmethod
    def at(cls, settings: ForgeSettings, token: str) -> Self:
        """Return the forge that the settings name; raise `ConfigError`."""
        return cls(ForgeApi(api_address(settings.url), token, DIALECT, plain_http=settings.plain_http), settings)

    async def may_write(self, login: str) -> bool:
        """Return True if the user may write to the repository.

        A login that its owner gave up can be another person's today, who has no such permission.
        """
        try:
            found = await self.api.get(f"{self.repo}/collaborators/{login}/permission", GithubPermission)
        except NotFound:
            return False
        return found.permission in _WRITERS

    async def labelled(self, issue: IssueAnswer) -> ForgeIssue | None:
        """Return an issue that an allowed user labelled, None for any other.

        Its text and the times of all its changes come in one answer, so comments and other labels do not matter.
        """
        text = await self._text_of(issue.number)
        label = self.settings.label
        events = [each for each in text.labellings.nodes if each.label is not None and each.label.name == label]
        _, newest = max(enumerate(events), key=lambda each: (each[1].at, each[0]), default=(0, None))
        if newest is None or newest.kind != "LabeledEvent" or newest.actor is None or newest.actor.kind != "User":
            return None
        by = newest.actor.login
        if not self.settings.allows(by) or by.lower() == (await self.own_login()).lower():
            return None
        if not await self.may_write(by):
            return None
        changes = (text.edited_at, *(each.at for each in text.renamings.nodes))
        late = any(at is not None and at >= newest.at for at in changes)
        event = int(newest.at.timestamp())
        return as_issue(issue.number, text.title, text.body, by, event, CHANGED if late else "")

    def pull_query(self, branch: str) -> dict[str, str]:
        owner = self.settings.repo.partition("/")[0]
        return {**super().pull_query(branch), "head": f"{owner}:{branch}"}

    def is_last(self, answer: ApiAnswer, kind: type[RowAnswer], rows: int) -> bool:
        # A full page that comes from memory does not know of one that follows it since.
        return not answer.more and rows % self.routes.page != 0

    async def _text_of(self, number: int) -> GithubIssue:
        owner, _, name = self.settings.repo.partition("/")
        variables = {"owner": owner, "name": name, "number": number}
        answer = await self.api.send("POST", "/graphql", {"query": QUERY, "variables": variables}, GithubAnswer)
        repository = answer.data.repository if answer.data is not None else None
        if repository is None or repository.issue is None or answer.errors:
            said = self.api.inert(answer.errors[0].message if answer.errors else "there is no such issue")
            raise ForgeError(f"the forge at {self.api.address} does not tell the text of issue {number}: {said}")
        return repository.issue


def api_address(url: str) -> str:
    """Return the address of the interfaces of the GitHub at `url`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://api.{parts.netloc}" if is_github_host(url) else f"{url.rstrip('/')}/api"
