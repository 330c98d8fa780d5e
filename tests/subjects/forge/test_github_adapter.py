import pytest

from agent_workbench.core.errors import ForgeError, error_text
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import BuildState
from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.client_adapter import ForgeApi
from agent_workbench.subjects.forge.github_adapter import DIALECT, GithubForge, api_address
from agent_workbench.subjects.forge.http_adapter import CHANGED
from tests.fakes.forge_server import AGENT, REPO, TOKEN
from tests.fakes.gitea_server import GiteaServer
from tests.fakes.github_server import GithubServer

COMMIT = CommitId("c" * 40)
ISSUES = f"GET /api/v3/repos/{REPO}/issues"


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://github.com/", "https://api.github.com"),
        ("https://octo.ghe.com", "https://api.octo.ghe.com"),
        ("https://git.example.org", "https://git.example.org/api"),
        ("https://github.com.example.org", "https://github.com.example.org/api"),
        ("https://notgithub.com", "https://notgithub.com/api"),
        ("https://ghe.com", "https://ghe.com/api"),
    ],
)
def test_the_token_goes_to_the_interface_of_the_forge_that_is_set(url: str, api: str) -> None:
    forge = GithubForge.at(ForgeSettings(url=url, repo=REPO), TOKEN)
    assert (api_address(url), forge.api.address) == (api, api)
    assert forge.repo == ("/repos/" if api.startswith("https://api.") else "/v3/repos/") + REPO


