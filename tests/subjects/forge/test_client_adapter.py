import base64

import pytest

from agent_workbench.core.errors import ConfigError, ForgeError, error_text
from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.client_adapter import ForgeApi
from agent_workbench.subjects.forge.gitea_adapter import GiteaForge
from agent_workbench.subjects.forge.http_adapter import AccountAnswer
from tests.fakes.forge_server import REPO, TOKEN
from tests.fakes.gitea_server import GiteaServer


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 429, 500, 503, -1, -2, -3])
async def test_a_forge_that_refuses_trickles_or_redirects_is_an_error_without_the_token(
    gitea: GiteaServer, status: int
) -> None:
    gitea.open_issue(7, "Title", "text")
    gitea.fail["GET /api/v1/repos"] = status
    settings = ForgeSettings(url=gitea.url, repo=REPO, users=("ada",))
    forge = GiteaForge(ForgeApi(gitea.url, TOKEN, seconds=0.3), settings)
    with pytest.raises(ForgeError) as refused:
        await forge.comments(7)
    await forge.close()
    said = error_text(refused.value)
    assert TOKEN not in said
    assert base64.b64encode(TOKEN.encode()).decode() not in said
    assert "\x1b" not in said
    assert not any("elsewhere" in each for each in gitea.requests), "the token went to another address"


async def test_a_wrong_token_says_which_setting_names_it(gitea: GiteaServer) -> None:
    api = ForgeApi(gitea.url, "not-" + TOKEN)
    with pytest.raises(ForgeError) as refused:
        await api.get("/api/v1/user", AccountAnswer)
    await api.close()
    assert "401" in str(refused.value)
    assert "forge.token_env" in refused.value.advice


async def test_nobody_there_is_an_error() -> None:
    api = ForgeApi("http://127.0.0.1:9", TOKEN)
    with pytest.raises(ForgeError, match="cannot be reached"):
        await api.get("/api/v1/user", AccountAnswer)
    await api.close()


@pytest.mark.parametrize("url", ["https://github.com:99999", "https://999.1.1.1", "https://xn--a"])
def test_an_address_that_none_can_have_is_refused(url: str) -> None:
    """The address of a git remote comes here as it is."""
    with pytest.raises(ConfigError, match="is no address of a forge"):
        ForgeApi(url, TOKEN)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ünicode", "tab\there"])
def test_a_token_that_is_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ForgeApi("https://git.example.org", token)
    assert not token or token not in error_text(refused.value)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://git.example.org", True),
        ("http://127.0.0.1:3000", True),
        ("http://localhost:3000", True),
        ("http://git.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://10.0.0.1:3000", False),
    ],
)
def test_a_token_goes_over_tls_or_stays_on_this_machine(url: str, *, allowed: bool) -> None:
    if allowed:
        ForgeApi(url, TOKEN)
        return
    with pytest.raises(ConfigError, match="no TLS"):
        ForgeApi(url, TOKEN)
    ForgeApi(url, TOKEN, plain_http=True)
