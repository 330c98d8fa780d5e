"""The installer, run with `sh`; `docker` is a stand-in."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.deploy.stubs import Stubs, owned_by_a_user

SCRIPT = "scripts/install-worker.sh"
TOKEN = "0a1b2c3d4e5f-token"
URL = "http://llama.example:8080"
NAMES = ("one", "two", "three")


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    stubs = Stubs(tmp_path)
    stubs.add("docker")
    (owned_by_a_user(make_folder(tmp_path / "my repo")) / ".git").mkdir()
    return stubs


def make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def words(stubs: Stubs, **other: str) -> list[str]:
    given = {"n": "night", "p": "shop", "r": str(stubs.folder / "my repo"), "l": URL, **other}
    return [word for flag, value in given.items() if value for word in (f"-{flag}", value)]


def workers(stubs: Stubs) -> Path:
    return stubs.home / ".config/agent-workbench/workers"


def secret_file(stubs: Stubs) -> Path:
    return stubs.home / ".config/agent-workbench/secrets/worker-night.env"


def settings(stubs: Stubs, name: str = "night") -> Mapping[str, str]:
    lines = (workers(stubs) / name / "settings.env").read_text().splitlines()
    return {key: value.strip("'") for key, value in (line.split("=", 1) for line in lines)}


def test_two_names_are_two_projects(stubs: Stubs) -> None:
    for name in ("one", "two"):
        done, _ = stubs.run(SCRIPT, *words(stubs, n=name, t="-"), stdin=f"{TOKEN}\n")
        assert done.returncode == 0, done.stderr
        assert f"{workers(stubs) / name / 'compose'} logs --follow worker" in done.stdout
    calls = [call.words for call in stubs.calls("docker") if "--project-name" in call.words]
    assert [(call[2], call[-1]) for call in calls] == [
        ("agent-worker-one", "build"),
        ("agent-worker-one", "worker"),
        ("agent-worker-two", "build"),
        ("agent-worker-two", "worker"),
    ]
    assert [call[-3:-1] for call in calls[1::2]] == [["up", "--detach"]] * 2
    files = [[call[index + 1] for index, word in enumerate(call) if word == "--file"] for call in calls]
    assert [Path(name).name for name in files[0]] == ["compose.yaml", "compose.sandbox.yaml", "compose.override.yaml"]
    assert all(Path(name).is_file() for each in files for name in each)
    assert files[0][:2] == files[2][:2]
    assert files[0][2] != files[2][2]


@pytest.mark.parametrize("way", ["stdin", "environment", "argument"])
def test_the_token_is_in_one_private_file(stubs: Stubs, way: str) -> None:
    given = {"environment": words(stubs), "stdin": words(stubs, t="-"), "argument": words(stubs, t=TOKEN)}[way]
    environ = {"GITEA_TOKEN": TOKEN} if way == "environment" else {}
    done, _ = stubs.run(SCRIPT, *given, environ=environ, stdin=TOKEN if way == "stdin" else "")
    assert done.returncode == 0, done.stderr
    assert ("WARNING: the token was on the command line" in done.stderr) is (way == "argument")
    holding = [path for path in stubs.folder.rglob("*") if path.is_file() and TOKEN in path.read_text()]
    assert holding == [secret_file(stubs)], "no other file, and no word or variable of a child"
    assert holding[0].stat().st_mode & 0o777 == 0o600
    assert holding[0].parent.stat().st_mode & 0o777 == 0o700
    assert TOKEN not in done.stdout + done.stderr


def test_the_settings_are_what_was_said(stubs: Stubs) -> None:
    environ = {"GITEA_TOKEN": TOKEN, "GITEA_BASE_URL": "https://git.example"}
    done, _ = stubs.run(SCRIPT, *words(stubs, s="0 3 * * 1-5"), environ=environ)
    assert done.returncode == 0, done.stderr
    repo = stubs.folder / "my repo"
    assert settings(stubs) == {
        "PROJECT": "shop",
        "REPO_PATH": str(repo),
        "WORKER_UID": str(repo.stat().st_uid),
        "WORKER_GID": str(repo.stat().st_gid),
        "EXECUTION_MODE": "cron",
        "CRON_SCHEDULE": "0 3 * * 1-5",
        "LLAMA_SERVER_URL": URL,
        "GITEA_BASE_URL": "https://git.example",
        "UNCONFINED": "no",
    }
    override = yaml.safe_load((workers(stubs) / "night/compose.override.yaml").read_text())
    assert override["services"] == {"worker": {"env_file": [str(secret_file(stubs))]}}


def test_all_workers_of_a_repository_share_one_volume_of_state(stubs: Stubs) -> None:
    (owned_by_a_user(make_folder(stubs.folder / "other")) / ".git").mkdir()
    given = [words(stubs, n="one", t="none"), words(stubs, n="two", p="tools", t="none")]
    for each in (*given, words(stubs, n="three", r=str(stubs.folder / "other"), t="none")):
        done, _ = stubs.run(SCRIPT, *each)
        assert done.returncode == 0, done.stderr
    overrides = [yaml.safe_load((workers(stubs) / name / "compose.override.yaml").read_text()) for name in NAMES]
    assert all(each["volumes"]["state"]["external"] for each in overrides)
    one, two, three = [each["volumes"]["state"]["name"] for each in overrides]
    assert one == two != three
    made = [call.words[2] for call in stubs.calls("docker") if call.words[:2] == ["volume", "create"]]
    assert made == [one, two, three], "before the worker starts: compose makes no external volume"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_this_machine_has_another_name_in_the_container(stubs: Stubs, host: str) -> None:
    done, _ = stubs.run(SCRIPT, *words(stubs, l=f"http://{host}:8080/v1", t="none"))
    assert done.returncode == 0, done.stderr
    assert settings(stubs)["LLAMA_SERVER_URL"] == "http://host.docker.internal:8080/v1"
    assert "host.docker.internal" in done.stdout
    assert secret_file(stubs).read_text() == ""


def test_without_a_sandbox_it_holds_no_token(stubs: Stubs) -> None:
    unconfined = {"UNCONFINED": "yes"}
    done, _ = stubs.run(SCRIPT, *words(stubs, t="-"), environ=unconfined, stdin=TOKEN)
    assert done.returncode == 2
    assert "can read it" in done.stderr
    done, _ = stubs.run(SCRIPT, *words(stubs, t="none"), environ=unconfined)
    assert done.returncode == 0, done.stderr
    assert settings(stubs)["UNCONFINED"] == "yes"
    assert not any("compose.sandbox" in " ".join(call.words) for call in stubs.calls("docker"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"n": ""}, "-n NAME is missing"),
        ({"p": ""}, "-p PROJECT is missing"),
        ({"r": ""}, "-r REPO_PATH is missing"),
        ({"l": ""}, "-l LLM_URL is missing"),
        ({"t": ""}, "no token"),
        ({"n": "../night"}, "NAME is ../night"),
        ({"n": "Night"}, "NAME is Night"),
        ({"p": "a b"}, "PROJECT is a b"),
        ({"p": "$(touch canary)"}, "PROJECT is"),
        ({"l": "ftp://x"}, "LLM_URL is ftp://x"),
        ({"l": "http://x'\nA='b"}, "LLM_URL is"),
        ({"s": "*/30 * * *"}, "SCHEDULE is"),
        ({"s": "* * * * *'; x"}, "SCHEDULE is"),
        ({"t": "a'b"}, "the token has characters that no token has"),
        ({"t": "a\nPROJECT=x"}, "the token has characters that no token has"),
    ],
)
def test_what_is_missing_or_wrong_is_named(stubs: Stubs, other: dict[str, str], message: str) -> None:
    done, _ = stubs.run(SCRIPT, *words(stubs, **{"t": TOKEN, **other}))
    assert done.returncode == 2, done.stderr
    assert f"ERROR: {message}" in done.stderr
    assert not workers(stubs).exists()
    assert stubs.calls("docker") == []


def test_the_repository_and_docker_are_checked(stubs: Stubs, tmp_path: Path) -> None:
    absent, _ = stubs.run(SCRIPT, *words(stubs, r=str(tmp_path / "absent"), t="none"))
    assert (absent.returncode, "no folder that can be opened" in absent.stderr) == (4, True)
    plain, _ = stubs.run(SCRIPT, *words(stubs, r=str(make_folder(tmp_path / "plain")), t="none"))
    assert (plain.returncode, "not a git repository" in plain.stderr) == (4, True)
    odd = owned_by_a_user(make_folder(tmp_path / "it's"))
    make_folder(odd / ".git")
    quoted, _ = stubs.run(SCRIPT, *words(stubs, r=str(odd), t="none"))
    assert (quoted.returncode, "REPO_PATH has a quote" in quoted.stderr) == (2, True)
    stubs.add("docker", '[ "$1" != compose ]')
    old, _ = stubs.run(SCRIPT, *words(stubs, t="none"))
    assert (old.returncode, "no compose plugin" in old.stderr) == (4, True)
    assert not workers(stubs).exists()


def test_nothing_is_started_if_the_image_cannot_be_built(stubs: Stubs) -> None:
    stubs.add("docker", 'for word in "$@"; do [ "$word" != build ] || exit 17; done')
    done, _ = stubs.run(SCRIPT, *words(stubs, t="none"))
    assert done.returncode == 17
    assert "up" not in json.dumps([call.words for call in stubs.calls("docker")])
    assert "Next steps" not in done.stdout


def test_the_next_steps_need_no_worker_that_runs(stubs: Stubs) -> None:
    done, _ = stubs.run(SCRIPT, *words(stubs, t="none"))
    assert f"{workers(stubs) / 'night/compose'} run --rm worker worker add --project shop " in done.stdout
    assert "compose exec" not in done.stdout, "without trust or a queue the container only restarts"


def test_help_names_every_flag(stubs: Stubs) -> None:
    done, _ = stubs.run(SCRIPT, "-h")
    assert done.returncode == 0
    assert all(f"  -{flag}" in done.stdout for flag in "nprlsth")
    assert stubs.run(SCRIPT, "-x")[0].returncode == 2
