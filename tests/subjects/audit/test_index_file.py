"""The file of the audit index: damaged, foreign, unwritable, used by two processes."""

import asyncio
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.audit_source import JournalSource
from agent_workbench.core.errors import StorageError
from agent_workbench.core.history.audit_records import AuditPage, AuditQuery, CostPage, CostQuery, DecisionQuery
from agent_workbench.core.plan import TaskStatus
from agent_workbench.subjects.audit import file_adapter
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from agent_workbench.system.locks import FileLock
from tests.subjects.audit.sessions import NOW, session_name, task_events, write_session


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    for number in range(12):
        status = TaskStatus.FAILED if number % 3 else TaskStatus.DONE
        write_session(folder, session_name(number), task_events(f"T-{number}", status, service="shop", dollars=0.5))
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "audit.sqlite"


def opened(path: Path, sessions: Path) -> SqliteAuditIndex:
    return SqliteAuditIndex(path, JournalSource(sessions, lambda _: True))


async def answers(index: SqliteAuditIndex) -> tuple[object, ...]:
    page = await index.query(AuditQuery(TaskStatus.FAILED), NOW)
    decided = await index.decisions(DecisionQuery(by="user"), NOW)
    costs = await index.costs(CostQuery(), NOW)
    return page.entries, page.total, decided.decisions, decided.total, costs.sums, costs.overall


async def made(path: Path, sessions: Path) -> tuple[object, ...]:
    """Make the index, with nothing left beside its file; return its answers."""
    right = await answers(opened(path, sessions))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return right


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def age(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA user_version = 99")


def drop_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("DROP TABLE costs")


def forge_a_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "UPDATE entries SET record = CAST(replace(CAST(record AS TEXT), 'failed', 'done') AS BLOB)"
        )


@pytest.mark.parametrize("damage", [cut, scribble, age, drop_a_table, forge_a_row])
async def test_a_damaged_index_is_built_again_and_says_so(path: Path, sessions: Path, damage: object) -> None:
    right = await made(path, sessions)
    assert callable(damage)
    damage(path)
    index = opened(path, sessions)
    page = await index.query(AuditQuery(), NOW)
    assert [("damaged" in note, "built again" in note) for note in page.notes] == [(True, True)]
    assert await answers(index) == right
    assert (await index.query(AuditQuery(), NOW)).notes == ()


async def test_an_emptied_file_is_filled_again(path: Path, sessions: Path) -> None:
    right = await made(path, sessions)
    path.write_bytes(b"")
    assert await answers(opened(path, sessions)) == right


async def test_no_byte_that_changes_changes_an_answer(path: Path, sessions: Path) -> None:
    right = await made(path, sessions)
    whole = path.read_bytes()
    chance = random.Random(16)
    for _ in range(60):
        at = chance.randrange(len(whole))
        changed = bytearray(whole)
        changed[at : at + 8] = chance.randbytes(8)
        path.write_bytes(changed)
        assert await answers(opened(path, sessions)) == right, at
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)


async def test_the_file_of_another_program_is_left_alone(path: Path, sessions: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE theirs (value); INSERT INTO theirs VALUES (1)")
    before = path.read_bytes()
    page = await opened(path, sessions).query(AuditQuery(), NOW)
    assert (page.total, len(page.notes)) == (12, 1)
    assert "another program" in page.notes[0]
    assert path.read_bytes() == before


async def test_an_index_that_cannot_be_written_is_said_and_the_answer_comes_nevertheless(
    tmp_path: Path, sessions: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    index = opened(tmp_path / "file" / "audit.sqlite", sessions)
    page = await index.query(AuditQuery(), NOW)
    assert page.total == 12
    assert "all journals were read instead" in page.notes[0]
    with pytest.raises(StorageError):
        await index.add(page.entries[0])


async def test_a_full_disk_is_said_and_the_answer_comes_nevertheless(
    path: Path, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = file_adapter._connect

    def full(place: str) -> sqlite3.Connection:
        connection = connect(place)
        if place != ":memory:":
            connection.execute("PRAGMA max_page_count = 14")
        return connection

    monkeypatch.setattr(file_adapter, "_connect", full)
    page = await opened(path, sessions).query(AuditQuery(), NOW)
    assert page.total == 12
    assert "full" in page.notes[0]
    monkeypatch.undo()
    assert (await opened(path, sessions).query(AuditQuery(), NOW)).notes == ()


async def test_while_another_process_updates_the_old_content_answers(
    path: Path, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened(path, sessions)
    await index.query(AuditQuery(), NOW)
    monkeypatch.setattr(file_adapter, "LOCK_SECONDS", 0.0)
    lock = FileLock(path.with_suffix(".lock"), "another")
    await asyncio.to_thread(lock.acquire)
    try:
        page: AuditPage = await index.query(AuditQuery(), NOW)
    finally:
        await asyncio.to_thread(lock.release)
    assert (page.total, len(page.notes)) == (12, 1)
    assert "another process" in page.notes[0]


PROCESS = """
import asyncio, sys
from pathlib import Path
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from agent_workbench.adapters.journal.audit_source import JournalSource
from agent_workbench.core.history.audit_records import CostQuery
index = SqliteAuditIndex(Path(sys.argv[1]), JournalSource(Path(sys.argv[2]), lambda _: True))
for _ in range(20):
    page = asyncio.run(index.costs(CostQuery(), sys.argv[3]))
    assert page.overall.dollars == 6.0 and not page.notes, page
"""


async def test_two_processes_share_one_index(path: Path, sessions: Path) -> None:
    def run() -> list[int]:
        command = [sys.executable, "-c", PROCESS, str(path), str(sessions), NOW]
        running = [subprocess.Popen(command) for _ in range(2)]
        return [each.wait(timeout=60) for each in running]

    assert await asyncio.to_thread(run) == [0, 0]
    page: CostPage = await opened(path, sessions).costs(CostQuery(), NOW)
    assert page.overall.answers == 12
