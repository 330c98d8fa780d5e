"""`agent audit` over five recorded tasks, from the command line."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.cli.main import execute
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.task_estimates import Intent
from agent_workbench.subjects.audit.calls import share_audit
from tests.adapters.git.conftest import home
from tests.adapters.git.user import User
from tests.documented_json import assert_documented
from tests.subjects.audit.sessions import session_name, task_events, write_session

__all__ = ["home"]

DONE, FAILED = TaskStatus.DONE, TaskStatus.FAILED


def days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days, minutes=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def repo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path) -> Path:
    """A repository with five recorded tasks."""
    user = User(tmp_path / "repo")
    user.git("init", "--quiet")
    user.write("a", "a\n")
    user.commit("Start")
    for number, (events, ended) in enumerate(
        (
            (task_events("T-1", service="shop", intent=Intent.CODE), days_ago(1)),
            (task_events("T-2", FAILED, service="shop", intent=Intent.INFRA, reason="the checks fail"), days_ago(2)),
            (task_events("T-3", FAILED, service="till", intent=Intent.CODE, dollars=0.25), days_ago(3)),
            (task_events("T-4", service="till", intent=Intent.RESEARCH), days_ago(40)),
            (task_events("T-5", FAILED), days_ago(100)),
        )
    ):
        write_session(user.root / "memory" / "sessions", session_name(number), events, ended=ended)
    monkeypatch.chdir(user.root)
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(home))
    return user.root


@pytest.mark.parametrize(
    ("asked", "tasks", "total"),
    [
        ("--status failed", ["T-2", "T-3"], 2),
        ("--status failed --days 90 --service shop", ["T-2"], 1),
        ("--status failed --limit 1", ["T-2"], 2),
        ("--status failed --limit 1 --offset 1", ["T-3"], 2),
        ("--service shop", ["T-1", "T-2"], 2),
        ("--service till --days 365", ["T-3", "T-4"], 2),
        ("--service till --status done --days 41", ["T-4"], 1),
        ("--service none", [], 0),
        ("", ["T-1", "T-2", "T-3"], 3),
        ("--days 365", ["T-1", "T-2", "T-3", "T-4", "T-5"], 5),
        ("--days 365 --limit 2", ["T-1", "T-2"], 5),
        ("--days 365 --limit 2 --offset 4", ["T-5"], 5),
        ("--days 365 --limit 2 --offset 9", [], 5),
        ("--intent code", ["T-1", "T-3"], 2),
        ("--status failed --service till --intent code", ["T-3"], 1),
        ("--status failed --service till --intent infra", [], 0),
        ("--status done --days 365", ["T-1", "T-4"], 2),
    ],
)
def test_each_query_returns_exactly_what_it_should(
    repo: Path, capsys: pytest.CaptureFixture[str], asked: str, tasks: list[str], total: int
) -> None:
    told = json.loads(queried(capsys, f"{asked} --json"))
    assert ([each["task"] for each in told["tasks"]], told["total"]) == (tasks, total)
    words = asked.split()
    given = {word: int(words[at + 1]) for at, word in enumerate(words) if word in {"--limit", "--offset"}}
    assert (told["limit"], told["offset"]) == (given.get("--limit", 100), given.get("--offset", 0))
    assert {*told} == {"tasks", "total", "limit", "offset", "problems", "notes"}


@pytest.mark.parametrize(
    ("asked", "total"),
    [("", 3), ("--days 365", 5), ("--status failed", 2), ("--service till --days 365", 2), ("--intent infra", 1)],
)
def test_tasks_are_counted(repo: Path, capsys: pytest.CaptureFixture[str], asked: str, total: int) -> None:
    assert queried(capsys, f"--count {asked}") == f"{total}\n"


@pytest.mark.parametrize(
    "asked",
    [
        *("--days 366", "--days 0", "--limit 1001", "--limit 0", "--offset -1", "--count --days 366"),
        *("--decisions --limit 1001", "--decisions --days 366", "--costs --limit 1001", "--costs --days 0"),
        *("--count --status failed --days 91", "--status failed --days 91"),
    ],
)
def test_what_is_out_of_bounds_is_refused(repo: Path, capsys: pytest.CaptureFixture[str], asked: str) -> None:
    said = refused(capsys, f"query {asked}")
    assert re.search(r"(from|must be) \d+ to \d+|expected one argument", said), said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("query --status lost", "'lost' is not a value of --status"),
        ("query --intent war", "'war' is not a value of --intent"),
        ("query --costs --per moon", "'moon' is not a value of --per"),
        ("query --days x", "'x' is not a whole number"),
        ("query --count --costs", "not allowed with argument --count"),
        ("query --by user", "tasks cannot be filtered by `--by`"),
        ("query --per day", "tasks cannot be filtered by `--per`"),
        ("query --decisions --status done", "decisions cannot be filtered by `--status`"),
        ("query --costs --task T-1", "costs cannot be filtered by `--task`"),
        ("", "required: VERB"),
        ("count", "use `agent audit query --count`"),
        ("who --by user", "use `agent audit query --decisions`"),
        ("spend --by day", "use `agent audit query --costs`"),
        ("failures --days 7", "use `agent audit query --status failed`"),
        ("service shop", "use `agent audit query --service NAME`"),
    ],
)
def test_what_cannot_be_asked_is_refused(repo: Path, capsys: pytest.CaptureFixture[str], asked: str, said: str) -> None:
    assert said in refused(capsys, asked)


def queried(capsys: pytest.CaptureFixture[str], asked: str, code: ExitCode = ExitCode.DONE) -> str:
    """Return what `agent audit query` prints, whose JSON is documented."""
    arguments = ["audit", "query", *asked.split()]
    assert execute(arguments) == code
    printed = capsys.readouterr().out
    assert_documented(arguments, printed)
    return printed


def refused(capsys: pytest.CaptureFixture[str], asked: str) -> str:
    """Return the error of `agent audit`, also where argparse leaves."""
    try:
        code: object = execute(["audit", *asked.split()])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert (code, said.out) == (ExitCode.USAGE, "")
    return said.err


def test_a_person_reads_what_failed_and_the_line_that_proves_it(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, rest = queried(capsys, "--status failed --limit 1").splitlines()
    assert " failed " in first
    assert f"{session_name(1)}:5:" in first
    assert first.rstrip().endswith("the checks fail  UNPROVED: its session was not begun on this machine")
    assert rest == "1 to 1 of 2 tasks; --limit and --offset show others"


def test_it_is_told_who_approved_what_and_when(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(queried(capsys, "--decisions --by user --service shop --json"))
    assert [(each["task"], each["by"], each["verdict"], each["subject"]) for each in told["decisions"]] == [
        ("T-1", "user", "approve", "Do it well"),
        ("T-2", "user", "approve", "Do it well"),
    ]
    assert told["decisions"][0]["via"] == "ada in a shell at 12:00"
    (line,) = queried(capsys, "--decisions --task T-3").splitlines()
    assert "approved  user (ada in a shell at 12:00)  commit    Do it well  T-3" in line


def test_costs_are_summed(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(queried(capsys, "--costs --per service --per endpoint --json"))
    assert [(each["service"], each["dollars"], each["answers"], each["day"]) for each in told["sums"]] == [
        ("till", 0.25, 1, ""),
        ("shop", 0.0, 2, ""),
    ]
    assert (told["overall"]["dollars"], told["overall"]["prompt_tokens"], told["total"]) == (0.25, 300, 2)
    lines = queried(capsys, "--costs --days 365").splitlines()
    assert len(lines) == 6
    assert lines[-1] == "overall: 500 + 50 tokens, $0.2500"


def test_a_damaged_journal_is_told_beside_the_answer(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = repo / "memory" / "sessions" / session_name(0) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"status":"done"', b'"status":"fail"'))
    assert execute(["audit", "query"]) == ExitCode.JOURNAL
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert f"{session_name(0)} is damaged" in said.err
    assert "line 7" in said.err
    told = json.loads(queried(capsys, "--count --json", ExitCode.JOURNAL))
    assert [each["session"] for each in told["problems"]] == [session_name(0)]


def test_nothing_that_fits_is_said(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert queried(capsys, "--service none") == "no task fits in the last 30 days\n"


@pytest.fixture
def shared(repo: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The same repository with the settings of a database, and its sessions begun on this machine."""
    for session in (repo / "memory" / "sessions").iterdir():
        registry = home / "agent-workbench" / "sessions"
        registry.mkdir(parents=True, exist_ok=True)
        (registry / session.name).write_bytes(bytes(session))
    (repo / ".agent.yml").write_text("database: {url_env: SHARED}\n")
    assert execute(["trust", "--yes"]) == ExitCode.DONE
    capsys.readouterr()
    return repo


