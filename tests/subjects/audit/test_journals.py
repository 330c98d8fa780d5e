"""The audit index and the journals that it is built from: what is read, what is shown, what is damaged."""

import asyncio
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.journal.audit_source import JournalSource
from agent_workbench.core.events import ActionProposed, SessionForked, SessionStarted
from agent_workbench.core.history.audit_records import AuditQuery, CostQuery, DecisionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.audit_index import JournalGrowth, JournalMark
from agent_workbench.core.task_estimates import Intent
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from tests.subjects.audit.sessions import BASE, NOW, session_name, task_events, write_session


class CountingSource(JournalSource):
    """Source that notes what is read, and from which byte on."""

    def __init__(self, folder: Path, *, ours: bool = True) -> None:
        super().__init__(folder, lambda _: ours)
        self.read_from: list[tuple[SessionId, int]] = []

    def read(self, session: SessionId, mark: JournalMark | None) -> JournalGrowth:
        found = super().read(session, mark)
        self.read_from.append((session, mark.position if mark is not None and found.grown else 0))
        return found


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def source(sessions: Path) -> CountingSource:
    return CountingSource(sessions)


@pytest.fixture
def index(tmp_path: Path, source: CountingSource) -> SqliteAuditIndex:
    return SqliteAuditIndex(tmp_path / "cache" / "audit.sqlite", source)


async def tasks(index: SqliteAuditIndex, query: AuditQuery | None = None) -> list[str]:
    return [each.task for each in (await index.query(query or AuditQuery(), NOW)).entries]


async def test_a_record_names_the_line_that_proves_it(index: SqliteAuditIndex, sessions: Path) -> None:
    name = session_name(1)
    written = write_session(sessions, name, task_events("T-1", service="shop", intent=Intent.INFRA, reason="committed"))
    (entry,) = (await index.query(AuditQuery(), NOW)).entries
    line = written.splitlines()[entry.seq]
    assert line.endswith(b'"hash":"%s"}' % entry.hash.encode())
    assert b'"kind":"task_finished"' in line
    assert (entry.session, entry.task, entry.status, entry.commit) == (name, "T-1", TaskStatus.DONE, "d" * 40)
    assert (entry.service, entry.intent, entry.reason, entry.unproved) == ("shop", "infra", "committed", "")
    (decision,) = (await index.decisions(DecisionQuery(), NOW)).decisions
    assert b'"kind":"action_decided"' in written.splitlines()[decision.seq]
    assert (decision.by, decision.subject, decision.service) == ("user", "Do it well", "shop")
    (cost,) = (await index.costs(CostQuery(), NOW)).sums
    assert (cost.endpoint, cost.model, cost.prompt_tokens, cost.answer_tokens) == ("cloud (http://x)", "m", 100, 10)


async def test_only_journals_that_grew_are_read_and_only_their_new_lines(
    index: SqliteAuditIndex, sessions: Path, source: CountingSource
) -> None:
    first, second = session_name(1), session_name(2)
    before = len(write_session(sessions, first, task_events("T-1")))
    write_session(sessions, second, task_events("T-2"))
    assert sorted(await tasks(index)) == ["T-1", "T-2"]
    source.read_from.clear()
    assert len(await tasks(index)) == 2
    assert source.read_from == []
    events = (*task_events("T-1"), *task_events("T-3", service="shop"))
    whole = write_session(sessions, first, events, ended="2026-11-22T11:00:06.000000Z")
    assert len(whole) > before
    assert await tasks(index, AuditQuery(service="shop")) == ["T-3"]
    assert source.read_from == [(first, before)]


async def test_a_decision_knows_a_proposal_from_before_the_last_look(index: SqliteAuditIndex, sessions: Path) -> None:
    events = task_events("T-1")
    waiting = next(number for number, each in enumerate(events, 1) if isinstance(each, ActionProposed))
    write_session(sessions, session_name(1), events[:waiting], ended="2026-11-22T11:00:00.000000Z")
    assert (await index.decisions(DecisionQuery(), NOW)).total == 0
    late = f"2026-11-22T11:00:0{len(events) - waiting}.000000Z"
    write_session(sessions, session_name(1), events, ended=late)
    (decision,) = (await index.decisions(DecisionQuery(), NOW)).decisions
    assert decision.subject == "Do it well"


async def test_an_unfinished_last_line_is_read_when_it_is_whole(index: SqliteAuditIndex, sessions: Path) -> None:
    whole = write_session(sessions, session_name(1), task_events("T-1"))
    journal = sessions / session_name(1) / "journal.jsonl"
    journal.write_bytes(whole[:-10])
    page = await index.query(AuditQuery(), NOW)
    assert (page.total, page.problems) == (0, ())
    journal.write_bytes(whole)
    assert await tasks(index) == ["T-1"]


async def test_another_journal_under_the_same_name_is_read_from_its_start(
    index: SqliteAuditIndex, sessions: Path
) -> None:
    write_session(sessions, session_name(1), task_events("T-1"))
    assert await tasks(index) == ["T-1"]
    write_session(sessions, session_name(1), (*task_events("T-7"), *task_events("T-8"), *task_events("T-9")))
    assert sorted(await tasks(index)) == ["T-7", "T-8", "T-9"]
    write_session(sessions, session_name(1), task_events("T-4"))
    assert await tasks(index) == ["T-4"]
    (sessions / session_name(1) / "journal.jsonl").unlink()
    assert await tasks(index) == []


