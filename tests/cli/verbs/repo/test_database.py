"""`agent database`, and the verbs of the worker while one is set."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agent_workbench.system.command_bounds import COMMAND_MARK
from tests.adapters.git.user import User
from tests.e2e.machine import Done, Machine

SETTINGS = "database: {url_env: AGENT_DATABASE_URL}\nworker: {pause_below_percent: 0}\n"
FILES = {"app.py": "print('hello')\n", ".agent.yml": SETTINGS, ".gitignore": "memory\ntasks\n"}
TASK = "goal: Say bye\nscope: {allowed_write_globs: ['*']}\nedits: [{path: app.py, find: hello, replace: bye}]\n"
POLICY = "approvals: {diff: auto, commit: auto}\n"


class Site:
    """A repository on a machine, with or without the address of a database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.machine, self.user, self.url = Machine(folder / "machine", forks=True), User(folder / "repo"), url
        self.user.git("init", "--quiet")
        for name, text in FILES.items():
            self.user.write(name, text)
        self.user.commit("Start")
        remote = str(folder / "remote.git")
        self.user.git("init", "--quiet", "--bare", remote)
        self.user.git("remote", "add", "origin", remote)
        self.agent("trust", "--yes")

    def agent(self, *words: str, url: str | None = None) -> Done:
        address = self.url if url is None else url
        return self.machine.agent(*words, cwd=self.user.root, environ={"AGENT_DATABASE_URL": address})

    def report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.agent("database", "check", "--json").out)
        return found

    def add(self, name: str) -> Done:
        path = self.machine.folder / f"{name}.yaml"
        path.write_text(TASK)
        return self.agent("worker", "add", str(path))


@pytest.fixture
def git_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")


@pytest.fixture
def site(tmp_path: Path, migrated_url: str, git_home: None, needs_sandbox: None) -> Iterator[Site]:
    made = Site(tmp_path, migrated_url)
    yield made
    made.machine.end()


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.slow
def test_migrate_creates_the_schema_once_and_check_says_what_is_missing(
    tmp_path: Path, postgres_url: str, git_home: None
) -> None:
    site = Site(tmp_path, postgres_url)
    before = site.agent("database", "check")
    assert before.code == 4
    assert "procrastinate, queue" in before.out
    assert "agent database migrate" in before.out
    assert site.agent("worker", "--once", "--unconfined").code == 4
    assert "applied journal" in site.agent("database", "migrate").out
    assert site.agent("database", "migrate").out.endswith("nothing to apply\n")
    assert site.agent("database", "check").code == 0
    site.machine.end()


@pytest.mark.slow
def test_the_address_of_the_database_is_shown_without_its_secrets(site: Site) -> None:
    away = "postgresql://ada:s3cret@127.0.0.1:1/agent?application_name=x"
    for words in ("database check", "database migrate", "worker status", "worker --once --unconfined"):
        done = site.agent(*words.split(), url=away)
        assert done.code == 4, done
        assert "127.0.0.1:1/agent" in done.out + done.err
        assert "s3cret" not in done.out + done.err
    assert "s3cret" not in site.agent("database", "check", url="postgresql://ada:s3cret@[").err
    assert site.agent("database", "check", url="").code == 2


@pytest.mark.slow
def test_a_task_is_queued_done_withdrawn_and_freed_in_the_database(site: Site) -> None:
    assert "the queue default at " in site.add("bye").out
    policy = site.machine.folder / "policy.yml"
    policy.write_text(POLICY)
    assert site.agent("worker", "--once", "--unconfined", "--policy", str(policy)).code == 0
    site.add("again")
    done = site.agent("worker", "withdraw", "again")
    assert (done.code, done.out) == (0, "again is withdrawn\n")
    assert site.agent("worker", "withdraw", "bye").code == 1
    assert site.agent("worker", "withdraw", "none").code == 2
    site.add("lost")
    change(site.url, "UPDATE agent_tasks SET state = 'parked', lost = '{a,b,c}', reason = 'lost' WHERE id = 'lost'")
    status = json.loads(site.agent("worker", "status", "--json").out)
    assert (status["done"], status["queued"], [each["task"] for each in status["parked"]]) == (1, [], ["lost"])
    # Nobody decided anything about it: a worker leaves it.
    assert "waiting for a person" in site.agent("worker", "--once", "--unconfined", "--policy", str(policy)).out
    assert site.agent("worker", "resume", "lost").out == "lost is queued\n"
    # Whoever runs inside of a task may neither queue nor free one.
    inside = {"AGENT_DATABASE_URL": site.url, COMMAND_MARK: "1"}
    assert site.machine.agent("worker", "withdraw", "lost", cwd=site.user.root, environ=inside).code == 4
    assert not site.user.root.joinpath("tasks").exists()


