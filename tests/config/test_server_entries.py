"""A server that is added to a settings file: nothing else in the file changes, and what is written reads back."""

from pathlib import Path

import pytest

from agent_workbench.config.server_entries import add_server, with_server
from agent_workbench.config.settings_loader import load_settings
from agent_workbench.core.errors import ConfigError, UsageError
from agent_workbench.core.settings.extensions import ToolServerSettings

FILE = "settings.yml"
TIME = ToolServerSettings("uvx", ("mcp-server-time", "--x: #y", 'é"\\'), (("TZ", "${TZ:-UTC}"),), network=True)
DOCS = ToolServerSettings(url="https://docs.example/mcp", headers=(("Authorization", "Bearer ${DOCS}"),))
PATHS = ToolServerSettings("yes", read=(".", "~/notes"), write=("~/out",), unconfined=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n",
        "ui: {theme: nord}  # dark\n",
        "ui:\n  theme: nord\nmcp_servers:\n    first:\n        command: a   # kept\n\n# the end\ncost_cap_daily: 1\n",
        "ui: {theme: nord}\r\nmcp_servers:\r\n  first: {command: a}\r\n",
        "mcp_servers:\n  first:\n    command: a",
        "mcp_servers:  # none yet\nui: {theme: nord}\n",
        "mcp_servers:",
    ],
)
def test_added_servers_read_back_and_every_old_line_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_bytes(text.encode())
    wanted = {"time": TIME, "docs": DOCS, "paths": PATHS}
    for name, entry in wanted.items():
        add_server(tmp_path, FILE, name, entry)
    written = (tmp_path / FILE).read_bytes().decode()
    lines = written.splitlines()
    assert [line for line in text.splitlines() if line not in lines] == []
    assert ("\r\n" in text) == ("\r\n" in written)
    read = dict(load_settings(tmp_path / "none", {}, {}, tmp_path).settings.mcp_servers)
    assert {name: read[name] for name in wanted} == wanted
    assert ("first" in read) == ("first" in text)


def test_a_new_file_is_the_users_alone(tmp_path: Path) -> None:
    add_server(tmp_path / "new", FILE, "time", TIME)
    assert (tmp_path / "new" / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "name", "entry", "error", "reason"),
    [
        ("", "My Server", TIME, UsageError, "is no name of a server"),
        ("mcp_servers:\n  time: {command: a}\n", "time", TIME, UsageError, "has a server 'time' already"),
        ("mcp_servers: {first: {command: a}}\n", "time", TIME, ConfigError, "could not be written"),
        ("{ui: {theme: nord}}", "time", TIME, ConfigError, "could not be written"),
        ("", "docs", ToolServerSettings(url="ftp://x"), UsageError, "docs was not added: mcp_servers.docs.url"),
        ("", "docs", ToolServerSettings("a", env=(("TOKEN", "abc-def-1"),)), UsageError, "expected ${NAME}"),
        ("", "docs", ToolServerSettings("a\x1b"), UsageError, "docs was not added"),
        ("model: [", "time", TIME, ConfigError, "settings.yml"),
    ],
)
def test_what_cannot_be_added_changes_nothing(
    tmp_path: Path, text: str, name: str, entry: ToolServerSettings, error: type[Exception], reason: str
) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(error) as raised:
        add_server(tmp_path, FILE, name, entry)
    assert reason in str(raised.value)
    assert "abc-def-1" not in str(raised.value)
    assert (tmp_path / FILE).read_text() == text


def test_a_file_with_nothing_but_the_key_gets_its_first_server() -> None:
    added = with_server("mcp_servers:\n", "docs", ToolServerSettings(url="http://x"), FILE)
    assert added == 'mcp_servers:\n  docs:\n    url: "http://x"\n'


def test_a_server_that_cannot_be_added_is_told_with_its_place() -> None:
    with pytest.raises(ConfigError, match="could not be written") as raised:
        with_server("mcp_servers: {}\n", "docs", ToolServerSettings(url="http://x"), FILE)
    assert raised.value.advice == 'add it under mcp_servers by hand: docs:; url: "http://x"'
