"""Port `Forge` on Gitea and Forgejo: issues, the last change of a label, and the agent's own comments."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from agent_workbench.adapters.forge.api_client import ForgeApi
from agent_workbench.adapters.forge.gitea_answers import (
    GiteaComment,
    GiteaEvent,
    GiteaIssue,
    GiteaPull,
    GiteaRepo,
    GiteaRow,
    GiteaStatus,
    GiteaUser,
)
from agent_workbench.core.errors import ForgeError
from agent_workbench.core.forge.issue_task import text_sha
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import BuildState, ForgeComment, ForgeIssue
from agent_workbench.core.settings.worker import ForgeSettings

_LABEL_TYPES = {"label", 7}
"""Spellings of the event's type: older versions sent a number."""
_ADDED = "1"

PAGE = 50
MOST_PAGES = 20
RECENT_PAGES = 4
"""Pages of pull requests, the newest first: a repository may have thousands."""
CHANGED = "it was changed after the label was set, so its text may not be what was labelled"

Row = TypeVar("Row", bound=GiteaRow)

_KEY = re.compile(r"<!-- agent-workbench ([A-Za-z0-9._:/@-]{1,200}) -->")


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
    person = newest.user if newest.user is not None and newest.user.id > 0 else None
    return Labelling(newest.id, person.login if person is not None else "", newest.created_at, newest.body == _ADDED)


class GiteaForge:
    """`core.ports.forge.Forge` for the repository that the settings name."""

    def __init__(self, api: ForgeApi, settings: ForgeSettings) -> None:
        self._api = api
        self._settings = settings
        self._repo = f"/api/v1/repos/{settings.repo}"
        self._login = ""
        self._base = ""
        self._looked: dict[int, tuple[datetime, ForgeIssue | None]] = {}

    async def issues(self, known: Collection[int] = ()) -> tuple[ForgeIssue, ...]:
        label = self._settings.label
        found = await self._pages(GiteaIssue, f"{self._repo}/issues", state="open", type="issues", labels=label)
        issues: list[ForgeIssue] = []
        failed: ForgeError | None = None
        for each in found:
            named = any(one.name == label for one in each.labels or ())
            if named and each.pull_request is None and each.state == "open" and each.number not in known:
                at, issue = self._looked.get(each.number, (None, None))
                try:
                    if at != each.updated_at:
                        issue = await self._labelled(each)
                        self._looked[each.number] = (each.updated_at, issue)
                except ForgeError as error:  # such as a history that somebody flooded: it hides no other issue
                    failed, issue = error, None
                issues += [issue] if issue is not None else []
        if failed is not None and not issues:
            raise failed
        return tuple(sorted(issues, key=lambda issue: issue.number))

    async def comments(self, issue: int, after: int = 0) -> tuple[ForgeComment, ...]:
        found = await self._comments(issue)
        return tuple(each for each in found if each.id > after)

    async def comment(self, issue: int, key: str, text: str) -> None:
        found = await self._comments(issue)
        mine = next((each for each in found if each.own and each.key == key), None)
        if mine is None:
            path = f"{self._repo}/issues/{issue}/comments"
            await self._api.send("POST", path, {"body": with_key(text, key)}, GiteaComment)
        elif mine.text != text.strip():
            path = f"{self._repo}/issues/comments/{mine.id}"
            await self._api.send("PATCH", path, {"body": with_key(text, key)}, GiteaComment)

    async def set_state(self, commit: CommitId, context: str, state: BuildState, text: str) -> None:
        path = f"{self._repo}/statuses/{commit}"
        said = [each for each in await self._pages(GiteaStatus, path) if each.context == context]
        newest = max(said, key=lambda each: each.id, default=GiteaStatus())
        if (newest.status, newest.description) != (state, text):
            await self._api.send("POST", path, {"context": context, "state": state, "description": text}, GiteaStatus)

    async def request_merge(self, branch: str, title: str, text: str) -> str:
        base, login = await self._default_branch(), await self._own_login()
        path = f"{self._repo}/pulls"
        found = await self._pages(GiteaPull, path, most_pages=RECENT_PAGES, state="all", sort="recentupdate")
        ours = [each for each in found if _is_from(each, branch)]
        pull = next((each for each in ours if each.state == "open"), None) or next(iter(ours), None)
        wanted = {"title": title, "body": text}
        if pull is None:
            body = {"head": branch, "base": base, **wanted}
            pull = await self._api.send("POST", f"{self._repo}/pulls", body, GiteaPull)
        elif pull.state == "open" and _login(pull.user) == login.lower() and _texts(pull) != (title, text.strip()):
            pull = await self._api.send("PATCH", f"{self._repo}/pulls/{pull.number}", wanted, GiteaPull)
        return pull.html_url

    async def close(self) -> None:
        await self._api.close()

    async def _labelled(self, issue: GiteaIssue) -> ForgeIssue | None:
        """Return an issue that an allowed user labelled, None for any other.

        Anything that changes an issue moves its time of update. If the labelling is not the last change, the text may
        be another one than the user saw: the forge has no history of texts.
        """
        path = f"{self._repo}/issues/{issue.number}/timeline"
        since = issue.updated_at.isoformat().replace("+00:00", "Z")
        found = last_labelling(await self._pages(GiteaEvent, path, since=since), self._settings.label)
        fresh = found is not None and found.at >= issue.updated_at
        if found is None:
            found = last_labelling(await self._pages(GiteaEvent, path), self._settings.label)
        if found is None or not found.added or not self._settings.allows(found.by):
            return None
        if found.by.lower() == (await self._own_login()).lower():
            return None
        return _as_issue(issue, found, "" if fresh else CHANGED)

    async def _comments(self, issue: int) -> tuple[ForgeComment, ...]:
        login = (await self._own_login()).lower()
        path = f"{self._repo}/issues/{issue}/comments"
        answer = await self._api.request("GET", path)
        found = self._api.read_rows(answer, GiteaComment)
        if answer.total > len(found):  # a version that divides them into pages
            found = await self._pages(GiteaComment, path)
        return tuple(sorted((_as_comment(each, login) for each in found), key=lambda each: each.id))

    async def _pages(self, kind: type[Row], path: str, most_pages: int = 0, **query: str) -> list[Row]:
        """Return the rows of all pages, each once.

        Raises `ForgeError` for more rows than are read, unless `most_pages` are enough: what is unseen must not decide.
        """
        rows: dict[int, Row] = {}
        for page in range(1, (most_pages or MOST_PAGES) + 1):
            answer = await self._api.request("GET", path, query={**query, "page": page, "limit": PAGE})
            fresh = {row.key: row for row in self._api.read_rows(answer, kind) if row.key not in rows}
            rows |= fresh
            # The timeline tells the number of a page as that of all; the other lists tell the truth.
            if not fresh or (kind is not GiteaEvent and 0 <= answer.total <= len(rows)):
                return list(rows.values())
        if most_pages:
            return list(rows.values())
        raise ForgeError(f"{path} of the forge has more than {MOST_PAGES * PAGE:,} entries")

    async def _own_login(self) -> str:
        if not self._login:
            self._login = (await self._api.get("/api/v1/user", GiteaUser)).login
            if not self._login:
                raise ForgeError(f"the forge at {self._api.address} does not tell whose token it is")
        return self._login

    async def _default_branch(self) -> str:
        if not self._base:
            self._base = (await self._api.get(self._repo, GiteaRepo)).default_branch
        return self._base


