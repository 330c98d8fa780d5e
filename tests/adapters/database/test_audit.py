"""The audit that machines share: what one recorded another reads, and a forged row is marked."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.audit import DatabaseAuditIndex
from agent_workbench.adapters.journal.audit_source import JournalSource
from agent_workbench.adapters.local_machine import SystemIds
from agent_workbench.core.events import Event, SessionStarted
from agent_workbench.core.history.audit_records import AuditEntry, AuditQuery, CostQuery, DecisionQuery
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.subjects.audit.calls import NOT_THERE, JournalProofs, copy_records
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from tests.adapters.database.machines import Machine
from tests.subjects.audit.sessions import BASE, task_events

NOW = "2026-11-22T12:00:00.000000Z"
TIME = "2026-11-22T11:00:00.000000Z"


class Fleet:
    """Two machines; `one` records, `two` asks."""

    def __init__(self, folder: Path, url: str) -> None:
        self.one, self.two = (Machine(folder / name, url, folder.name, SystemIds()) for name in ("one", "two"))

    async def record(self, *events: Event) -> SessionId:
        """Record a session on machine one and copy it, with its audit."""
        store = self.one.store()
        held = await store.open(SessionQuery(fresh=True))
        started = SessionStarted(held.id, "/r", BASE, "0.1.0")
        for seq, event in enumerate((started, *events)):
            await held.journal.append(seq, TIME, event)
        await held.journal.close()
        await store.close()
        await self.copy()
        return held.id

    async def copy(self) -> None:
        source = JournalSource(self.one.folder / "repo", lambda _: True)
        local = SqliteAuditIndex(self.one.folder / "audit.sqlite", source)
        await copy_records(source, DatabaseAuditIndex(self.one.database, self.one.repository), await local.heads())

    def asked(self, machine: Machine) -> DatabaseAuditIndex:
        return DatabaseAuditIndex(machine.database, machine.repository, JournalProofs(machine.store()))

    async def forge(self, statement: str) -> None:
        async with self.one.database.connection() as connection:
            await connection.execute(statement)


@pytest.fixture
async def fleet(tmp_path: Path, migrated_url: str) -> AsyncIterator[Fleet]:
    fleet = Fleet(tmp_path, migrated_url)
    yield fleet
    await asyncio.gather(fleet.one.close(), fleet.two.close())


async def test_another_machine_answers_what_this_one_recorded_and_proves_it(fleet: Fleet) -> None:
    session = await fleet.record(*task_events("T-1", TaskStatus.FAILED, service="shop", dollars=0.5, reason="red"))
    for machine in (fleet.one, fleet.two):
        index = fleet.asked(machine)
        page = await index.query(AuditQuery(TaskStatus.FAILED, "shop"), NOW)
        (entry,) = page.entries
        assert (entry.session, entry.task, entry.reason, entry.unproved) == (session, "T-1", "red", "")
        (decision,) = (await index.decisions(DecisionQuery(by="user"), NOW)).decisions
        assert (decision.via, decision.unproved) == ("ada in a shell at 12:00", "")
        overall = (await index.costs(CostQuery(), NOW)).overall
        assert (overall.answers, overall.dollars, overall.unproved) == (1, 0.5, 0)
        assert (page.notes, page.problems) == ((), ())


async def test_what_was_copied_is_not_copied_again_and_what_is_new_is(fleet: Fleet) -> None:
    await fleet.record(*task_events("T-1"), *task_events("T-2", dollars=0.25))
    await fleet.copy()
    index = fleet.asked(fleet.two)
    assert (await index.query(AuditQuery(), NOW)).total == 2
    assert (await index.costs(CostQuery(), NOW)).overall.dollars == 0.25
    await fleet.record(*task_events("T-3"))
    assert (await fleet.asked(fleet.two).query(AuditQuery(), NOW)).total == 3


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE agent_audit_records SET record = replace(record, '\"failed\"', '\"done\"')",
        "UPDATE agent_audit_records SET record = replace(record, 'ada in', 'bob in')",
        "UPDATE agent_audit_records SET record = replace(record, 'T-1', 'T-9')",
        "UPDATE agent_lines SET line = replace(line, 'T-1', 'T-9')",
        "UPDATE agent_heads SET signature = ''",
        "UPDATE agent_heads SET worker = 'evil'",
        "DELETE FROM agent_heads",
    ],
)
async def test_a_row_that_no_signed_journal_has_is_marked(fleet: Fleet, forgery: str) -> None:
    await fleet.record(*task_events("T-1", TaskStatus.FAILED))
    await fleet.forge(forgery)
    index = fleet.asked(fleet.two)
    reasons = [each.unproved for each in await _entries(index)]
    reasons += [each.unproved for each in (await index.decisions(DecisionQuery(), NOW)).decisions]
    assert any(reasons)


async def test_a_row_that_was_put_beside_the_others_is_marked(fleet: Fleet) -> None:
    await fleet.record(*task_events("T-1"))
    index = fleet.asked(fleet.two)
    (real,) = (await index.query(AuditQuery(), NOW)).entries
    assert await index.add(replace(real, task=real.task, seq=real.seq + 1, status=TaskStatus.FAILED))
    assert await index.add(replace(real, session=SessionId("20260101T000000-aaaaaa")))
    found = {each.seq if each.session == real.session else -1: each for each in await _entries(index)}
    assert found[real.seq].unproved == ""
    assert found[real.seq + 1].unproved == NOT_THERE
    assert "not proved" in found[-1].unproved
    costs = (await index.costs(CostQuery(), NOW)).overall
    assert costs.unproved == 0


async def _entries(index: DatabaseAuditIndex) -> tuple[AuditEntry, ...]:
    return (await index.query(AuditQuery(), NOW)).entries


async def test_a_row_that_is_no_record_is_a_problem(fleet: Fleet) -> None:
    await fleet.record(*task_events("T-1"), *task_events("T-2"))
    await fleet.forge("UPDATE agent_audit_records SET record = '[' || repeat('[', 7000) WHERE task = 'T-2'")
    page = await fleet.asked(fleet.two).query(AuditQuery(), NOW)
    assert [each.task for each in page.entries] == ["T-1"]
    assert "is no record" in page.problems[0].problem


async def test_sessions_without_records_are_told(fleet: Fleet) -> None:
    await fleet.record(*task_events("T-1"))
    await fleet.forge("DELETE FROM agent_audit_sessions")
    page = await fleet.asked(fleet.two).query(AuditQuery(), NOW)
    assert page.notes == ("1 session has newer events than the shared audit",)