@pytest.mark.slow
def test_a_forged_row_is_told_by_check_and_by_the_worker(site: Site) -> None:
    site.add("bye")
    assert site.report()["uncounted"] == []
    change(site.url, "UPDATE agent_tasks SET priority = 7")
    assert site.report()["uncounted"] == [["bye", "its columns are not those that were signed"]]
    assert site.agent("database", "check").code == 1
    done = site.agent("worker", "--once", "--unconfined")
    assert done.code == 1
    assert "it does not count: its columns are not those that were signed" in done.out
    assert json.loads(site.agent("worker", "status", "--json").out)["failed"] == 1
    status = site.agent("worker", "status").out
    assert "it does not count: its columns" in status, "whoever queued it reads why, also on another machine"


def test_a_database_that_is_not_trusted_is_not_denied(site: Site) -> None:
    site.agent("trust", "--revoke")
    for verb in (("database", "check"), ("database", "migrate"), ("worker", "list")):
        done = site.agent(*verb)
        assert done.code == 2
        assert "database.url_env of .agent.yml is not trusted" in done.err
        assert "agent trust" in done.err


def test_check_says_that_no_other_signature_counts(site: Site) -> None:
    site.add("one")
    lines = site.agent("database", "check").out.splitlines()
    assert "queue           1 task" in lines
    (signers,) = [line for line in lines if line.startswith("allowed signers")]
    assert signers.endswith("(not there: only this machine's own signatures count)")
    folder = site.machine.home / ".config/agent-workbench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "allowed_signers").write_text("")
    (signers,) = [line for line in site.agent("database", "check").out.splitlines() if line.startswith("allowed")]
    assert signers.endswith("allowed_signers")


def test_a_worker_begins_and_ends_under_the_name_that_the_list_has(site: Site) -> None:
    folder = site.machine.home / ".config/agent-workbench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.yml").write_text("worker: {name: gpubox}\n")
    lines = site.agent("worker", "--once", "--unconfined").said.splitlines()
    assert any("gpubox works on" in line for line in lines), lines
    assert any("gpubox ends" in line for line in lines), lines


def test_verify_tells_how_to_bring_a_commit_of_another_machine(site: Site) -> None:
    done = site.agent("verify", "agent/T-9")
    assert done.code == 2
    assert "`git fetch origin` brings those of other machines, such as origin/agent/T-1" in done.err


def test_check_says_why_the_server_takes_no_connection(site: Site) -> None:
    base, _, host = site.url.partition("?")
    nobody, nothing = base.replace("agent@", "nobody@"), base.rpartition("/")[0]
    said = {
        f"{nobody}?{host}": "role of the address does not exist",
        f"{nothing}/nodb?{host}": 'database "nodb" does not exist',
        "postgresql://mia:secret@127.0.0.1:1/x": "127.0.0.1",
    }
    for url, why in said.items():
        done = site.agent("database", "check", url=url)
        (problem,) = [line for line in done.out.splitlines() if line.startswith("problem")]
        assert (done.code, why in problem) == (4, True), problem
        assert "does not answer: " in problem
        assert problem.endswith("(start it, or correct its address in AGENT_DATABASE_URL)")
        assert not any(each in done.said for each in ("nobody", "mia", "secret"))
    other = site.agent("worker", "list", url="postgresql://mia:secret@127.0.0.1:1/x")
    assert "`agent database check` says why" in other.err
