"""The tag of a new image in a deployment repository: one line, one commit, no key left."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.deploy.stubs import Stubs

SCRIPT = "scripts/roll-out.sh"
IMAGE = "registry.example:5000/org/agent"
DEPLOYMENT = """\
# image: registry.example:5000/org/agent:old is what ran before
spec:
  containers:
    - image: "registry.example:5000/org/agent:old"   # ours
      name: worker
    - image: registry.example:5000/org/agent-proxy:7
"""


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    return Stubs(tmp_path)


def test_exactly_one_line_changes(stubs: Stubs) -> None:
    path = stubs.folder / "deployment.yaml"
    path.write_text(DEPLOYMENT)
    path.chmod(0o640)
    done, _ = stubs.run(SCRIPT, str(path), IMAGE, "0a1b2c")
    assert done.returncode == 0, done.stderr
    before, after = DEPLOYMENT.splitlines(), path.read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert [new.strip() for _, new in changed] == [f"- image: {IMAGE}:0a1b2c"]
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in stubs.folder.iterdir() if each.is_file()] == ["deployment.yaml"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DEPLOYMENT, ("deployment.yaml", "org/other", "1")),
        (DEPLOYMENT * 2, ("deployment.yaml", IMAGE, "1")),
        (DEPLOYMENT, ("deployment.yaml", IMAGE, "1\n- image: evil")),
        (DEPLOYMENT, ("deployment.yaml", "a b", "1")),
        (DEPLOYMENT, ("absent.yaml", IMAGE, "1")),
        (DEPLOYMENT, ("deployment.yaml", IMAGE)),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(stubs: Stubs, text: str, words: tuple[str, ...]) -> None:
    path = stubs.folder / "deployment.yaml"
    path.write_text(text)
    done, _ = stubs.run(SCRIPT, *words)
    assert (done.returncode, "ERROR: " in done.stderr) == (2, True)
    assert path.read_text() == text
    assert [each.name for each in stubs.folder.iterdir() if each.is_file()] == ["deployment.yaml"]


def git(folder: Path, *words: str) -> str:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def remote(stubs: Stubs) -> Path:
    """A bare repository with a kustomization."""
    work = stubs.folder / "work"
    (work / "agent").mkdir(parents=True)
    git(work, "init", "--quiet", "--initial-branch=main")
    (work / "agent/kustomization.yaml").write_text((ROOT / "deploy/kubernetes/kustomization.yaml").read_text())
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "start")
    git(stubs.folder, "clone", "--quiet", "--bare", str(work), "remote.git")
    return stubs.folder / "remote.git"


def push(stubs: Stubs, remote: Path, tag: str = "0a1b2c", file: str = "agent/kustomization.yaml") -> tuple[int, str]:
    temporary = stubs.folder / "temporary"
    temporary.mkdir(exist_ok=True)
    environ = {"TMPDIR": str(temporary), "DEPLOY_KEY": "PRIVATE-KEY", "DEPLOY_KNOWN_HOSTS": "git.example ssh-ed25519 A"}
    done, _ = stubs.run(SCRIPT, "--push", str(remote), file, IMAGE, tag, environ=environ)
    assert not list(temporary.iterdir()), "the key is gone, also after a failure"
    return done.returncode, done.stdout + done.stderr


def test_a_push_is_one_commit_with_one_line_and_can_be_reverted(stubs: Stubs, remote: Path) -> None:
    code, said = push(stubs, remote)
    assert code == 0, said
    assert git(remote, "log", "--format=%s").splitlines() == ["chore(deploy): agent → 0a1b2c", "start"]
    assert git(remote, "diff", "--numstat", "HEAD~1", "HEAD").split() == ["1", "1", "agent/kustomization.yaml"]
    assert "PRIVATE-KEY" not in said
    code, said = push(stubs, remote)
    assert (code, "names" in said) == (0, True)
    assert len(git(remote, "log", "--format=%s").splitlines()) == 2, "the same tag is no second commit"


@pytest.mark.parametrize("file", ["../outside.yaml", "agent/../../x.yaml", "absent.yaml"])
def test_a_fault_pushes_nothing(stubs: Stubs, remote: Path, file: str) -> None:
    code, said = push(stubs, remote, file=file)
    assert code == 2, said
    assert len(git(remote, "log", "--format=%s").splitlines()) == 1


def test_a_refused_push_is_a_failure(stubs: Stubs, remote: Path) -> None:
    hook = remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert push(stubs, remote)[0] != 0
