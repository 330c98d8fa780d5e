"""Contract of `core.ports.audit_index.AuditIndex`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.audit import DatabaseAuditIndex
from agent_workbench.adapters.database.connection import Database
from agent_workbench.core.errors import UsageError
from agent_workbench.core.history.audit_records import (
    AuditCost,
    AuditDecision,
    AuditEntry,
    AuditQuery,
    CostKey,
    CostQuery,
    CostSum,
    DecisionQuery,
)
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.audit_index import AuditIndex
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from tests.fakes.stores import MemoryAuditIndex

NOW = "2026-11-22T12:00:00.000000Z"
SESSION = SessionId("20260102T030405-abc234")
IMPLEMENTATIONS = ("memory", "sqlite", "database")


@pytest.fixture(params=IMPLEMENTATIONS)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AuditIndex]:
    if request.param == "memory":
        yield MemoryAuditIndex()
    elif request.param == "sqlite":
        yield SqliteAuditIndex(tmp_path / "audit.sqlite")
    else:
        async with Database(request.getfixturevalue("migrated_url")) as database:
            yield DatabaseAuditIndex(database, tmp_path.name)


def entry(
    number: int, status: TaskStatus = TaskStatus.DONE, *, ended: str = "", service: str = "", intent: str = ""
) -> AuditEntry:
    ended = ended or f"2026-11-22T11:{number:02}:00.000000Z"
    return AuditEntry(SESSION, TaskId(f"T-{number}"), status, ended, number, "0" * 64, service, intent)


def decision(number: int, by: str = "user", *, service: str = "", task: str = "T-1") -> AuditDecision:
    return AuditDecision(
        *(SESSION, TaskId(task), ProposalId(f"P-{number}"), Permission.COMMIT, Verdict.APPROVE, by),
        *(f"2026-11-22T11:{number:02}:00.000000Z", number, "0" * 64),
        service=service,
    )


def cost(
    number: int, endpoint: str = "local", *, day: int = 22, service: str = "", dollars: float = 0.0, worker: str = ""
) -> AuditCost:
    time = f"2026-11-{day}T10:{number:02}:00.000000Z"
    return AuditCost(
        *(SESSION, TaskId("T-1"), time, number, "0" * 64, endpoint, "m", 100, 10, dollars, service), worker=worker
    )


async def tasks(index: AuditIndex, query: AuditQuery) -> list[str]:
    return [each.task for each in (await index.query(query, NOW)).entries]


class TestAuditIndex:
    """Every query returns exactly what fits it, and says how much fits in all."""

    async def test_an_empty_index_answers(self, index: AuditIndex) -> None:
        page = await index.query(AuditQuery(), NOW)
        assert (page.entries, page.total) == ((), 0)

    async def test_the_newest_comes_first_and_pages_do_not_overlap(self, index: AuditIndex) -> None:
        for number in (2, 4, 1, 3):
            assert await index.add(entry(number))
        assert await tasks(index, AuditQuery()) == ["T-4", "T-3", "T-2", "T-1"]
        assert await tasks(index, AuditQuery(limit=3)) == ["T-4", "T-3", "T-2"]
        assert await tasks(index, AuditQuery(limit=3, offset=3)) == ["T-1"]
        assert (await index.query(AuditQuery(limit=1), NOW)).total == 4

    async def test_entries_of_one_moment_have_an_order(self, index: AuditIndex) -> None:
        for number in (3, 1, 2):
            await index.add(entry(number, ended="2026-11-22T11:00:00.000000Z"))
        assert await tasks(index, AuditQuery()) == ["T-1", "T-2", "T-3"]

    async def test_the_same_entry_twice_is_one(self, index: AuditIndex) -> None:
        assert await index.add(entry(1))
        assert not await index.add(entry(1, TaskStatus.FAILED))
        assert (await index.query(AuditQuery(), NOW)).entries == (entry(1),)

    async def test_filters_are_combined(self, index: AuditIndex) -> None:
        wanted = entry(1, TaskStatus.FAILED, service="shop", intent="code")
        for each in (
            wanted,
            entry(2, TaskStatus.FAILED, service="shop", intent="infra"),
            entry(3, TaskStatus.FAILED, service="till", intent="code"),
            entry(4, service="shop", intent="code"),
        ):
            await index.add(each)
        found = await index.query(AuditQuery(TaskStatus.FAILED, "shop", "code"), NOW)
        assert (found.entries, found.total) == ((wanted,), 1)

    async def test_days_count_back_from_now(self, index: AuditIndex) -> None:
        await index.add(entry(1, ended="2026-11-20T12:00:00.000001Z"))
        await index.add(entry(2, ended="2026-11-20T11:59:59.999999Z"))
        assert await tasks(index, AuditQuery(days=2)) == ["T-1"]

    @pytest.mark.parametrize(
        "query",
        [
            AuditQuery(limit=0),
            AuditQuery(limit=1001),
            AuditQuery(days=0),
            AuditQuery(days=366),
            AuditQuery(TaskStatus.FAILED, days=91),
            AuditQuery(offset=-1),
        ],
        ids=str,
    )
    async def test_what_is_out_of_bounds_is_refused(self, index: AuditIndex, query: AuditQuery) -> None:
        with pytest.raises(UsageError):
            await index.query(query, NOW)

    async def test_a_rebuilt_index_holds_what_it_was_given_and_no_more(self, index: AuditIndex) -> None:
        await index.add(entry(1))
        await index.rebuild([entry(2), entry(3)])
        assert await tasks(index, AuditQuery()) == ["T-3", "T-2"]

    async def test_decisions_are_found_by_who_task_and_service(self, index: AuditIndex) -> None:
        mine, ruled, other = decision(1), decision(2, "policy:commit=auto", service="shop"), decision(3, task="T-2")
        for each in (mine, ruled, other):
            assert await index.add(each)
        assert not await index.add(replace(mine, by="policy:forged"))

        async def found(query: DecisionQuery) -> tuple[AuditDecision, ...]:
            return (await index.decisions(query, NOW)).decisions

        assert await found(DecisionQuery()) == (other, ruled, mine)
        assert await found(DecisionQuery(by="user")) == (other, mine)
        assert await found(DecisionQuery(by="policy:%")) == ()
        assert await found(DecisionQuery(service="shop")) == (ruled,)
        assert await found(DecisionQuery(task="T-2")) == (other,)
        page = await index.decisions(DecisionQuery(limit=1, offset=1), NOW)
        assert (page.decisions, page.total) == ((ruled,), 3)

    async def test_costs_are_summed_by_what_is_asked_for(self, index: AuditIndex) -> None:
        for each in (
            cost(1, worker="box"),
            cost(2, "cloud", dollars=0.5),
            cost(3, "cloud", dollars=0.25, service="shop"),
            cost(4, day=21),
        ):
            assert await index.add(each)
        page = await index.costs(CostQuery(by=(CostKey.DAY, CostKey.ENDPOINT)), NOW)
        assert page.sums == (
            CostSum("2026-11-22", "cloud", answers=2, prompt_tokens=200, answer_tokens=20, dollars=0.75),
            CostSum("2026-11-22", "local", answers=1, prompt_tokens=100, answer_tokens=10),
            CostSum("2026-11-21", "local", answers=1, prompt_tokens=100, answer_tokens=10),
        )
        assert (page.total, page.overall) == (3, CostSum("", "", "", "", "", 4, 400, 40, 0.75))
        by_all = await index.costs(CostQuery(limit=1), NOW)
        assert by_all.total == 4
        assert by_all.sums == (
            CostSum("2026-11-22", "cloud", "m", answers=1, prompt_tokens=100, answer_tokens=10, dollars=0.5),
        )
        shop = await index.costs(CostQuery(service="shop", by=(CostKey.SERVICE,)), NOW)
        assert shop.sums == (CostSum(service="shop", answers=1, prompt_tokens=100, answer_tokens=10, dollars=0.25),)

    async def test_costs_count_whole_days_of_utc(self, index: AuditIndex) -> None:
        for each in (cost(1, day=22), replace(cost(2), time="2026-11-21T00:00:00.000000Z"), cost(3, day=20)):
            await index.add(each)
        assert (await index.costs(CostQuery(days=1), NOW)).overall.answers == 1
        assert (await index.costs(CostQuery(days=2), NOW)).overall.answers == 2
        await index.add(replace(cost(4), answers=5, unproved="forged"))
        overall = (await index.costs(CostQuery(days=1), NOW)).overall
        assert (overall.answers, overall.unproved) == (6, 5)

    async def test_costs_of_one_line_differ_in_endpoint_or_model(self, index: AuditIndex) -> None:
        assert await index.add(cost(1))
        assert await index.add(cost(1, "other"))
        assert not await index.add(cost(1))
        assert (await index.costs(CostQuery(), NOW)).overall.answers == 2

    async def test_an_index_without_costs_sums_to_nothing(self, index: AuditIndex) -> None:
        page = await index.costs(CostQuery(), NOW)
        assert (page.sums, page.total, page.overall) == ((), 0, CostSum())

    @pytest.mark.parametrize("query", [DecisionQuery(days=366), DecisionQuery(limit=0)], ids=str)
    async def test_decisions_have_the_same_bounds(self, index: AuditIndex, query: DecisionQuery) -> None:
        with pytest.raises(UsageError):
            await index.decisions(query, NOW)

    @pytest.mark.parametrize("query", [CostQuery(days=0), CostQuery(limit=1001), CostQuery(offset=-1)], ids=str)
    async def test_costs_have_the_same_bounds(self, index: AuditIndex, query: CostQuery) -> None:
        with pytest.raises(UsageError):
            await index.costs(query, NOW)