def _as_issue(issue: GiteaIssue, labelling: Labelling, problem: str) -> ForgeIssue:
    text = issue.body or ""
    sha = text_sha(issue.title, text)
    return ForgeIssue(issue.number, issue.title, text, sha, labelling.by, labelling.id, problem)


def _as_comment(comment: GiteaComment, own_login: str) -> ForgeComment:
    imported = bool(comment.original_author or comment.original_author_id)
    user = comment.user or GiteaUser()
    own = not imported and user.login.lower() == own_login
    text, key = split_key(comment.body or "") if own else (comment.body or "", "")
    edited = comment.updated_at != comment.created_at
    return ForgeComment(comment.id, user.login, text, own, edited, imported or user.id < 1, key)


def _is_from(pull: GiteaPull, branch: str) -> bool:
    """Return True for a pull request of this repository's branch, not of a fork's branch with the same name."""
    head, base = pull.head, pull.base
    return head is not None and base is not None and head.ref == branch and head.repo_id == base.repo_id


def _login(user: GiteaUser | None) -> str:
    return user.login.lower() if user is not None else ""


def _texts(pull: GiteaPull) -> tuple[str, str]:
    return pull.title, (pull.body or "").replace("\r\n", "\n").strip()


def with_key(text: str, key: str) -> str:
    """Return the comment's body: its text, and the key in a last line that is not displayed."""
    return f"{text.strip()}\n\n<!-- agent-workbench {key} -->"


def split_key(body: str) -> tuple[str, str]:
    """Return text and key of a comment of the agent's account; only the last line can be a key."""
    lines = body.replace("\r\n", "\n").strip()
    text, _, last = lines.rpartition("\n")
    match = _KEY.fullmatch(last.strip())
    return (text.strip(), match[1]) if match else (lines, "")
