"""Contract of `core.ports.audit_index.AuditIndex`."""

from collections.abc import Callable

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.audit_index import AuditEntry, AuditIndex, AuditQuery
from tests.fakes.stores import MemoryAuditIndex

NOW = "2026-11-22T12:00:00.000000Z"
IMPLEMENTATIONS: dict[str, Callable[[], AuditIndex]] = {"memory": MemoryAuditIndex}


@pytest.fixture(params=IMPLEMENTATIONS)
def index(request: pytest.FixtureRequest) -> AuditIndex:
    return IMPLEMENTATIONS[request.param]()


def entry(
    number: int, status: TaskStatus = TaskStatus.DONE, *, ended: str = "", service: str = "", intent: str = ""
) -> AuditEntry:
    ended = ended or f"2026-11-22T11:{number:02}:00.000000Z"
    session = SessionId("20260102T030405-abc234")
    return AuditEntry(session, TaskId(f"T-{number}"), status, ended, number, "0" * 64, service, intent)


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
