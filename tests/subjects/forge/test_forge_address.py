import pytest

from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.worker import ForgeKind, ForgeSettings


@pytest.mark.parametrize(
    ("address", "url", "repo"),
    [
        ("https://github.com/acme/shop.git", "https://github.com", "acme/shop"),
        ("https://github.com/acme/shop", "https://github.com", "acme/shop"),
        ("https://GitHub.com/acme/shop/", "https://github.com", "acme/shop"),
        ("https://ada@github.com/acme/shop.git", "https://github.com", "acme/shop"),
        ("git@github.com:acme/shop.git", "https://github.com", "acme/shop"),
        ("github.com:acme/shop", "https://github.com", "acme/shop"),
        ("ssh://git@github.com:22/acme/shop.git", "https://github.com", "acme/shop"),
        ("git@octo.ghe.com:acme/my.shop.git", "https://octo.ghe.com", "acme/my.shop"),
        ("https://git.example.org/acme/shop.git", "", ""),
        ("https://github.com.example.org/acme/shop.git", "", ""),
        ("https://github.com@example.org/acme/shop.git", "", ""),
        ("https://example.org/github.com/acme/shop.git", "", ""),
        ("https://example.org\\@github.com/acme/shop.git", "", ""),
        ("https://github.com/acme/../shop.git", "", ""),
        ("https://github.com/acme/..", "", ""),
        ("https://github.com/acme", "", ""),
        ("https://github.com/acme/shop?x=y", "", ""),
        ("ext::sh -c 'touch /tmp/x' github.com/acme/shop", "", ""),
        ("file://host/acme/shop", "", ""),
        ("github.com/acme/shop", "", ""),
        ("git@github.com:22/acme/shop.git", "", ""),
        ("https://github.com:acme/shop.git", "", ""),
        ("/srv/git/acme/shop.git", "", ""),
        ("", "", ""),
    ],
)
def test_github_is_known_by_the_address_of_a_remote(address: str, url: str, repo: str) -> None:
    found = ForgeSettings().at_remote(address)
    assert (found.url, found.repo, found.active) == (url, repo, bool(url))
    assert not url or found.software is ForgeKind.GITHUB


@pytest.mark.parametrize("kind", [ForgeKind.GITEA, ForgeKind.FORGEJO, ForgeKind.GITHUB])
def test_a_kind_makes_any_remote_a_forge(kind: ForgeKind) -> None:
    found = ForgeSettings(kind=kind).at_remote("http://git.example.org:3000/acme/shop.git")
    assert (found.url, found.repo, found.software) == ("http://git.example.org:3000", "acme/shop", kind)
    assert ForgeSettings(kind=kind).at_remote("git@git.example.org:acme/shop").url == "https://git.example.org"


@pytest.mark.parametrize(
    ("settings", "software", "variable"),
    [
        (ForgeSettings(url="https://github.com"), ForgeKind.GITHUB, "GITHUB_TOKEN"),
        (ForgeSettings(url="https://git.example.org"), ForgeKind.GITEA, "GITEA_TOKEN"),
        (ForgeSettings(ForgeKind.GITHUB, "https://git.example.org"), ForgeKind.GITHUB, "GITHUB_TOKEN"),
        (ForgeSettings(ForgeKind.FORGEJO, "https://github.com"), ForgeKind.FORGEJO, "GITEA_TOKEN"),
        (ForgeSettings(url="https://github.com", token_env="SHOP"), ForgeKind.GITHUB, "SHOP"),
    ],
)
def test_the_kind_follows_the_address_and_the_variable_the_kind(
    settings: ForgeSettings, software: ForgeKind, variable: str
) -> None:
    assert (settings.software, settings.token_variable) == (software, variable)


def test_the_variable_of_a_forge_that_only_the_git_remote_names_holds_a_secret_too() -> None:
    assert Settings(forge=ForgeSettings(token_env="SHOP")).key_variables == ("SHOP",)
    assert Settings().key_variables == ()
