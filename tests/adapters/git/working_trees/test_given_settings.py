"""Settings that the user's environment gives git count as git's own, and never against ours."""

import os
import shutil
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import RepoError
from tests.adapters.git.user import User, commit_task

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="machine lacks: root, to give files to another user")


def numbered(**settings: str) -> dict[str, str]:
    pairs = [(name.replace("__", "."), value) for name, value in settings.items()]
    names = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(pairs)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(pairs)}
    return {"GIT_CONFIG_COUNT": str(len(pairs)), **names, **values}


def give(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@needs_root
@pytest.mark.parametrize(
    "variables", [numbered(safe__directory="*"), {"GIT_CONFIG_PARAMETERS": "'safe.directory'='*'"}]
)
async def test_a_repository_of_another_user_that_the_environment_trusts(
    user: User, repository: Repository, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (user.root, *user.root.rglob("*")):
        shutil.chown(path, 12345)
    with pytest.raises(RepoError) as refused:
        await repository.inspect()
    assert "safe.directory" in refused.value.advice
    give(monkeypatch, variables)
    assert (await repository.inspect()).root == str(user.root)


async def test_an_author_of_the_environment(
    user: User, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, numbered(user__name="Mia", user__email="mia@example.org"))
    commit = await commit_task(repository, user.request(), {"new": "x"})
    assert user.git("show", "-s", "--format=%an <%ae>", commit) == "Mia <mia@example.org>"


async def test_nothing_of_ours_is_replaced(
    user: User, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {canary}\n")
    program.chmod(0o755)
    user.write(".gitattributes", "* filter=f\n")
    user.commit("Filtered")
    user.write("README.md", "changed\n")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    shutil.copy(program, hooks / "reference-transaction")
    settings = {"core__hooksPath": str(hooks), "core__fsmonitor": str(program), "filter__f__clean": str(program)}
    give(monkeypatch, numbered(**settings))
    await repository.inspect()
    await commit_task(repository, user.request(), {"new": "x"})
    assert not canary.exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_CONFIG_COUNT": "many"},
        {"GIT_CONFIG_COUNT": "9" * 30},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name"},
        {"GIT_CONFIG_PARAMETERS": "'http.extraHeader'='secret"},
    ],
)
async def test_what_git_cannot_read_is_refused_without_its_values(
    repository: Repository, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, variables)
    with pytest.raises(RepoError) as refused:
        await repository.inspect()
    assert "GIT_CONFIG_COUNT" in refused.value.advice
    assert "secret" not in str(refused.value)
