"""Gitea and Forgejo as a forge: the last change of a label from the timeline, and undivided comments."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Self

from msgspec import Struct

from agent_workbench.core.ports.forge import ForgeIssue
from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.client_adapter import ApiAnswer, ForgeApi
from agent_workbench.subjects.forge.http_adapter import (
    CHANGED,
    AccountAnswer,
    CommentAnswer,
    ForgeRoutes,
    HttpForge,
    IssueAnswer,
    LabelAnswer,
    RowAnswer,
    Time,
    as_issue,
)

_LABEL_TYPES = {"label", 7}
"""Spellings of the event's type: older versions sent a number."""
_ADDED = "1"


class GiteaEvent(Struct, frozen=True):
    """Entry of an issue's timeline. A label was added if the body of its event is `1`."""

    created_at: Time
    id: int = 0
    type: str | int = ""
    user: AccountAnswer | None = None
    body: str | None = None
    label: LabelAnswer | None = None

    @property
    def key(self) -> int:
        """The id."""
        return self.id


class Labelling(Struct, frozen=True):
    """A label that was added or removed: by whom and when."""

    id: int
    by: str
    at: datetime
    added: bool


def last_labelling(events: Sequence[GiteaEvent], label: str) -> Labelling | None:
    """Return the newest change of the label, None if these events have none; a ghost's or bot's has no author."""
    found = [each for each in events if each.type in _LABEL_TYPES and each.label is not None]
    named = [each for each in found if each.label is not None and each.label.name == label]
    if not named:
        return None
    newest = max(named, key=lambda each: (each.created_at, each.id))
    person = newest.user if newest.user is not None and newest.user.person else None
    return Labelling(newest.id, person.login if person is not None else "", newest.created_at, newest.body == _ADDED)


class GiteaForge(HttpForge):
    """A repository on Gitea or Forgejo."""

    routes: ClassVar = ForgeRoutes(
        statuses="statuses/{}",
        page=50,
        page_size="limit",
        issues={"type": "issues"},
        pulls={"sort": "recentupdate"},
    )

    def __init__(self, api: ForgeApi, settings: ForgeSettings) -> None:
        super().__init__(api, settings, "/api/v1")

    @classmethod
    def at(cls, settings: ForgeSettings, token: str) -> Self:
        """Return the forge that the settings name; raise `ConfigError`."""
        return cls(ForgeApi(settings.url, token, plain_http=settings.plain_http), settings)

    async def labelled(self, issue: IssueAnswer) -> ForgeIssue | None:
        """Return an issue that an allowed user labelled, None for any other.

        Anything that changes an issue moves its time of update. If the labelling is not the last change, the text may
        be another one than the user saw: the forge has no history of texts.
        """
        path = f"{self.repo}/issues/{issue.number}/timeline"
        since = issue.updated_at.isoformat().replace("+00:00", "Z")
        found = await self._last_labelling(path, {"since": since})
        fresh = found is not None and found.at >= issue.updated_at
        if found is None:
            found = await self._last_labelling(path, {})
        if found is None or not found.added or not self.settings.allows(found.by):
            return None
        if found.by.lower() == (await self.own_login()).lower():
            return None
        return as_issue(issue.number, issue.title, issue.body or "", found.by, found.id, "" if fresh else CHANGED)

    async def comment_rows(self, path: str) -> list[CommentAnswer]:
        answer = await self.api.request("GET", path)
        found = self.api.read_rows(answer, CommentAnswer)
        # A version that divides them into pages tells of more.
        return await super().comment_rows(path) if answer.total > len(found) else found

    def is_last(self, answer: ApiAnswer, kind: type[RowAnswer], rows: int) -> bool:
        # The timeline tells the number of a page as that of all; the other lists tell the truth.
        return kind is not GiteaEvent and super().is_last(answer, kind, rows)

    async def _last_labelling(self, path: str, query: Mapping[str, str]) -> Labelling | None:
        return last_labelling(await self.pages(GiteaEvent, path, query), self.settings.label)