def test_the_answer_comes_from_the_database(
    shared: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARED", migrated_url)
    for _ in range(2):
        told = json.loads(queried(capsys, "--days 365 --json"))
        assert [each["task"] for each in told["tasks"]] == ["T-1", "T-2", "T-3", "T-4", "T-5"]
        assert ({each["unproved"] for each in told["tasks"]}, told["notes"]) == ({""}, [])
    assert "2 of 3 decisions" in queried(capsys, "--decisions --limit 2")
    with psycopg.connect(migrated_url) as database:
        hidden = database.execute(
            "UPDATE agent_audit_records SET status = 'done' WHERE task = 'T-2' AND kind = 'entry'"
        )
        assert hidden.rowcount == 1
    assert execute(["audit", "query", "--status", "failed"]) == ExitCode.DONE
    said = capsys.readouterr()
    assert "T-2" not in said.out
    assert "1 record of this machine is missing in the database" in said.err
    with psycopg.connect(migrated_url) as database:
        forged = database.execute("DELETE FROM agent_audit_records WHERE task != 'T-3' AND kind = 'cost'").rowcount
    assert forged == 4
    assert len(json.loads(queried(capsys, "--costs --days 365 --per day --json"))["sums"]) == 1


def test_without_the_database_the_answer_is_of_this_machine_and_says_so(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARED", f"postgresql://agent:hunter2@/x?host={shared}")
    assert execute(["audit", "query"]) == ExitCode.DONE
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 3
    assert "the answer is of this machine alone: the database at" in said.err
    assert "hunter2" not in said.err


async def test_records_that_cannot_be_shared_stop_nothing(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARED", f"postgresql://agent@/x?host={shared}")
    repo = await find_repo(Invocation(shared, os.environ, {}))
    assert (await share_audit(repo)).startswith("the audit was not copied to the database: the database at")
    await repo.shared.close()
    monkeypatch.setenv("SHARED", "")
    assert "is empty" in await share_audit(await find_repo(Invocation(shared, os.environ, {})))
