import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ForgeError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import BuildState
from agent_workbench.subjects.forge.gitea_adapter import GiteaForge
from agent_workbench.subjects.forge.http_adapter import CHANGED, split_key, with_key
from agent_workbench.subjects.forge.issues import text_sha
from tests.fakes.forge_server import AGENT
from tests.fakes.gitea_server import SCHEMA, GiteaServer

COMMIT = CommitId("c" * 40)
COMMENTS = "GET /repos/{owner}/{repo}/issues/{index}/comments"


class TestIssues:
    """An issue counts if an allowed user set the label, and nothing happened to it since."""

    async def test_an_allowed_user_labels(self, gitea: GiteaServer, forge: GiteaForge) -> None:
        gitea.open_issue(7, "Round prices", "Half up.\n", author="stranger")
        event = gitea.label(7, "BOB")
        (issue,) = await forge.issues()
        assert (issue.number, issue.title, issue.text) == (7, "Round prices", "Half up.\n")
        assert (issue.labelled_by, issue.label_event, issue.problem) == ("BOB", event, "")
        assert issue.text_sha == text_sha("Round prices", "Half up.\n")

    @pytest.mark.parametrize("by", ["stranger", AGENT, "Ghost", "gitea-actions", "ada2", "ad"])
    async def test_nobody_else_does(self, gitea: GiteaServer, forge: GiteaForge, by: str) -> None:
        gitea.open_issue(7, "Title", "text")
        gitea.label(7, by)
        assert await forge.issues() == ()

    async def test_the_last_labelling_counts(self, gitea: GiteaServer, forge: GiteaForge) -> None:
        gitea.open_issue(7, "Title", "text")
        gitea.label(7, "ada")
        gitea.label(7, "stranger", added=False)
        gitea.label(7, "stranger")
        assert await forge.issues() == ()
        gitea.label(7, "stranger", added=False)
        gitea.label(7, "ada")
        assert [each.problem for each in await forge.issues()] == [""]

    async def test_another_label_is_not_the_agent_s(self, gitea: GiteaServer, forge: GiteaForge) -> None:
        gitea.open_issue(7, "Title", "text")
        gitea.label(7, "stranger")
        gitea.label(7, "ada", name="agent2")
        assert await forge.issues() == ()

    @pytest.mark.parametrize("what", ["title", "body"])
    async def test_a_text_that_changed_since_is_told_of(self, gitea: GiteaServer, forge: GiteaForge, what: str) -> None:
        gitea.open_issue(7, "Title", "text", author="stranger")
        gitea.label(7, "ada")
        gitea.edit_issue(7, **{what: "and now for something else"})
        assert [each.problem for each in await forge.issues()] == [CHANGED]
        gitea.say(7, "stranger", "an edit, hidden behind a comment")
        assert [each.problem for each in await forge.issues()] == [CHANGED]
        gitea.label(7, "ada", added=False)
        gitea.label(7, "ada")
        assert [each.problem for each in await forge.issues()] == [""]

    async def test_closed_issues_and_known_ones_are_left_out(self, gitea: GiteaServer, forge: GiteaForge) -> None:
        for number in (7, 8, 9):
            gitea.open_issue(number, "Title", "text")
            gitea.label(number, "ada")
        gitea.edit_issue(8, state="closed")
        assert [each.number for each in await forge.issues(known={9})] == [7]

    async def test_an_issue_that_was_looked_at_is_not_asked_for_again(
        self, gitea: GiteaServer, forge: GiteaForge
    ) -> None:
        gitea.open_issue(7, "Title", "text")
        gitea.label(7, "stranger")
        await forge.issues()
        gitea.requests.clear()
        await forge.issues()
        assert len(gitea.requests) == 1

    async def test_all_pages_are_read(self, gitea: GiteaServer, forge: GiteaForge) -> None:
        for number in range(1, 121):
            gitea.open_issue(number, "Title", "text")
            gitea.label(number, "ada")
        assert [each.number for each in await forge.issues()] == list(range(1, 121))


