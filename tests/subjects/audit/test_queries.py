"""Every query of the SQLite index answers what a plain search of all records answers."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.core.history.audit_records import (
    AuditCost,
    AuditDecision,
    AuditEntry,
    AuditQuery,
    AuditRecord,
    CostKey,
    CostQuery,
    DecisionQuery,
)
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
from tests.fakes.stores import MemoryAuditIndex
from tests.subjects.audit.sessions import NOW, session_name

# Texts that would matter to SQL: quotes, wildcards, characters beyond ASCII.
NAMES = st.sampled_from(["", "shop", "Shop", "sh%p", "'; --", "käse", "user", "policy:any"])
TIMES = st.sampled_from(
    ["2026-11-22T11:00:00.000000Z", "2026-11-21T12:00:00.000000Z", "2026-11-21T12:00:00.000001Z"]
    + [f"2026-{month:02}-03T04:05:06.700000Z" for month in (8, 10, 11)]
)
SESSIONS, LINES, DAYS = st.integers(1, 3).map(session_name), st.integers(0, 6), st.sampled_from([1, 2, 20, 90, 365])
TASKS = st.sampled_from(["T-1", "T-2"]).map(TaskId)
HASH = st.just("0" * 64)
RECORDS: st.SearchStrategy[AuditRecord] = st.one_of(
    st.builds(
        AuditEntry, SESSIONS, TASKS, st.sampled_from(TaskStatus), TIMES, LINES, HASH, NAMES, NAMES, unproved=NAMES
    ),
    st.builds(
        AuditDecision,
        *(SESSIONS, TASKS, st.just(ProposalId("P-1")), st.sampled_from(Permission), st.sampled_from(Verdict), NAMES),
        *(TIMES, LINES, HASH),
        service=NAMES,
        intent=NAMES,
    ),
    st.builds(
        AuditCost,
        *(SESSIONS, TASKS, TIMES, LINES, HASH, NAMES, NAMES, st.integers(0, 9), st.integers(0, 9)),
        dollars=st.sampled_from([0.0, 0.25, 0.5]),
        service=NAMES,
        worker=NAMES,
        unproved=NAMES,
    ),
)
PAGE = {"days": DAYS, "limit": st.integers(1, 4), "offset": st.integers(0, 3)}
TASK_QUERIES = st.builds(AuditQuery, st.sampled_from([None, TaskStatus.DONE, TaskStatus.BLOCKED]), NAMES, NAMES, **PAGE)
DECISION_QUERIES = st.builds(DecisionQuery, NAMES, NAMES, st.sampled_from(["", "T-1"]), NAMES, **PAGE)
KEYS = st.lists(st.sampled_from(CostKey), unique=True).map(tuple)
COST_QUERIES = st.builds(CostQuery, NAMES, st.just(""), KEYS, **PAGE)


@settings(max_examples=15)
@given(st.lists(RECORDS, max_size=20), TASK_QUERIES, DECISION_QUERIES, COST_QUERIES)
def test_answers_are_those_of_a_plain_search(
    records: list[AuditRecord], tasks: AuditQuery, decisions: DecisionQuery, costs: CostQuery
) -> None:
    async def compare(path: Path) -> None:
        plain, index = MemoryAuditIndex(), SqliteAuditIndex(path)
        for each in records:
            assert await plain.add(each) == await index.add(each)
        assert await plain.query(tasks, NOW) == await index.query(tasks, NOW)
        assert await plain.decisions(decisions, NOW) == await index.decisions(decisions, NOW)
        assert await plain.costs(costs, NOW) == await index.costs(costs, NOW)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder) / "audit.sqlite"))
