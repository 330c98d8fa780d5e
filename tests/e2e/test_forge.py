"""A worker and its forge from the shell: trust comes first, and each report is written once, whatever is killed."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine
from tests.e2e.terminal import in_terminal
from tests.fakes.forge_server import REPO, TOKEN, bare_remote
from tests.fakes.gitea_server import GiteaServer, gitea_server
from tests.fakes.github_server import github_server

TASK = """\
goal: Make add() add
source: gitea:{repo}#7
scope: {{allowed_write_globs: [calc.py]}}
edits:
  - {{path: calc.py, find: left - right, replace: left + right}}
"""
SETTINGS = "forge: {{url: '{url}', repo: {repo}, users: [ada]}}\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GiteaServer]:
    with gitea_server(bare_remote(tmp_path / "remote.git")) as server:
        server.open_issue(7, "Make add() add", "It subtracts.", author="stranger")
        server.label(7, "ada")
        yield server


@pytest.fixture
def repo(machine: Machine, server: GiteaServer) -> Path:
    made = calc_repo(machine)
    (made / ".agent.yml").write_text(SETTINGS.format(url=server.url, repo=REPO))
    return made


def test_the_forge_of_a_repository_is_not_asked_before_it_is_trusted(
    machine: Machine, repo: Path, server: GiteaServer
) -> None:
    token = {"GITEA_TOKEN": TOKEN}
    before = machine.agent("worker", "pull", cwd=repo, environ=token)
    assert before.code == 2, before.said
    assert "no forge is set" in before.said
    assert server.requests == []
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    without = machine.agent("worker", "pull", cwd=repo)
    assert (without.code, server.requests) == (2, []), without.said
    assert "forge.token_env" in without.said
    pulled = machine.agent("worker", "pull", cwd=repo, environ=token)
    assert (pulled.code, pulled.out) == (0, "task-7 is queued from issue 7, which ada labelled\n"), pulled.said
    assert machine.agent("worker", "pull", cwd=repo, environ=token).out == "nothing new\n"
    server.fail["GET /api/v1/repos"] = 401
    refused = machine.agent("worker", "pull", cwd=repo, environ=token)
    assert refused.code == 4, refused.said
    assert TOKEN not in refused.said


@pytest.mark.slow
def test_a_result_is_reported_once_after_a_kill_and_the_token_is_nowhere(
    machine: Machine, repo: Path, server: GiteaServer, tmp_path: Path
) -> None:
    machine.agent("trust", "--yes", cwd=repo)
    (repo / "task.yaml").write_text(TASK.format(repo=REPO))
    assert machine.agent("worker", "add", "task.yaml", cwd=repo).code == 0
    (tmp_path / "policy.yaml").write_text("approvals: {diff: auto, check: auto, commit: auto}\n")
    words = ("worker", "--once", "--policy", str(tmp_path / "policy.yaml"))
    if "no sandbox" in machine.agent("doctor", cwd=repo).said:
        pytest.skip("machine lacks: a sandbox that holds; a worker with a token does not start without one")
    environ = {"FORGE_WORD": TOKEN, "AGENT_FORGE__TOKEN_ENV": "FORGE_WORD"}
    running = machine.start(*words, cwd=repo, environ=environ, halt="finish")
    running.until_halted()
    running.send(signal.SIGKILL)
    assert server.said[7] != []
    for _ in range(2):
        machine.agent(*words, cwd=repo, environ=environ)
    results = [text for text in server.texts(7) if text.startswith("✓ COMPLETED")]
    assert len(results) == 1, server.texts(7)
    assert (len(server.states), len(server.pulls)) == (1, 1)
    refs = subprocess.run(
        ["git", "--git-dir", str(server.remote), "for-each-ref"], capture_output=True, text=True, check=True
    ).stdout
    assert "refs/heads/agent/" in refs
    assert refs.count("\n") == 2
    found = [each for each in tmp_path.rglob("*") if each.is_file() and TOKEN.encode() in each.read_bytes()]
    assert found == []


@pytest.fixture
def finished(served: Machine) -> Path:
    """Return a repository with a task that is done and not merged."""
    made = calc_repo(served)
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", cwd=made)
    assert done.code == 0, done.said
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gitea", "github"])
def test_a_finished_task_becomes_a_pull_request_where_the_remote_is_after_a_question(
    served: Machine, finished: Path, kind: str, tmp_path: Path
) -> None:
    before = fingerprint(finished)
    serve = {"gitea": gitea_server, "github": github_server}[kind]
    with serve(bare_remote(tmp_path / "remote.git")) as forge:
        served.git(finished, "remote", "add", "origin", f"{forge.url}/{REPO}.git")
        with in_terminal(served, "merge", "T-1", "--pull-request", cwd=finished) as terminal:
            terminal.until("no forge is known")
            assert terminal.end() == 2
        served.environ |= {"AGENT_FORGE__KIND": kind, forge.token_env: TOKEN}
        question = f"push agent/T-1 ({served.git(finished, 'rev-parse', 'agent/T-1')[:10]}) and open a pull request? "
        for answer, code in (("n", 3), ("y", 0), ("y", 0)):
            with in_terminal(served, "merge", "T-1", "--pull-request", cwd=finished) as terminal:
                terminal.until(f"It goes to {forge.url}/{REPO}, with the token of {forge.token_env}.")
                terminal.until(question)
                assert answer == "y" or forge.requests == []
                terminal.type(f"{answer}\n")
                terminal.until("/pulls/" if answer == "y" else "nothing was pushed")
                assert terminal.end() == code, terminal.shown
                assert TOKEN not in terminal.shown
        (pull,) = forge.pulls
        assert pull["html_url"] in terminal.shown
        assert (pull["title"], pull["head"]["ref"], pull["base"]["ref"]) == ("T-1: Make add() add", "agent/T-1", "main")
        assert "# T-1: Make add" in pull["body"]
        pushed = served.git(tmp_path / "remote.git", "rev-parse", "agent/T-1")
        assert pushed == served.git(finished, "rev-parse", "agent/T-1")
        served.git(finished, "remote", "remove", "origin")
    assert fingerprint(finished) == before
    found = [each for each in tmp_path.rglob("*") if each.is_file() and TOKEN.encode() in each.read_bytes()]
    assert found == []
