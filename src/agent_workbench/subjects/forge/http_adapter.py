"""Port `Forge` over HTTP: the routes that forges share, the fields of their answers, and the agent's own comments.

GitHub's interface is the model for that of Gitea and Forgejo, so one class reads the answers of all of them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Protocol, TypeVar

from msgspec import Meta, Struct

from agent_workbench.core.errors import ForgeError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import BuildState, ForgeComment, ForgeIssue
from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.client_adapter import ApiAnswer, ForgeApi, Refused
from agent_workbench.subjects.forge.issues import text_sha

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


MOST_PAGES = 20
RECENT_PAGES = 4
"""Pages of pull requests, the newest first: a repository may have thousands."""
CHANGED = "it was changed after the label was set, so its text may not be what was labelled"

Row = TypeVar("Row", bound=RowAnswer)

_KEY = re.compile(r"<!-- agent-workbench ([A-Za-z0-9._:/@-]{1,200}) -->")


class ForgeRoutes(Struct, frozen=True):
    """Spellings in which the interfaces differ: paths below the repository, parameters, and entries on a page."""

    statuses: str
    page: int
    page_size: str
    issues: Mapping[str, str]
    pulls: Mapping[str, str]


class HttpForge(ABC):
    """`core.ports.forge.Forge` for the repository that the settings name; a subclass has what differs.

    `prefix` is the path of the interface below the client's address.
    """

    routes: ClassVar[ForgeRoutes]

    def __init__(self, api: ForgeApi, settings: ForgeSettings, prefix: str) -> None:
        self.api = api
        self.settings = settings
        self.prefix = prefix
        self.repo = f"{prefix}/repos/{settings.repo}"
        self._login = ""
        self._base = ""
        self._looked: dict[int, tuple[datetime, ForgeIssue | None]] = {}

    async def issues(self, known: Collection[int] = ()) -> tuple[ForgeIssue, ...]:
        label = self.settings.label
        query = {"state": "open", "labels": label, **self.routes.issues}
        found = await self.pages(IssueAnswer, f"{self.repo}/issues", query)
        issues: list[ForgeIssue] = []
        failed: ForgeError | None = None
        for each in found:
            named = any(one.name == label for one in each.labels or ())
            if named and each.pull_request is None and each.state == "open" and each.number not in known:
                at, issue = self._looked.get(each.number, (None, None))
                try:
                    if at != each.updated_at:
                        issue = await self.labelled(each)
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
            path = f"{self.repo}/issues/{issue}/comments"
            await self.api.send("POST", path, {"body": with_key(text, key)}, CommentAnswer)
        elif mine.text != text.strip():
            path = f"{self.repo}/issues/comments/{mine.id}"
            await self.api.send("PATCH", path, {"body": with_key(text, key)}, CommentAnswer)

    async def may_write(self, login: str) -> bool:
        return True

    async def set_state(self, commit: CommitId, context: str, state: BuildState, text: str) -> None:
        path = f"{self.repo}/{self.routes.statuses.format(commit)}"
        said = [each for each in await self.pages(StatusAnswer, path, {}) if each.context == context]
        newest = max(said, key=lambda each: each.id, default=StatusAnswer())
        if (newest.status or newest.state, newest.description) != (state, text):
            body = {"context": context, "state": state, "description": text}
            await self.api.send("POST", f"{self.repo}/statuses/{commit}", body, StatusAnswer)

    async def request_merge(self, branch: str, title: str, text: str, *, again: bool = False) -> str:
        base, login = await self._default_branch(), await self.own_login()
        pull = await self._pull_of(branch, again=again)
        wanted = {"title": title, "body": text}
        if pull is None:
            try:
                body = {"head": branch, "base": base, **wanted}
                pull = await self.api.send("POST", f"{self.repo}/pulls", body, PullAnswer)
            except Refused:
                pull = await self._pull_of(branch, again=again)
                if pull is None:
                    raise
        elif pull.state == "open" and pull.login == login.lower() and pull.texts != (title, text.strip()):
            pull = await self.api.send("PATCH", f"{self.repo}/pulls/{pull.number}", wanted, PullAnswer)
        return pull.html_url

    async def close(self) -> None:
        await self.api.close()

    @abstractmethod
    async def labelled(self, issue: IssueAnswer) -> ForgeIssue | None:
        """Return an issue that an allowed user labelled, None for any other; raise `ForgeError`."""

    async def comment_rows(self, path: str) -> list[CommentAnswer]:
        """Return all comments of an issue."""
        return await self.pages(CommentAnswer, path, {})

    def pull_query(self, branch: str) -> dict[str, str]:
        """Return the query for the pull requests among which those of a branch are, the newest first."""
        return {"state": "all", **self.routes.pulls}

    def is_last(self, answer: ApiAnswer, kind: type[RowAnswer], rows: int) -> bool:
        """Return True if no page follows the one that brought the number of entries to `rows`."""
        return 0 <= answer.total <= rows

    async def pages(self, kind: type[Row], path: str, query: Mapping[str, str], most_pages: int = 0) -> list[Row]:
        """Return the rows of all pages, each once.

        Pages are asked for by number: an address that the forge names is never followed. Raises `ForgeError` for more
        rows than are read, unless `most_pages` are enough: what is unseen must not decide.
        """
        rows: dict[int, Row] = {}
        size = self.routes.page
        for page in range(1, (most_pages or MOST_PAGES) + 1):
            wanted: dict[str, str | int] = {**query, "page": page, self.routes.page_size: size}
            answer = await self.api.request("GET", path, query=wanted)
            fresh = {row.key: row for row in self.api.read_rows(answer, kind) if row.key not in rows}
            rows |= fresh
            if not fresh or self.is_last(answer, kind, len(rows)):
                return list(rows.values())
        if most_pages:
            return list(rows.values())
        raise ForgeError(f"{path} of the forge has more than {MOST_PAGES * size:,} entries")

    async def own_login(self) -> str:
        """Return the login of the token's account."""
        if not self._login:
            self._login = (await self.api.get(f"{self.prefix}/user", AccountAnswer)).login
            if not self._login:
                raise ForgeError(f"the forge at {self.api.address} does not tell whose token it is")
        return self._login

    async def _comments(self, issue: int) -> tuple[ForgeComment, ...]:
        login = (await self.own_login()).lower()
        found = await self.comment_rows(f"{self.repo}/issues/{issue}/comments")
        return tuple(sorted((_as_comment(each, login) for each in found), key=lambda each: each.id))

    async def _pull_of(self, branch: str, *, again: bool) -> PullAnswer | None:
        """Return the branch's open pull request, else its newest one unless `again`."""
        found = await self.pages(PullAnswer, f"{self.repo}/pulls", self.pull_query(branch), RECENT_PAGES)
        ours = [each for each in found if each.is_from(branch)]
        latest = None if again else next(iter(ours), None)
        return next((each for each in ours if each.state == "open"), latest)

    async def _default_branch(self) -> str:
        if not self._base:
            self._base = (await self.api.get(self.repo, RepoAnswer)).default_branch
        return self._base


def as_issue(number: int, title: str, text: str, by: str, event: int, problem: str) -> ForgeIssue:
    """Return an issue that `by` labelled with this event."""
    return ForgeIssue(number, title, text, text_sha(title, text), by, event, problem)


def _as_comment(comment: CommentAnswer, own_login: str) -> ForgeComment:
    imported = bool(comment.original_author or comment.original_author_id)
    user = comment.user or AccountAnswer()
    program = imported or not user.person or comment.performed_via_github_app is not None
    own = not imported and user.login.lower() == own_login
    text, key = split_key(comment.body or "") if own else (comment.body or "", "")
    edited = comment.updated_at != comment.created_at
    return ForgeComment(comment.id, user.login, text, own, edited, program, key)


def with_key(text: str, key: str) -> str:
    """Return the comment's body: its text, and the key in a last line that is not displayed."""
    return f"{text.strip()}\n\n<!-- agent-workbench {key} -->"


def split_key(body: str) -> tuple[str, str]:
    """Return text and key of a comment of the agent's account; only the last line can be a key."""
    lines = body.replace("\r\n", "\n").strip()
    text, _, last = lines.rpartition("\n")
    match = _KEY.fullmatch(last.strip())
    return (text.strip(), match[1]) if match else (lines, "")