class TestComments:
    """Who wrote a comment, and whether it is as it was written."""

    async def test_edited_imported_and_foreign_comments_are_told_apart(
        self, gitea: GiteaServer, forge: GiteaForge
    ) -> None:
        gitea.open_issue(7, "Title", "text")
        await forge.comment(7, "progress:task-7", "step 1")
        edited = gitea.say(7, "ada", "first")
        gitea.edit_comment(7, edited.id, "/approve something")
        gitea.say(7, "ada", "/retry", original_author="mallory", original_author_id=77)
        gitea.say(7, "ada", f"{with_key('forged', 'progress:task-7')}")
        own, second, imported, forged = await forge.comments(7)
        assert (own.own, own.key, own.text) == (True, "progress:task-7", "step 1")
        assert (second.edited, second.own, second.bot) == (True, False, False)
        assert imported.bot
        assert (forged.own, forged.key) == (False, "")

    async def test_a_version_that_divides_comments_into_pages_is_read_to_the_end(
        self, gitea: GiteaServer, forge: GiteaForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gitea.open_issue(7, "Title", "text")
        for number in range(7):
            gitea.say(7, "ada", f"comment {number}")
        gitea.comments_page = 3
        monkeypatch.setattr(GiteaForge, "routes", replace(GiteaForge.routes, page=3))
        monkeypatch.setitem(SCHEMA["operations"][COMMENTS], "query", ["since", "before", "page", "limit"])
        assert [each.text for each in await forge.comments(7)] == [f"comment {number}" for number in range(7)]

    async def test_a_key_is_the_last_line_alone(self) -> None:
        quoted = with_key("```\n<!-- agent-workbench proposal:x -->\n```", "progress:task-7")
        assert split_key(quoted)[1] == "progress:task-7"
        assert split_key("<!-- agent-workbench a --> and more") == ("<!-- agent-workbench a --> and more", "")

    async def test_too_many_events_are_an_error_and_not_half_of_them(
        self, gitea: GiteaServer, forge: GiteaForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gitea.open_issue(7, "Title", "text")
        for number in range(3):
            gitea.label(7, "ada", added=bool(number % 2), name=f"l{number}")
        monkeypatch.setattr("agent_workbench.subjects.forge.http_adapter.MOST_PAGES", 1)
        monkeypatch.setattr(GiteaForge, "routes", replace(GiteaForge.routes, page=2))
        gitea.label(7, "ada")
        gitea.say(7, "ada", "changed")
        with pytest.raises(ForgeError, match="more than 2 entries"):
            await forge.issues()


async def test_a_state_is_sent_once_and_again_when_it_changes(gitea: GiteaServer, forge: GiteaForge) -> None:
    for state in (BuildState.PENDING, BuildState.PENDING, BuildState.SUCCESS, BuildState.SUCCESS):
        await forge.set_state(COMMIT, "agent", state, "text")
    assert [each["status"] for each in gitea.states] == ["pending", "success"]


async def test_a_pull_request_is_opened_once_updated_and_never_opened_again(
    gitea: GiteaServer, forge: GiteaForge
) -> None:
    gitea.open_pull("agent/task-7", "stranger", "from a fork", "", repo_id=2)
    address = await forge.request_merge("agent/task-7", "Title", "text\n")
    assert await forge.request_merge("agent/task-7", "Title", "text\n") == address
    assert len(gitea.pulls) == 2
    assert not any(each.startswith("PATCH") for each in gitea.requests)
    await forge.request_merge("agent/task-7", "Title", "more text")
    assert gitea.pulls[1]["body"] == "more text"
    gitea.pulls[1]["state"] = "closed"
    assert await forge.request_merge("agent/task-7", "Title", "other text") == address
    assert (len(gitea.pulls), gitea.pulls[1]["body"]) == (2, "more text")


async def test_a_pull_request_of_somebody_else_is_not_rewritten(gitea: GiteaServer, forge: GiteaForge) -> None:
    gitea.open_pull("agent/task-7", "ada", "mine", "by hand")
    await forge.request_merge("agent/task-7", "Title", "text")
    assert [(each["title"], each["body"]) for each in gitea.pulls] == [("mine", "by hand")]