async def test_a_damaged_journal_is_told_with_its_line_and_hides_no_other(
    index: SqliteAuditIndex, sessions: Path
) -> None:
    write_session(sessions, session_name(1), task_events("T-1"))
    whole = write_session(sessions, session_name(2), (*task_events("T-2"), *task_events("T-3")))
    journal = sessions / session_name(2) / "journal.jsonl"
    lines = whole.splitlines(keepends=True)
    for number in range(len(lines)):
        forged = [line.replace(b"T-", b"X-") if at == number else line for at, line in enumerate(lines)]
        forged[number] = forged[number].replace(b"0.1.0", b"0.1.1").replace(b'"step":1', b'"step":2')
        forged[number] = forged[number].replace(b'"user"', b'"used"').replace(b"2026", b"2025", 1)
        journal.write_bytes(b"".join(forged))
        page = await index.query(AuditQuery(), NOW)
        assert [(each.session, each.problem.partition(":")[0]) for each in page.problems] == [
            (session_name(2), f"line {number + 1}")
        ]
        assert {each.task for each in page.entries} == {"T-1", *(("T-2",) if number > len(lines) // 2 else ())}


async def test_a_line_that_is_changed_after_it_was_read_is_found(index: SqliteAuditIndex, sessions: Path) -> None:
    whole = write_session(sessions, session_name(1), task_events("T-1"))
    assert await tasks(index) == ["T-1"]
    journal = sessions / session_name(1) / "journal.jsonl"
    journal.write_bytes(whole.replace(b"0.1.0", b"0.1.1", 1))
    assert (await index.query(AuditQuery(), NOW)).problems
    journal.write_bytes(whole)
    assert (await index.query(AuditQuery(), NOW)).problems == ()
    journal.with_name("other").write_bytes(whole.replace(b"0.1.0", b"0.1.12", 1))
    journal.with_name("other").replace(journal)
    assert (await index.query(AuditQuery(), NOW)).problems, "another file, and longer"


@pytest.mark.parametrize("content", [b"", b"\n", b"no journal\n", b"\xff" * 100 + b"\n", b"{}\n" * 1000])
async def test_what_is_no_journal_is_a_problem(index: SqliteAuditIndex, sessions: Path, content: bytes) -> None:
    (sessions / session_name(1)).mkdir(parents=True)
    (sessions / session_name(1) / "journal.jsonl").write_bytes(content)
    page = await index.query(AuditQuery(), NOW)
    assert (page.total, [each.session for each in page.problems]) == (0, [session_name(1)])


async def test_a_pipe_in_place_of_a_journal_keeps_nobody_waiting(index: SqliteAuditIndex, sessions: Path) -> None:
    (sessions / session_name(1)).mkdir(parents=True)
    os.mkfifo(sessions / session_name(1) / "journal.jsonl")
    assert len((await asyncio.wait_for(index.query(AuditQuery(), NOW), 5)).problems) == 1


async def test_the_journal_of_another_session_does_not_count(index: SqliteAuditIndex, sessions: Path) -> None:
    write_session(
        sessions, session_name(1), (SessionStarted(session_name(2), "/r", BASE, "0.1.0"), *task_events("T-1"))
    )
    page = await index.query(AuditQuery(), NOW)
    assert page.total == 0
    assert "is the journal of session" in page.problems[0].problem


async def test_what_a_fork_has_from_its_parent_counts_once(index: SqliteAuditIndex, sessions: Path) -> None:
    shared = task_events("T-1", dollars=0.5)
    write_session(sessions, session_name(1), shared)
    head = SessionStarted(session_name(2), "/r", BASE, "0.1.0", session_name(1), len(shared))
    write_session(sessions, session_name(2), (head, *shared, SessionForked("0.1.0"), *task_events("T-2", dollars=0.25)))
    assert sorted(await tasks(index)) == ["T-1", "T-2"]
    assert (await index.costs(CostQuery(), NOW)).overall.dollars == 0.75
    assert (await index.decisions(DecisionQuery(), NOW)).total == 2
    (sessions / session_name(1) / "journal.jsonl").unlink()
    assert sorted(await tasks(index)) == ["T-1", "T-2"]
    assert (await index.costs(CostQuery(), NOW)).overall.dollars == 0.75


async def test_a_session_that_a_repository_brought_is_marked(tmp_path: Path, sessions: Path) -> None:
    write_session(sessions, session_name(1), task_events("T-1"))
    index = SqliteAuditIndex(tmp_path / "audit.sqlite", CountingSource(sessions, ours=False))
    (entry,) = (await index.query(AuditQuery(), NOW)).entries
    assert "not begun on this machine" in entry.unproved
    assert (await index.costs(CostQuery(), NOW)).overall.unproved == 1
    assert (await index.decisions(DecisionQuery(), NOW)).decisions[0].unproved == entry.unproved


async def test_a_rebuilt_index_is_the_one_that_grew(tmp_path: Path, sessions: Path, source: CountingSource) -> None:
    grown = SqliteAuditIndex(tmp_path / "grown.sqlite", source)
    for number in range(1, 4):
        for length in (3, 5, 7):
            events = (*task_events(f"T-{number}"), *task_events(f"T-{number}0", TaskStatus.FAILED))
            write_session(sessions, session_name(number), events[: length + number], ended=_at(length + number))
            await grown.query(AuditQuery(), NOW)
    fresh = SqliteAuditIndex(tmp_path / "fresh.sqlite", source)
    for one, other in (
        (await grown.query(AuditQuery(), NOW), await fresh.query(AuditQuery(), NOW)),
        (await grown.decisions(DecisionQuery(), NOW), await fresh.decisions(DecisionQuery(), NOW)),
        (await grown.costs(CostQuery(), NOW), await fresh.costs(CostQuery(), NOW)),
    ):
        assert one == replace(other, notes=())
        assert one.total


def _at(length: int) -> str:
    return f"2026-11-22T11:00:{length:02}.000000Z"