class TestIssues:
    """An issue counts if an allowed user who may write set the label, and its text is not newer."""

    async def test_comments_and_other_labels_after_the_label_do_not_matter(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.open_issue(7, "Round prices", "Half up.\n", author="stranger")
        github.label(7, "BOB")
        github.say(7, "stranger", "me too")
        github.label(7, "stranger", name="bug")
        (issue,) = await github_forge.issues()
        assert (issue.number, issue.title, issue.text) == (7, "Round prices", "Half up.\n")
        assert (issue.labelled_by, issue.problem) == ("BOB", "")

    @pytest.mark.parametrize("what", ["title", "body"])
    @pytest.mark.parametrize("hurry", [False, True])
    async def test_a_text_that_changed_since_or_in_the_same_second_is_told_of(
        self, github: GithubServer, github_forge: GithubForge, what: str, *, hurry: bool
    ) -> None:
        github.open_issue(7, "Title", "text", author="stranger")
        github.label(7, "ada")
        github.hurry = hurry
        github.edit_issue(7, **{what: "and now for something else"})
        assert [each.problem for each in await github_forge.issues()] == [CHANGED]
        github.hurry = False
        github.label(7, "ada", added=False)
        github.label(7, "ada")
        (issue,) = await github_forge.issues()
        assert (issue.problem, "something else" in issue.title + issue.text) == ("", True)

    @pytest.mark.parametrize("by", ["stranger", AGENT, "Ghost", "ada[bot]", "ada2", "eve"])
    async def test_strangers_programs_and_users_who_may_not_write_do_not_count(
        self, github: GithubServer, github_forge: GithubForge, by: str
    ) -> None:
        """`eve` is listed and has lost her permission; GraphQL tells the bot `ada[bot]` as `ada`."""
        github.open_issue(7, "Title", "text")
        github.label(7, by)
        assert await github_forge.issues() == ()

    async def test_the_last_labelling_counts(self, github: GithubServer, github_forge: GithubForge) -> None:
        github.open_issue(7, "Title", "text")
        github.label(7, "ada")
        github.hurry = True
        github.label(7, "stranger", added=False)
        github.label(7, "stranger")
        assert await github_forge.issues() == ()

    async def test_a_label_that_was_removed_since_the_list_was_read_does_not_count(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.open_issue(7, "Title", "text")
        github.label(7, "ada")
        labels = github.issues[7]["labels"]
        github.label(7, "ada", added=False)
        github.issues[7]["labels"] = labels
        assert await github_forge.issues() == ()

    async def test_a_label_that_many_others_buried_does_not_count(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.open_issue(7, "Title", "text")
        github.label(7, "ada")
        for number in range(100):
            github.label(7, "stranger", name=f"l{number}")
        assert await github_forge.issues() == ()

    async def test_all_pages_are_read_by_number_wherever_links_lead(
        self, github: GithubServer, github_forge: GithubForge, gitea: GiteaServer
    ) -> None:
        """The next page's address names another host here: it is not asked, and sees no token."""
        for number in range(1, 252):
            github.open_issue(number, "Title", "text")
            github.label(number, "stranger")
        github.headers["Link"] = f'<{gitea.url}/api/v3/repositories/1/issues?page=2>; rel="next"'
        assert await github_forge.issues() == ()
        assert [each for each in github.requests if each == ISSUES] == [ISSUES] * 4
        assert gitea.requests == []

    async def test_links_in_a_circle_end(
        self, github: GithubServer, github_forge: GithubForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agent_workbench.subjects.forge.http_adapter.MOST_PAGES", 2)
        github.headers["Link"] = '<https://127.0.0.1/?page=1>; rel="next"'
        github.open_issue(7, "Title", "text")
        github.label(7, "ada")
        assert [each.number for each in await github_forge.issues()] == [7]
        for number in range(100, 350):
            github.open_issue(number, "Title", "text")
            github.label(number, "stranger")
        with pytest.raises(ForgeError, match="more than 200 entries"):
            await github_forge.issues()

    async def test_a_page_that_is_too_large_is_an_error(
        self, github: GithubServer, github_forge: GithubForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agent_workbench.subjects.forge.client_adapter.MAX_ANSWER_BYTES", 50_000)
        github.open_issue(7, "Title", "text")
        github.label(7, "ada")
        github.say(7, "stranger", "x" * 60_000)
        with pytest.raises(ForgeError, match="more than 50,000 bytes"):
            await github_forge.comments(7)
        assert [each.number for each in await github_forge.issues()] == [7]


class TestComments:
    """Who wrote a comment, and whether a person did."""

    async def test_programs_and_deleted_accounts_are_no_person(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.open_issue(7, "Title", "text")
        github.say(7, "ada", "/retry")
        github.say(7, "helper[bot]", "/retry")
        github.say(7, "Ghost", "/retry")
        github.say(7, "ada", "/retry", performed_via_github_app={"id": 1, "slug": "helper"})
        found = await github_forge.comments(7)
        assert [(each.author, each.bot) for each in found] == [
            *(("ada", False), ("helper[bot]", True), ("", True), ("ada", True))
        ]

    async def test_all_pages_of_comments_are_read(self, github: GithubServer, github_forge: GithubForge) -> None:
        github.open_issue(7, "Title", "text")
        for number in range(230):
            github.say(7, "ada", f"comment {number}")
        assert [each.text for each in await github_forge.comments(7)] == [f"comment {each}" for each in range(230)]

    async def test_a_page_that_follows_a_full_one_later_is_read(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        """The full page is the same as before, and so is its ETag."""
        github.open_issue(7, "Title", "text")
        for number in range(100):
            github.say(7, "ada", f"comment {number}")
        assert len(await github_forge.comments(7)) == 100
        for _ in range(2):
            await github_forge.comment(7, "answer:1", "done")
        assert len(github.texts(7)) == 1
        assert len(await github_forge.comments(7)) == 101

    @pytest.mark.parametrize(("login", "may"), [("ada", True), ("bob", True), ("eve", False), ("nobody", False)])
    async def test_a_permission_is_asked_for(
        self, github: GithubServer, github_forge: GithubForge, login: str, *, may: bool
    ) -> None:
        github.fail[f"GET /api/v3/repos/{REPO}/collaborators/nobody"] = 404
        assert await github_forge.may_write(login) is may


class TestLimits:
    """What did not change is not sent again, and a limit is kept to."""

    async def test_an_answer_that_did_not_change_comes_from_memory(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.open_issue(7, "Title", "text")
        github.label(7, "ada")
        first = await github_forge.issues()
        assert github.unchanged == 0
        assert await github_forge.issues() == first
        assert github.unchanged == 1
        github.label(7, "ada", added=False)
        assert await github_forge.issues() == ()
        assert github.unchanged == 1

    @pytest.mark.parametrize("status", [403, 429])
    @pytest.mark.parametrize(
        "headers",
        [
            {"Retry-After": "900"},
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"},
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "\u00b2nonsense"},
            {"X-Told": "You have exceeded a secondary rate limit."},
        ],
    )
    async def test_nothing_is_sent_before_a_limit_ends(
        self, github: GithubServer, github_forge: GithubForge, status: int, headers: dict[str, str]
    ) -> None:
        github.fail[ISSUES], github.headers = status, headers
        for _ in range(2):
            with pytest.raises(ForgeError, match=r"takes none before \d\d:\d\d:\d\d UTC"):
                await github_forge.issues()
        assert github.requests == [ISSUES]

    async def test_a_refusal_without_a_limit_says_what_the_token_needs(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.fail[ISSUES] = 403
        for _ in range(2):
            with pytest.raises(ForgeError) as refused:
                await github_forge.issues()
            assert "commit statuses" in refused.value.advice
        assert github.requests == [ISSUES] * 2

    async def test_the_last_request_of_an_hour_is_answered(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"}
        assert await github_forge.may_write("ada")
        with pytest.raises(ForgeError, match="takes none before"):
            await github_forge.may_write("ada")


async def test_a_state_is_sent_once_and_again_when_it_changes(github: GithubServer, github_forge: GithubForge) -> None:
    for state in (BuildState.PENDING, BuildState.PENDING, BuildState.SUCCESS, BuildState.SUCCESS):
        await github_forge.set_state(COMMIT, "agent", state, "text")
    assert [each["status"] for each in github.states] == ["pending", "success"]


class TestPulls:
    """A branch has one pull request."""

    async def test_a_fork_s_pull_request_is_another_one_and_a_closed_one_stays_closed(
        self, github: GithubServer, github_forge: GithubForge
    ) -> None:
        github.open_pull("agent/task-7", "stranger", "from a fork", "", repo_id=2)
        address = await github_forge.request_merge("agent/task-7", "Title", "text\n")
        assert await github_forge.request_merge("agent/task-7", "Title", "more text") == address
        assert [each["body"] for each in github.pulls] == ["", "more text"]
        github.pulls[1]["state"] = "closed"
        assert await github_forge.request_merge("agent/task-7", "Title", "other text") == address
        assert len(github.pulls) == 2
        assert await github_forge.request_merge("agent/task-7", "Title", "other text", again=True) != address
        assert len(github.pulls) == 3

    async def test_one_that_was_opened_meanwhile_is_taken(
        self, github: GithubServer, github_forge: GithubForge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = github.open_pull("agent/task-7", "ada", "by hand", "")
        find, looks = github_forge._pull_of, iter([True])

        async def late(branch: str, *, again: bool) -> object:
            return None if next(looks, False) else await find(branch, again=again)

        monkeypatch.setattr(github_forge, "_pull_of", late)
        assert await github_forge.request_merge("agent/task-7", "Title", "text") == opened["html_url"]

    async def test_another_refusal_is_told(self, github: GithubServer, github_forge: GithubForge) -> None:
        github.fail[f"POST /api/v3/repos/{REPO}/pulls"] = 422
        with pytest.raises(ForgeError, match="422"):
            await github_forge.request_merge("agent/task-7", "Title", "text")


@pytest.mark.parametrize("status", [401, 403, 404, 422, 429, 500, -1, -2, -3])
@pytest.mark.parametrize("route", ["/api/v3", "/api/graphql"])
async def test_a_forge_that_refuses_trickles_or_redirects_does_not_get_its_token_told(
    github: GithubServer, status: int, route: str
) -> None:
    github.open_issue(7, "Title", "text")
    github.label(7, "ada")
    for method in ("GET", "POST"):
        github.fail[f"{method} {route}"] = status
    settings = ForgeSettings(url=github.url, repo=REPO, users=("ada",))
    forge = GithubForge(ForgeApi(api_address(github.url), TOKEN, DIALECT, seconds=0.3), settings)
    with pytest.raises(ForgeError) as refused:
        await forge.issues()
    await forge.close()
    assert TOKEN not in error_text(refused.value)
    assert "\x1b" not in error_text(refused.value)
    assert not any("elsewhere" in each for each in github.requests)


@pytest.mark.parametrize("field", ["createdAt", "lastEditedAt", "errors", "labellings", "body"])
async def test_an_answer_of_graphql_that_is_not_whole_is_an_error(
    github: GithubServer, github_forge: GithubForge, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    github.open_issue(7, "Title", "text")
    github.label(7, "ada")
    answer = github._graphql

    def broken(query: str, variables: dict[str, object]) -> dict[str, object]:
        whole = answer(query, variables)
        issue = whole["data"]["repository"]["issue"]
        match field:
            case "createdAt":  # without a zone
                issue["labellings"]["nodes"][0]["createdAt"] = "2026-11-23T01:00:02"
            case "lastEditedAt":
                issue["lastEditedAt"] = "2026-11-23T01:00:01"
            case "errors":
                whole["errors"] = [{"message": "some of it is missing"}]
            case _:
                issue[field] = None
        return dict(whole)

    monkeypatch.setattr(github, "_graphql", broken)
    with pytest.raises(ForgeError):
        await github_forge.issues()


async def test_what_graphql_says_of_an_error_is_one_inert_line(
    github: GithubServer, github_forge: GithubForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.open_issue(7, "Title", "text")
    github.label(7, "ada")
    said = {"data": None, "errors": [{"message": f"\x1b[31m{TOKEN}\n" + "x" * 9_000}]}
    monkeypatch.setattr(github, "_graphql", lambda *_: said)
    with pytest.raises(ForgeError) as refused:
        await github_forge.issues()
    text = error_text(refused.value)
    assert TOKEN not in text
    assert "\x1b" not in text
    assert len(text) < 500
