"""Proxy variables in every spelling: what is used, what is exempt, and what is refused with the variable's name."""

import os

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_workbench.core.errors import ConfigError
from agent_workbench.system.proxies import check_proxies, proxy_for

FAR = "https://models.example:8443/v1"


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no"):
        for spelled in (f"{name}_proxy", f"{name.upper()}_PROXY"):
            monkeypatch.delenv(spelled, raising=False)


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ({"https_proxy": "p:3128"}, "http://p:3128"),
        ({"https_proxy": "http://3proxy.example:3128"}, "http://3proxy.example:3128"),
        ({"ALL_PROXY": "socks5h://u:secret@[::1]:1080"}, "socks5h://u:secret@[::1]:1080"),
        ({"ALL_PROXY": "socks5://127.0.0.1", "HTTPS_PROXY": "http://p"}, "http://p"),
        ({"HTTP_PROXY": "http://p:3128", "HTTPS_PROXY": ""}, None),
        ({"ALL_PROXY": "socks://bad", "HTTPS_PROXY": "http://p"}, "http://p"),
    ],
)
def test_the_proxy_of_an_address(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], proxy: str | None) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(FAR) == proxy


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    "value",
    [
        "socks://127.0.0.1:1080",
        "socks4://p",
        "ftp://p",
        "http://",
        "http://p:port",
        "http://u:secret@p:99999",
        "1.2.3.456",
        "1-2-3-4",
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        proxy_for(FAR)
    assert name in str(caught.value)
    assert "socks5" in caught.value.advice
    assert "secret" not in f"{caught.value} {caught.value.advice}"
    assert proxy_for("http://127.0.0.1:8080") is None
    with pytest.raises(ConfigError, match=name):
        check_proxies()


@pytest.mark.parametrize(
    ("no_proxy", "url", "exempt"),
    [
        ("*", FAR, True),
        ("a.b, models.example", FAR, True),
        ("a.b models.example", FAR, True),
        (".example", FAR, True),
        ("*.example", FAR, True),
        ("MODELS.example.", FAR, True),
        ("models.example:8443", FAR, True),
        ("https://models.example", FAR, True),
        ("models.example:80", FAR, False),
        ("dels.example", FAR, False),
        ("10.0.0.0/8", "http://10.1.2.3", True),
        ("10.0.0.0/8", "http://11.1.2.3", False),
        ("10.1.2.3:80", "http://10.1.2.3", True),
        ("[fd00::1]", "http://[fd00::1]:80", True),
        ("fd00::/8", "http://[fd00::1]", True),
        (",, .,*.,[,]://:,http://[", FAR, False),
    ],
)
def test_what_no_proxy_names_is_asked_directly(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, url: str, exempt: bool
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (proxy_for(url) is None) is exempt


WORDS = st.lists(
    st.sampled_from(
        ["http", "socks5", "://", ":", "@", "/", "[", "]", "::1", "%", "9", "256.1", ".", "-", "p", "é", "*"]
    )
    | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    max_size=8,
).map("".join)


@given(proxy=WORDS, no_proxy=WORDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_refused_or_can_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str, no_proxy: str) -> None:
    monkeypatch.setitem(os.environ, "ALL_PROXY", proxy)
    monkeypatch.setitem(os.environ, "NO_PROXY", no_proxy)
    try:
        chosen = proxy_for(FAR)
    except ConfigError:
        return
    if chosen is not None:
        httpx.AsyncClient(proxy=chosen, trust_env=False, verify=False)
