"""MCP servers in the settings: which layers count, what is left out of `.mcp.json`, and what is asked for trust."""

import json
from pathlib import Path

import pytest

from agent_workbench.config.settings_loader import LoadedSettings, load_settings
from agent_workbench.config.tool_servers import add_server, with_server
from agent_workbench.config.trust_question import trust_question, without_untrusted
from agent_workbench.core.errors import ConfigError, UsageError
from agent_workbench.core.settings.extensions import ToolServerSettings, resolved


def load(root: Path, file: str = "", shared: object = None, own: str = "") -> LoadedSettings:
    (root / "repo").mkdir(exist_ok=True)
    (root / "own").mkdir(exist_ok=True)
    (root / "repo" / ".agent.yml").write_text(file)
    if shared is not None:
        (root / "repo" / ".mcp.json").write_text(shared if isinstance(shared, str) else json.dumps(shared))
    if own:
        (root / "own" / "settings.yml").write_text(own)
    return load_settings(root / "repo", {}, {}, root / "own")


def servers(loaded: LoadedSettings) -> dict[str, ToolServerSettings]:
    return dict(loaded.settings.mcp_servers)


def listed(**entries: object) -> dict[str, object]:
    return {"mcpServers": entries}


def test_all_three_files_bring_servers(tmp_path: Path) -> None:
    shared = listed(Time={"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "${TZ:-UTC}"}})
    loaded = load(
        tmp_path,
        "mcp_servers: {git: {command: git-server, read: [.]}}",
        shared,
        "mcp_servers: {docs: {url: 'https://docs.example/mcp', headers: {Authorization: 'Bearer ${DOCS}'}}}",
    )
    assert servers(loaded) == {
        "docs": ToolServerSettings(url="https://docs.example/mcp", headers=(("Authorization", "Bearer ${DOCS}"),)),
        "time": ToolServerSettings("uvx", ("mcp-server-time",), (("TZ", "${TZ:-UTC}"),)),
        "git": ToolServerSettings("git-server", read=(".",)),
    }
    assert loaded.left_out == ()
    assert loaded.settings.key_variables == ("DOCS", "TZ")
    # Only the user's own count without trust.
    assert set(servers(without_untrusted(loaded))) == {"docs"}


def test_the_repos_settings_complete_its_shared_file(tmp_path: Path) -> None:
    loaded = load(tmp_path, "mcp_servers: {time: {network: true}}", listed(time={"command": "uvx"}))
    assert servers(loaded) == {"time": ToolServerSettings("uvx", network=True)}


def test_an_entry_of_the_repo_replaces_the_users_as_a_whole(tmp_path: Path) -> None:
    own = "mcp_servers: {docs: {url: 'https://mine', headers: {Authorization: '${TOKEN}'}}}"
    loaded = load(tmp_path, "mcp_servers: {docs: {url: 'https://theirs'}}", own=own)
    assert servers(loaded) == {"docs": ToolServerSettings(url="https://theirs")}
    assert servers(without_untrusted(loaded))["docs"].url == "https://mine"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("text", "expected an object"),
        ({}, "expected its command or its url, and not both"),
        ({"command": "a", "url": "http://b"}, "expected its command or its url, and not both"),
        ({"command": ["a"]}, "command: expected text"),
        ({"command": "a", "args": [1]}, "args: expected a list of text"),
        ({"command": "a", "args": "b"}, "args: expected a list of text"),
        ({"command": "a\x1b[2J"}, "command: expected text"),
        ({"command": "a", "env": {"A B": "x"}}, "expected the name of an environment variable"),
        ({"command": "a", "env": {"API_KEY": "abc-123"}}, "has its value in the file: expected ${NAME}"),
        ({"url": "http://a", "headers": {"Authorization": "Bearer abc"}}, "has its value in the file"),
        ({"url": "http://a", "headers": {"X": "a\r\nY: b"}}, "headers: expected a list of text"),
        ({"url": "http://a", "headers": {"Host": "b"}}, "expected the name of a header"),
        ({"url": "http://u:p@a"}, "without user and password"),
        ({"url": "ftp://a"}, "expected an address"),
        ({"url": "http://a", "type": "sse"}, "its transport 'sse' is not supported"),
        ({"command": "a", "disabled": True}, "it is disabled"),
        ({"command": "/bin/agent", "args": ["mcp"]}, "it is the workbench itself"),
        ({"command": "python3", "args": ["-P", "-m", "agent_workbench", "mcp"]}, "it is the workbench itself"),
    ],
)
def test_a_shared_server_that_cannot_be_used_is_left_out_alone(tmp_path: Path, entry: object, reason: str) -> None:
    loaded = load(tmp_path, shared=listed(bad=entry, good={"command": "x"}))
    assert set(servers(loaded)) == {"good"}
    (told,) = loaded.left_out
    assert told.startswith(".mcp.json: the server 'bad' is left out: ")
    assert reason in told
    assert "abc" not in told


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[" * 100_000, '{"mcpServers": []}', "[]", '{"mcpServers": NaN}', '{"a": 1, "a": 2}']
)
def test_a_broken_shared_file_stops_nothing(tmp_path: Path, text: str) -> None:
    loaded = load(tmp_path, shared=text)
    assert servers(loaded) == {}
    assert len(loaded.left_out) == 1


