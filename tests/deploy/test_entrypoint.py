"""The entry point of the image, run with `sh`; `agent` is a stand-in."""

import subprocess
from pathlib import Path

import pytest

from agent_workbench.cli.main import parser
from tests.deploy.stubs import Stubs

SCRIPT = "deploy/entrypoint.sh"
WORKER = ["worker", "--project", "shop"]
MODES: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["--once"]),
    ({"EXECUTION_MODE": "adhoc"}, ["--once"]),
    ({"EXECUTION_MODE": "watch"}, ["--watch"]),
    ({"EXECUTION_MODE": "cron"}, ["--schedule", "*/30 * * * *"]),
    ({"EXECUTION_MODE": "cron", "CRON_SCHEDULE": "0 3 * * 1-5"}, ["--schedule", "0 3 * * 1-5"]),
    ({"QUEUE_PATH": "/queue of mine"}, ["--once", "--queue", "/queue of mine"]),
    ({"POLICY": "/night.yml", "UNCONFINED": "yes"}, ["--once", "--policy", "/night.yml", "--unconfined"]),
    ({"UNCONFINED": "no", "QUEUE_PATH": "", "POLICY": "", "TRUST_DIGEST": ""}, ["--once"]),
]


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    (tmp_path / "repo").mkdir()
    stubs = Stubs(tmp_path)
    stubs.add("agent", 'exit "${STUB_EXIT:-0}"')
    return stubs


def environ(stubs: Stubs, **more: str) -> dict[str, str]:
    return {"PROJECT": "shop", "REPO_PATH": str(stubs.folder / "repo"), **more}


@pytest.mark.parametrize(("given", "words"), MODES)
def test_the_variables_become_flags_that_the_worker_has(stubs: Stubs, given: dict[str, str], words: list[str]) -> None:
    done, _ = stubs.run(SCRIPT, environ=environ(stubs, **given))
    assert done.returncode == 0, done.stderr
    (call,) = stubs.calls("agent")
    assert call.words == [*WORKER, *words]
    assert call.environ["PWD"] == str(stubs.folder / "repo")
    parser(call.words).parse_args(call.words)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"PROJECT": ""}, 2, "ERROR: PROJECT not set"),
        ({"REPO_PATH": "/nowhere"}, 4, "ERROR: REPO_PATH is not a folder: /nowhere"),
        ({"EXECUTION_MODE": "loop"}, 2, "ERROR: EXECUTION_MODE is loop; expected adhoc, cron or watch"),
        ({"UNCONFINED": "maybe"}, 2, "ERROR: UNCONFINED is maybe; expected yes or no"),
        ({"HOME": "/dev/null/home"}, 4, "ERROR: HOME cannot be made: /dev/null/home"),
    ],
)
def test_what_is_missing_or_wrong_is_named(stubs: Stubs, given: dict[str, str], code: int, message: str) -> None:
    done, _ = stubs.run(SCRIPT, environ=environ(stubs, **given))
    assert done.returncode == code
    assert message in done.stderr
    assert stubs.calls("agent") == []


def test_a_missing_project_is_missing_also_if_it_is_not_there_at_all(stubs: Stubs) -> None:
    done, _ = stubs.run(SCRIPT, environ={"REPO_PATH": str(stubs.folder / "repo")})
    assert (done.returncode, done.stderr) == (2, "ERROR: PROJECT not set\n")


@pytest.mark.parametrize("words", [(), ("inbox", "list")])
def test_the_worker_takes_the_place_of_the_shell(stubs: Stubs, words: tuple[str, ...]) -> None:
    done, pid = stubs.run(SCRIPT, *words, environ=environ(stubs, STUB_EXIT="3"))
    (call,) = stubs.calls("agent")
    assert (done.returncode, call.pid) == (3, pid), "signals and exit codes are its own"


def test_words_are_a_verb_and_need_no_project(stubs: Stubs) -> None:
    stubs.run(SCRIPT, "mcp", "serve", "a b", environ={"REPO_PATH": str(stubs.folder / "repo")})
    (call,) = stubs.calls("agent")
    assert call.words == ["mcp", "serve", "a b"]


def test_the_health_check_needs_the_repository_alone(stubs: Stubs) -> None:
    done, _ = stubs.run(SCRIPT, "consult", "tier", environ={"REPO_PATH": str(stubs.folder / "repo"), "STUB_EXIT": "5"})
    assert done.returncode == 5


def test_git_accepts_the_mounted_repository_and_is_told_once(stubs: Stubs) -> None:
    for _ in range(2):
        stubs.run(SCRIPT, environ=environ(stubs))
    settings = ["git", "config", "--file", str(stubs.home / ".gitconfig"), "--get-all", "safe.directory"]
    said = subprocess.run(settings, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [str(stubs.folder / "repo")]


@pytest.mark.parametrize(
    ("given", "name"), [({}, "Agent Workbench"), ({"GIT_AUTHOR_NAME": "Bot", "GIT_AUTHOR_EMAIL": "b@c.de"}, "Bot")]
)
def test_commits_have_an_author(stubs: Stubs, given: dict[str, str], name: str) -> None:
    stubs.run(SCRIPT, environ=environ(stubs, **given))
    (call,) = stubs.calls("agent")
    assert call.environ["GIT_AUTHOR_NAME"] == name


def test_a_home_is_made_for_its_user_alone(stubs: Stubs) -> None:
    home = stubs.folder / "state" / "home"
    done, _ = stubs.run(SCRIPT, environ=environ(stubs, HOME=str(home)))
    assert done.returncode == 0, done.stderr
    assert home.stat().st_mode & 0o777 == 0o700


def test_trust_holds_for_the_digest_alone_and_comes_first(stubs: Stubs) -> None:
    stubs.add("agent", '[ "$1" != trust ] || exit "${STUB_TRUST:-0}"')
    given = environ(stubs, TRUST_DIGEST="abc")
    stubs.run(SCRIPT, environ=given)
    assert [call.words[:3] for call in stubs.calls("agent")] == [["trust", "--yes", "abc"], WORKER]
    done, _ = stubs.run(SCRIPT, environ={**given, "STUB_TRUST": "4"})
    assert done.returncode == 4
    assert [call.words[0] for call in stubs.calls("agent")] == ["trust", "worker", "trust"], "nothing is started"


def test_the_address_of_the_forge_is_a_setting_and_the_token_stays_where_it_is(stubs: Stubs) -> None:
    given = environ(stubs, GITEA_BASE_URL="https://git.example", GITEA_TOKEN="secret-of-the-forge")
    stubs.run(SCRIPT, environ=given)
    stubs.run(SCRIPT, environ={**given, "AGENT_FORGE__URL": "https://other.example"})
    first, second = stubs.calls("agent")
    assert first.environ["AGENT_FORGE__URL"] == "https://git.example"
    assert second.environ["AGENT_FORGE__URL"] == "https://other.example"
    assert "secret-of-the-forge" not in " ".join(first.words)
