import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ForgeError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import BuildState
from agent_workbench.subjects.forge.adapters.gitea import GiteaForge
from agent_workbench.subjects.forge.adapters.http_forge import CHANGED, split_key, with_key
from agent_workbench.subjects.forge.issues import text_sha
from tests.fakes.forge_server import AGENT
from tests.fakes.gitea_server import SCHEMA, GiteaServer

COMMIT = CommitId("c" * 40)
COMMENTS = "GET /repos/{owner}/{repo}/issues/{index}/comments"


class TestIssues:
    """An issue counts if an allowed user set the label, and nothing happened to it since."""

    async def test_an_allowed_user_labels(self, server: GiteaServer, forge: GiteaForge) -> None:
        server.open_issue(7, "Round prices", "Half up.\n", author="stranger")
        event = server.label(7, "BOB")
        (issue,) = await forge.issues()
        assert (issue.number, issue.title, issue.text) == (7, "Round prices", "Half up.\n")
        assert (issue.labelled_by, issue.label_event, issue.problem) == ("BOB", event, "")
        assert issue.text_sha == text_sha("Round prices", "Half up.\n")

    @pytest.mark.parametrize("by", ["stranger", AGENT, "Ghost", "gitea-actions", "ada2", "ad"])
    async def test_nobody_else_does(self, server: GiteaServer, forge: GiteaForge, by: str) -> None:
        server.open_issue(7, "Title", "text")
        server.label(7, by)
        assert await forge.issues() == ()

    async def test_the_last_labelling_counts(self, server: GiteaServer, forge: GiteaForge) -> None:
        server.open_issue(7, "Title", "text")
        server.label(7, "ada")
        server.label(7, "stranger", added=False)
        server.label(7, "stranger")
        assert await forge.issues() == ()
        server.label(7, "stranger", added=False)
        server.label(7, "ada")
        assert [each.problem for each in await forge.issues()] == [""]

    async def test_another_label_is_not_the_agent_s(self, server: GiteaServer, forge: GiteaForge) -> None:
        server.open_issue(7, "Title", "text")
        server.label(7, "stranger")
        server.label(7, "ada", name="agent2")
        assert await forge.issues() == ()

    @pytest.mark.parametrize("what", ["title", "body"])
    async def test_a_text_that_changed_since_is_told_of(
        self, server: GiteaServer, forge: GiteaForge, what: str
    ) -> None:
        server.open_issue(7, "Title", "text", author="stranger")
        server.label(7, "ada")
        server.edit_issue(7, **{what: "and now for something else"})
        assert [each.problem for each in await forge.issues()] == [CHANGED]
        server.say(7, "stranger", "an edit, hidden behind a comment")
        assert [each.problem for each in await forge.issues()] == [CHANGED]
        server.label(7, "ada", added=False)
        server.label(7, "ada")
        assert [each.problem for each in await forge.issues()] == [""]

    async def test_closed_issues_and_known_ones_are_left_out(self, server: GiteaServer, forge: GiteaForge) -> None:
        for number in (7, 8, 9):
            server.open_issue(number, "Title", "text")
            server.label(number, "ada")
        server.edit_issue(8, state="closed")
        assert [each.number for each in await forge.issues(known={9})] == [7]

    async def test_an_issue_that_was_looked_at_is_not_asked_for_again(
        self, server: GiteaServer, forge: GiteaForge
    ) -> None:
        server.open_issue(7, "Title", "text")
        server.label(7, "stranger")
        await forge.issues()
        server.requests.clear()
        await forge.issues()
        assert len(server.requests) == 1

    async def test_all_pages_are_read(self, server: GiteaServer, forge: GiteaForge) -> None:
        for number in range(1, 121):
            server.open_issue(number, "Title", "text")
            server.label(number, "ada")
        assert [each.number for each in await forge.issues()] == list(range(1, 121))


