import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.adapters.git.detached_git import DetachedGit
from agent_workbench.adapters.git.plumbing import GitResult
from agent_workbench.adapters.git.remote_transport import ForgePush
from agent_workbench.core.errors import ForgeError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.forge import AnnotatedTag
from tests.adapters.git.user import User
from tests.fakes.forge_server import REPO, TOKEN, bare_remote
from tests.fakes.gitea_server import GiteaServer, gitea_server

pytestmark = pytest.mark.usefixtures("home")
TAG = AnnotatedTag("task-7-done", "Completed: make\nit right", "2026-11-23T02:00:00+00:00")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GiteaServer]:
    with gitea_server(bare_remote(tmp_path / "remote.git")) as server:
        yield server


def head(user: User) -> CommitId:
    return CommitId(user.git("rev-parse", "HEAD").strip())


def remote_of(user: User, server: GiteaServer) -> ForgePush:
    return ForgePush(user.root, f"{server.url}/{REPO}.git", TOKEN)


def on_remote(server: GiteaServer, *words: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(server.remote), *words], capture_output=True, text=True, check=True, env={**os.environ}
    )
    return done.stdout.strip()


def refs(server: GiteaServer) -> str:
    return on_remote(server, "for-each-ref", "--format=%(refname) %(objecttype) %(objectname)")


@pytest.mark.usefixtures("untouched")
async def test_branch_and_tag_are_pushed_and_a_repetition_changes_nothing(user: User, server: GiteaServer) -> None:
    remote = remote_of(user, server)
    await remote.push("agent/task-7", head(user), TAG)
    first = refs(server)
    assert f"refs/heads/agent/task-7 commit {head(user)}" in first
    assert on_remote(server, "rev-parse", "task-7-done^{commit}") == head(user)
    assert "Completed: make it right" in on_remote(server, "cat-file", "tag", "task-7-done")
    posts = len([each for each in server.requests if each.startswith("POST")])
    await remote.push("agent/task-7", head(user), TAG)
    assert refs(server) == first
    assert len([each for each in server.requests if each.startswith("POST")]) == posts, "nothing was sent again"


async def test_a_branch_is_never_moved_backwards_and_then_the_tag_is_not_made(user: User, server: GiteaServer) -> None:
    remote = remote_of(user, server)
    older = head(user)
    user.write("new.py", "x = 1\n")
    user.commit("newer")
    await remote.push("agent/task-7", head(user), None)
    before = refs(server)
    with pytest.raises(ForgeError, match="rejected"):
        await remote.push("agent/task-7", older, TAG)
    assert refs(server) == before


@pytest.mark.parametrize("branch", ["main", "agent", "agent/../main", "agent/x:refs/heads/main", "+agent/x", "-x"])
async def test_only_branches_of_the_agent_are_pushed(user: User, server: GiteaServer, branch: str) -> None:
    remote = remote_of(user, server)
    with pytest.raises(ForgeError):
        await remote.push(branch, head(user), None)
    assert server.requests == []


async def test_nothing_that_the_repository_configures_is_obeyed(
    user: User, server: GiteaServer, tmp_path: Path
) -> None:
    """Rewritten addresses, proxies, helpers, hooks and a `.netrc` would send code or token elsewhere."""
    canary = tmp_path / "canary"
    with gitea_server(bare_remote(tmp_path / "evil.git")) as evil:
        user.git("config", f"url.{evil.url}/.insteadOf", f"{server.url}/")
        user.git("config", f"url.{evil.url}/.pushInsteadOf", f"{server.url}/")
        user.git("config", "http.proxy", evil.url)
        user.git("config", "credential.helper", f"!touch {canary};")
        user.git("config", "core.sshCommand", f"touch {canary}")
        user.git("config", "core.hooksPath", str(tmp_path / "hooks"))
        (tmp_path / "hooks").mkdir()
        for name in ("pre-push", "reference-transaction"):
            hook = tmp_path / "hooks" / name
            hook.write_text(f"#!/bin/sh\ntouch {canary}\n")
            hook.chmod(0o755)
        Path(os.environ["HOME"], ".netrc").write_text("machine 127.0.0.1 login x password y\n")
        await remote_of(user, server).push("agent/task-7", head(user), TAG)
        assert evil.requests == []
    assert "refs/heads/agent/task-7" in refs(server)
    assert not canary.exists()


@pytest.mark.parametrize("status", [401, 500, -2])
async def test_a_forge_that_refuses_or_redirects_is_named_and_the_token_is_not(
    user: User, server: GiteaServer, status: int
) -> None:
    server.fail[f"GET /{REPO}.git"] = status
    with pytest.raises(ForgeError) as refused:
        await remote_of(user, server).push("agent/task-7", head(user), TAG)
    assert TOKEN not in f"{refused.value!r}{refused.value.advice}"
    assert not any("elsewhere" in each for each in server.requests)


async def test_the_token_is_in_no_argument_of_git_and_in_no_file(
    user: User, server: GiteaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    run = DetachedGit.run

    def noted(git: DetachedGit, *arguments: str, **more: object) -> GitResult:
        seen.append(list(arguments))
        result = run(git, *arguments, **more)  # type: ignore[arg-type] # as it was called
        texts = [each.read_bytes() for each in git.git_dir.parent.rglob("*") if each.is_file()]
        assert not any(secret.encode() in text for text in texts for secret in secrets)
        return result

    secrets = (TOKEN, base64.b64encode(f"agent:{TOKEN}".encode()).decode())
    monkeypatch.setattr(DetachedGit, "run", noted)
    await remote_of(user, server).push("agent/task-7", head(user), TAG)
    assert [words[0] for words in seen] == ["mktag", "push"]
    assert not any(secret in word for words in seen for word in words for secret in secrets)
