"""Two machines, a database and a git remote: a session continues elsewhere, and whatever is changed is found."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import psycopg
import pytest
from msgspec import Struct

from agent_workbench.api.proofs import prove_commit
from agent_workbench.core.history.journal_proof import Proof
from agent_workbench.core.session_request import Invocation
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import GIT, User
from tests.e2e.machine import Machine

pytestmark = pytest.mark.slow

TASK = """\
id: greet
goal: Say bye
scope: {allowed_write_globs: ["**"]}
edits:
  - {path: app.py, find: hello, replace: bye}
  - {path: run.sh, content: "#!/bin/sh\\n"}
verify: [{command: grep -q bye app.py}]
"""
RULES = 'rules: [{kind: check, commands: ["grep -q bye app.py"]}]'
BESIDES = ("memory", "tasks")
SETTINGS = "database: {url_env: AGENT_DATABASE_URL}\nworker: {pause_below_percent: 0}\n"


class Site(Struct, frozen=True):
    """A machine with its clone and the database's address."""

    machine: Machine
    user: User
    url: str

    def agent(self, *words: str, code: int = 0) -> str:
        done = self.machine.agent(*words, cwd=self.user.root, environ={"AGENT_DATABASE_URL": self.url})
        assert done.code == code, done
        return done.out

    def work(self, commit: str, code: int = 0) -> str:
        """Do or continue one task, with this policy for the commit."""
        policy = self.machine.folder / "policy.yml"
        policy.write_text(f"approvals: {{diff: auto, check: auto, commit: {commit}, {RULES}}}\n")
        return self.agent("worker", "--once", "--unconfined", "--policy", str(policy), code=code)

    def proof(self, commit: str) -> dict[str, object]:
        environ = {"AGENT_DATABASE_URL": self.url}
        done = self.machine.agent("verify", commit, "--json", cwd=self.user.root, environ=environ)
        found: dict[str, object] = json.loads(done.out)
        assert done.code == {"green": 0, "not provable": 1, "red": 6}[str(found["proof"])]
        return found


def site(folder: Path, name: str, remote: Path, url: str) -> Site:
    machine = Machine(folder / name, forks=True)
    machine.home.joinpath(".config/agent-workbench").mkdir(parents=True, exist_ok=True)
    machine.home.joinpath(".config/agent-workbench/settings.yml").write_text(f"worker: {{name: {name}}}\n")
    user = User(folder / name / "repo")
    subprocess.run([GIT, "clone", "--quiet", str(remote), str(user.root)], check=True)
    made = Site(machine, user, url)
    made.agent("trust", "--yes")
    return made


@pytest.fixture
def sites(tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, Site]]:
    """Two machines that know each other's keys."""
    remote, seed = tmp_path / "remote.git", User(tmp_path / "seed")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")
    seed.git("init", "--quiet")
    for name, text in {"app.py": "print('hello')\n", ".agent.yml": SETTINGS, ".gitignore": "memory\ntasks\n"}.items():
        seed.write(name, text)
    seed.commit("Start")
    subprocess.run([GIT, "clone", "--quiet", "--bare", str(seed.root), str(remote)], check=True)
    here, there = (site(tmp_path, name, remote, migrated_url) for name in ("laptop", "gpubox"))
    keys = [re.search(r"as a person +(.*)", each.agent("database", "check")) for each in (here, there)]
    for each, key in zip((here, there), reversed(keys), strict=True):
        assert key is not None
        each.machine.home.joinpath(".config/agent-workbench/allowed_signers").write_text(f"{key[1]}\n")
    yield here, there
    for each in (here, there):
        each.machine.end()


def test_a_parked_session_continues_on_another_machine_and_its_commit_is_proved_on_both(
    sites: tuple[Site, Site], tmp_path: Path
) -> None:
    here, there = sites
    before = fingerprint(there.user.root, BESIDES)
    here.user.root.parent.joinpath("greet.yaml").write_text(TASK)
    here.agent("worker", "add", "../greet.yaml")
    here.work("ask", code=3)
    waiting = json.loads(there.agent("inbox", "list", "--json"))[0]
    shown = there.agent("inbox", "show", waiting["id"])
    there.agent("inbox", "approve", re.findall(r"\S+/P-\d+@[0-9a-f]+", shown)[-1])
    there.work("ask")
    commit = there.user.git("rev-parse", "agent/greet")
    assert there.user.git("show", f"{commit}:app.py") == "print('bye')"
    here.user.git("fetch", "--quiet", "origin", "agent/greet:refs/remotes/origin/agent/greet")
    for each in sites:
        proof = each.proof(commit)
        trailer = proof["trailers"][0]  # type: ignore[index]
        assert (proof["proof"], trailer["worker"], bool(trailer["signer"])) == ("green", "gpubox", True)
        assert trailer["approvals"][-1]["signer"] == trailer["signer"]
    assert fingerprint(there.user.root, BESIDES) == before
    session = waiting["session"]
    there.agent("clean", "--yes", "agent/greet", f"refs/agent/{session}", session)
    left = User(tmp_path / "remote.git").git("for-each-ref", "--format=%(refname)").split()
    assert left == [f"refs/agent/audit/{session}", "refs/heads/main"]
    assert here.proof(commit)["proof"] == "green"