def test_names_of_a_shared_file_become_names_of_settings(tmp_path: Path) -> None:
    entry = {"command": "a"}
    loaded = load(tmp_path, shared=listed(**{"My Server__2": entry, "my-server-2": entry, "9": entry, "é": entry}))
    assert set(servers(loaded)) == {"my-server-2"}
    assert [told.partition(" is left out: ")[0].rpartition(" ")[2] for told in loaded.left_out] == [
        "'my-server-2'",
        "'9'",
        "'é'",
    ]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("mcp_servers: {a: {args: [b]}}", "expected its command or its url, found neither"),
        ("mcp_servers: {a: {command: b, url: 'http://c'}}", "found both"),
        ("mcp_servers: {a: {url: 'http://c', read: [.]}}", "mcp_servers.a.read has no meaning for a server at a url"),
        ("mcp_servers: {a: {command: b, headers: {A: b}}}", "mcp_servers.a.headers has no meaning for a command"),
        ("mcp_servers: {a__b: {command: b}}", "expected a name of small letters and digits"),
        ("mcp_servers: {a: {command: b, token: c}}", "does not belong in a file"),
        ("mcp_servers: {a: {command: b, env: {TOKEN: abc123}}}", "expected ${NAME}"),
        ("mcp_servers: {" + ", ".join(f"a{n}: {{command: b}}" for n in range(21)) + "}", "the limit is 20"),
    ],
)
def test_settings_that_mean_nothing_are_refused_with_their_place(tmp_path: Path, file: str, reason: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, file)
    assert reason in str(raised.value)
    assert "abc123" not in str(raised.value)


def test_no_file_of_a_repo_is_a_server_of_the_users_own(tmp_path: Path) -> None:
    for command in ("name", "/abs/name", "~/bin/name"):
        load(tmp_path, own=f"mcp_servers: {{a: {{command: {command}}}}}")
    with pytest.raises(ConfigError, match="found 'tools/server', which is another file in each repository"):
        load(tmp_path, own="mcp_servers: {a: {command: tools/server}}")


def test_shared_servers_and_the_files_they_name_are_part_of_the_question(tmp_path: Path) -> None:
    shared = listed(own={"command": "python3", "args": ["-I", "tools/server.py"]})
    (tmp_path / "repo" / "tools").mkdir(parents=True)
    program = tmp_path / "repo" / "tools" / "server.py"
    digests = set()
    for content in ("one", "two"):
        program.write_text(content)
        question = trust_question(tmp_path / "repo", load(tmp_path, shared=shared))
        digests.add(question.digest)
        assert "mcp_servers.own.command: python3 (is started as an MCP server)" in question.lines
        assert "mcp_servers.own.args: [-I, tools/server.py] (are its arguments)" in question.lines
        assert any(line.startswith("mcp_servers.own file tools/server.py: ") for line in question.lines)
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("args", "place"),
    [
        (["run"], "run"),
        (["tools"], "tools/__main__.py"),
        (["."], "package.json"),
        (["-m", "tools.server"], "tools/server.py"),
        (["-mtools.server"], "tools/server.py"),
        (["-m", "tools.server"], "tools/__init__.py"),
        (["-m", "tools"], "tools/__main__.py"),
        (["--config=tools/server.json"], "tools/server.json"),
    ],
)
def test_a_file_that_a_command_line_names_in_another_way_is_part_of_the_question_too(
    tmp_path: Path, args: list[str], place: str
) -> None:
    shared = listed(own={"command": "python3", "args": args, "unconfined": True})
    program = tmp_path / "repo" / place
    program.parent.mkdir(parents=True, exist_ok=True)
    digests = set()
    for content in ("one", "two"):
        program.write_text(content)
        digests.add(trust_question(tmp_path / "repo", load(tmp_path, shared=shared)).digest)
    assert len(digests) == 2


def test_variables_are_put_in_and_missing_ones_are_named() -> None:
    pairs = (("A", "x ${B} ${C:-d}"), ("E", "$B {B}"))
    assert resolved(pairs, {"B": "${C}"}, "s") == {"A": "x ${C} d", "E": "$B {B}"}
    with pytest.raises(ConfigError, match="the MCP server s needs the environment variable B, which is not set"):
        resolved(pairs, {}, "s")


def test_the_identity_of_a_server_changes_with_its_entry_and_shows_no_argument() -> None:
    first, second = (ToolServerSettings("uvx", ("x", f"--token={secret}")) for secret in ("one", "two"))
    assert first.identity != second.identity
    assert first.identity.startswith("uvx (entry ")
    assert "one" not in first.identity
    assert ToolServerSettings(url="https://h:1/mcp").identity.startswith("https://h:1/mcp (entry ")


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
