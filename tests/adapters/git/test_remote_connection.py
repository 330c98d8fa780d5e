"""Settings of git for the shared remote, and its own repository on this machine."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_workbench.adapters.git.detached_git import DetachedGit
from agent_workbench.adapters.git.discovery import discover
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.remote_transport import (
    RemoteAddress,
    remote_address,
    remote_settings,
    remote_variables,
)
from tests.adapters.git.user import User


def test_credentials_come_from_the_users_own_settings_alone(user: User) -> None:
    user.git("config", "--global", "credential.helper", "store")
    user.git("config", "--global", "credential.https://git.example.helper", "!gh auth git-credential")
    user.git("config", "credential.helper", "!steal")
    program, paths = discover(str(user.root))
    plumbing = Plumbing(program, paths.git_dir)
    by_https = remote_settings(RemoteAddress("https://git.example/x.git", "https"), plumbing)
    helpers = [(name, value) for name, value in by_https if name.startswith("credential")]
    assert helpers == [
        ("credential.helper", "store"),
        ("credential.https://git.example.helper", "!gh auth git-credential"),
    ]
    for protocol in ("ssh", "file", "http"):
        other = remote_settings(RemoteAddress("x", protocol), plumbing)
        assert not [name for name, _ in other if name.startswith("credential")]


def test_ssh_asks_nobody_and_forwards_nothing(user: User) -> None:
    _, paths = discover(str(user.root))
    command = remote_variables(RemoteAddress("git@git.example:x.git", "ssh"), paths)["GIT_SSH_COMMAND"]
    for option in ("BatchMode=yes", "ForwardAgent=no", "ClearAllForwardings=yes"):
        assert f"-o{option}" in command


def test_its_repository_is_made_by_many_at_once(user: User, tmp_path: Path) -> None:
    program, paths = discover(str(user.root))
    folder = tmp_path / "remote"
    folder.mkdir()

    def head(_: int) -> str:
        git = DetachedGit(program, paths, folder, "file")
        git.prepare()
        return git.run("cat-file", "-t", user.head(), seconds=30).out.decode().strip()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(head, range(16))) == {"commit"}
    assert [each.name for each in folder.iterdir()] == ["repo.git"]


def test_a_folder_of_another_user_is_served_if_the_users_own_settings_trust_it(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.git("config", "--global", "safe.directory", "/srv/it's ours.git")
    user.git("config", "safe.directory", "*")
    program, paths = discover(str(user.root))
    address = remote_address(str(tmp_path), Plumbing(program, paths.git_dir), paths)
    assert address.safe == ("/srv/it's ours.git",)
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'safe.directory'='/srv/other'")
    assert remote_address(str(tmp_path), Plumbing(program, paths.git_dir), paths).safe[-1] == "/srv/other"
    for words in (address.push_words, address.fetch_words):
        assert shlex.split(words[0])[-2] == "safe.directory=/srv/it's ours.git"
    assert RemoteAddress("git@git.example:x.git", "ssh").push_words == ()