class Change(Struct, frozen=True):
    """Something that somebody with access to database or remote changes; `found`: even if all else is as it was."""

    name: str
    rows: str = ""
    remote: Callable[[User, str], None] | None = None
    trailer: bool = False
    found: bool = True

    @property
    def place(self) -> str:
        return "database" if self.rows else "remote" if self.remote else "commit"


def no_audit(remote: User, audit: str) -> None:
    remote.git("update-ref", "-d", audit)


def forged_audit(remote: User, audit: str) -> None:
    message = remote.git("log", "-1", "--format=%B", audit).replace('"fence":', '"fence":1')
    forged = remote.git("commit-tree", f"{audit}^{{tree}}", "-p", audit, "-m", message)
    remote.git("update-ref", audit, forged)


CHANGES = (
    Change("a line", "UPDATE agent_lines SET line = replace(line, 'bye', 'BYE')"),
    Change("a cut", "DELETE FROM agent_lines WHERE seq > 15; UPDATE agent_heads SET seq = 15"),
    Change("no rows", "DELETE FROM agent_lines; DELETE FROM agent_heads"),
    Change("no signature", "UPDATE agent_heads SET signature = ''"),
    Change("a signer", "UPDATE agent_heads SET worker = 'somebody'"),
    Change("forged audit ref", remote=forged_audit),
    Change("no audit ref", remote=no_audit, found=False),
    Change("a trailer", trailer=True),
)


def test_what_was_changed_alone_and_in_pairs_is_found_on_a_machine_that_saw_nothing_of_it(
    sites: tuple[Site, Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = sites
    here.user.root.parent.joinpath("greet.yaml").write_text(TASK)
    here.agent("worker", "add", "../greet.yaml")
    here.work("auto")
    there.user.git("fetch", "--quiet", "origin", "agent/greet:refs/remotes/origin/agent/greet")
    commit = there.user.git("rev-parse", "origin/agent/greet")
    message = there.user.git("log", "-1", "--format=%B", commit)
    values = re.search(r"Agent-Journal: (\S+):(\d+):(\w+)", message)
    assert values is not None
    audit = f"refs/agent/audit/{values[1]}"
    other = message.replace(values[3], "0" * 64)
    forged = there.user.git("commit-tree", f"{commit}^{{tree}}", "-p", f"{commit}^", "-m", other)
    for name, value in there.machine.environ.items():
        monkeypatch.setenv(name, value)
    remote = User(tmp_path / "remote.git")
    tip = remote.git("rev-parse", audit)

    def verify(*changes: Change) -> Proof:
        shutil.rmtree(there.machine.state / "shared", ignore_errors=True)
        there.user.git("update-ref", "-d", audit)
        remote.git("update-ref", audit, tip)
        with psycopg.connect(here.url, autocommit=True) as connection:
            for table in ("agent_lines", "agent_heads"):
                connection.execute(f"CREATE TABLE IF NOT EXISTS kept_{table} AS TABLE {table}".encode())
                connection.execute(f"TRUNCATE {table}".encode())
                connection.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}".encode())
            for change in changes:
                connection.execute(change.rows.encode() or b"SELECT 1")
                if change.remote is not None:
                    change.remote(remote, audit)
        revision = forged if any(each.trailer for each in changes) else commit
        invocation = Invocation(there.user.root, {**os.environ, "AGENT_DATABASE_URL": here.url}, {})
        return asyncio.run(prove_commit(invocation, revision)).proof

    assert verify() is Proof.GREEN
    for change in CHANGES:
        assert (verify(change) is Proof.GREEN) is not change.found, change.name
    for pair in combinations(CHANGES, 2):
        if len({each.place for each in pair}) == 1:
            continue
        assert verify(*pair) is not Proof.GREEN, [each.name for each in pair]
