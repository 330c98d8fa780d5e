"""Contract of `core.ports.forge.Forge`."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from typing import Protocol

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ForgeError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import BuildState, Forge, ForgeComment, ForgeIssue
from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.gitea_adapter import GiteaForge
from agent_workbench.subjects.forge.github_adapter import GithubForge
from tests.fakes.forge_server import REPO, TOKEN, ForgeServer, labelled
from tests.fakes.gitea_server import gitea_server
from tests.fakes.github_server import github_server
from tests.fakes.stores import MemoryForge


class ForgeOfTests(Forge, Protocol):
    """A forge on which a test can also be somebody else."""

    def say(self, issue: int, author: str, text: str) -> ForgeComment:
        """Add a comment as `author`."""


class GiteaOfTests(GiteaForge):
    """The adapter of Gitea, and a user of its server."""

    server: ForgeServer

    def say(self, issue: int, author: str, text: str) -> ForgeComment:
        return self.server.say(issue, author, text)


class GithubOfTests(GithubForge):
    """The adapter of GitHub, and a user of its server."""

    server: ForgeServer

    def say(self, issue: int, author: str, text: str) -> ForgeComment:
        return self.server.say(issue, author, text)


@contextmanager
def memory(issues: Sequence[ForgeIssue]) -> Iterator[ForgeOfTests]:
    yield MemoryForge(issues)


@contextmanager
def gitea(issues: Sequence[ForgeIssue]) -> Iterator[ForgeOfTests]:
    with gitea_server() as server:
        forge = GiteaOfTests.at(settings_of(server, issues), TOKEN)
        forge.server = server
        yield forge


@contextmanager
def github(issues: Sequence[ForgeIssue]) -> Iterator[ForgeOfTests]:
    with github_server() as server:
        forge = GithubOfTests.at(settings_of(server, issues), TOKEN)
        forge.server = server
        yield forge


def settings_of(server: ForgeServer, issues: Sequence[ForgeIssue]) -> ForgeSettings:
    """Return the settings for a server, on which these issues are labelled, and a pull request and another issue."""
    for each in issues:
        labelled(server, each)
    server.open_issue(50, "A pull request", "text")
    server.issues[50]["pull_request"] = {f"{each}url": server.url for each in ("", "html_", "diff_", "patch_")}
    server.label(50, "ada")
    server.open_issue(51, "Another issue", "text")
    return ForgeSettings(url=server.url, repo=REPO, users=("ada",))


IMPLEMENTATIONS: dict[str, Callable[[Sequence[ForgeIssue]], AbstractContextManager[ForgeOfTests]]] = {
    "memory": memory,
    "gitea": gitea,
    "github": github,
}


def issue(number: int) -> ForgeIssue:
    title, text = f"Issue {number}", "Make it right"
    return ForgeIssue(number, title, text, sha256(f"{title}\n{text}".encode()).hexdigest(), "ada")


@pytest.fixture(params=IMPLEMENTATIONS)
async def forge(request: pytest.FixtureRequest) -> AsyncIterator[ForgeOfTests]:
    with IMPLEMENTATIONS[request.param]([issue(7), issue(3)]) as opened:
        yield opened
        await opened.close()


class TestForge:
    """Reports can be repeated; whose comment it is, and whether it was edited, is known."""

    async def test_issues_come_by_number(self, forge: ForgeOfTests) -> None:
        found = [replace(each, label_event=0) for each in await forge.issues()]
        assert found == [issue(3), issue(7)]
        assert [each.number for each in await forge.issues(known=[3])] == [7]

    async def test_comments_come_in_order_behind_the_last_one_read(self, forge: ForgeOfTests) -> None:
        first, second = forge.say(3, "ada", "/retry"), forge.say(3, "bob", "hello")
        assert await forge.comments(3) == (first, second)
        assert await forge.comments(3, after=first.id) == (second,)
        assert await forge.comments(7) == ()

    async def test_an_unknown_issue_is_an_error(self, forge: ForgeOfTests) -> None:
        with pytest.raises(ForgeError):
            await forge.comments(99)
        with pytest.raises(ForgeError):
            await forge.comment(99, "progress", "text")

    async def test_a_report_that_is_repeated_changes_nothing(self, forge: ForgeOfTests) -> None:
        await forge.comment(3, "progress", "step 1")
        (before,) = await forge.comments(3)
        await forge.comment(3, "progress", "step 1")
        assert await forge.comments(3) == (before,)
        assert (before.own, before.edited, before.key) == (True, False, "progress")

    async def test_a_report_takes_the_place_of_the_one_before(self, forge: ForgeOfTests) -> None:
        await forge.comment(3, "progress", "step 1")
        await forge.comment(3, "result", "done")
        await forge.comment(3, "progress", "step 2")
        assert [each.text for each in await forge.comments(3)] == ["step 2", "done"]

    async def test_a_user_who_set_the_label_may_write(self, forge: ForgeOfTests) -> None:
        assert [await forge.may_write(each.labelled_by) for each in await forge.issues()] == [True, True]

    async def test_states_and_requests_can_be_repeated(self, forge: ForgeOfTests) -> None:
        commit = CommitId("c" * 40)
        for _ in range(2):
            await forge.set_state(commit, "agent", BuildState.PENDING, "at work")
        addresses = {await forge.request_merge("agent/T-1", title, "text") for title in ("a", "b")}
        assert len(addresses) == 1