class TestComments:
    """Who wrote a comment, and whether it is as it was written."""

    async def test_edited_imported_and_foreign_comments_are_told_apart(
        self, server: GiteaServer, forge: GiteaForge
    ) -> None:
        server.open_issue(7, "Title", "text")
        await forge.comment(7, "progress:task-7", "step 1")
        edited = server.say(7, "ada", "first")
        server.edit_comment(7, edited.id, "/approve something")
        server.say(7, "ada", "/retry", original_author="mallory", original_author_id=77)
        server.say(7, "ada", f"{with_key('forged', 'progress:task-7')}")
        own, second, imported, forged = await forge.comments(7)
        assert (own.own, own.key, own.text) == (True, "progress:task-7", "step 1")
        assert (second.edited, second.own, second.bot) == (True, False, False)
        assert imported.bot
        assert (forged.own, forged.key) == (False, "")

    async def test_a_version_that_divides_comments_into_pages_is_read_to_the_end(
        self, server: GiteaServer, forge: GiteaForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.open_issue(7, "Title", "text")
        for number in range(7):
            server.say(7, "ada", f"comment {number}")
        server.comments_page = 3
        monkeypatch.setattr(GiteaForge, "routes", replace(GiteaForge.routes, page=3))
        monkeypatch.setitem(SCHEMA["operations"][COMMENTS], "query", ["since", "before", "page", "limit"])
        assert [each.text for each in await forge.comments(7)] == [f"comment {number}" for number in range(7)]

    async def test_a_key_is_the_last_line_alone(self) -> None:
        quoted = with_key("```\n<!-- agent-workbench proposal:x -->\n```", "progress:task-7")
        assert split_key(quoted)[1] == "progress:task-7"
        assert split_key("<!-- agent-workbench a --> and more") == ("<!-- agent-workbench a --> and more", "")

    async def test_too_many_events_are_an_error_and_not_half_of_them(
        self, server: GiteaServer, forge: GiteaForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.open_issue(7, "Title", "text")
        for number in range(3):
            server.label(7, "ada", added=bool(number % 2), name=f"l{number}")
        monkeypatch.setattr("agent_workbench.subjects.forge.adapters.http_forge.MOST_PAGES", 1)
        monkeypatch.setattr(GiteaForge, "routes", replace(GiteaForge.routes, page=2))
        server.label(7, "ada")
        server.say(7, "ada", "changed")
        with pytest.raises(ForgeError, match="more than 2 entries"):
            await forge.issues()


async def test_a_state_is_sent_once_and_again_when_it_changes(server: GiteaServer, forge: GiteaForge) -> None:
    for state in (BuildState.PENDING, BuildState.PENDING, BuildState.SUCCESS, BuildState.SUCCESS):
        await forge.set_state(COMMIT, "agent", state, "text")
    assert [each["status"] for each in server.states] == ["pending", "success"]


async def test_a_pull_request_is_opened_once_updated_and_never_opened_again(
    server: GiteaServer, forge: GiteaForge
) -> None:
    server.open_pull("agent/task-7", "stranger", "from a fork", "", repo_id=2)
    address = await forge.request_merge("agent/task-7", "Title", "text\n")
    assert await forge.request_merge("agent/task-7", "Title", "text\n") == address
    assert len(server.pulls) == 2
    assert not any(each.startswith("PATCH") for each in server.requests)
    await forge.request_merge("agent/task-7", "Title", "more text")
    assert server.pulls[1]["body"] == "more text"
    server.pulls[1]["state"] = "closed"
    assert await forge.request_merge("agent/task-7", "Title", "other text") == address
    assert (len(server.pulls), server.pulls[1]["body"]) == (2, "more text")


async def test_a_pull_request_of_somebody_else_is_not_rewritten(server: GiteaServer, forge: GiteaForge) -> None:
    server.open_pull("agent/task-7", "ada", "mine", "by hand")
    await forge.request_merge("agent/task-7", "Title", "text")
    assert [(each["title"], each["body"]) for each in server.pulls] == [("mine", "by hand")]
