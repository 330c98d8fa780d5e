"""The audit on screen: its views and filters, and the session of a record."""

import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest
from msgspec import field

from agent_workbench.core.errors import StorageError
from agent_workbench.core.history.audit_records import (
    AnyPage,
    AnyQuery,
    AuditDecision,
    AuditEntry,
    AuditPage,
    AuditProblem,
    AuditQuery,
    CostPage,
    CostQuery,
    CostSum,
    DecisionPage,
    DecisionQuery,
)
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.settings import Permission
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, driving
from tests.tui.test_pictures import THREE_SIZES, draw_screen
from tests.tui.test_sessions import FORKED, PARENT, GivenSessions, forked

WITHOUT = "agent_workbench.subjects.audit"
HOSTILE = "\x1b]52;c;x\x07[bold]the checks fail[/bold]"
FAILED = AuditEntry(
    PARENT, TaskId("T-1"), TaskStatus.FAILED, "2026-11-20T11:00:00.000000Z", 52, "a" * 64, "shop", "code", HOSTILE
)
DONE = AuditEntry(
    *(FORKED, TaskId("T-2"), TaskStatus.DONE, "2026-11-20T10:00:00.000000Z", 48, "b" * 64, "shop", "infra"),
    commit="0123456789abcdef",
    worker="gpu-1",
    unproved="its journal is not proved",
)
DECIDED = AuditDecision(
    *(PARENT, TaskId("T-1"), ProposalId("P-1"), Permission.COMMIT, Verdict.APPROVE, "user"),
    *("2026-11-20T10:59:00.000000Z", 40, "c" * 64, "ada in a shell at 10:59"),
    subject="Count the cart",
)
COST = CostSum("2026-11-20", "cloud (http://x)", "big", "shop", "gpu-1", 3, 41_000, 900, 0.25)


class GivenAudit(GivenSessions):
    """Answers with the same pages; keeps the queries."""

    queries: list[AnyQuery] = field(default_factory=list)
    broken: bool = False

    async def audit(self, query: AnyQuery) -> AnyPage:
        self.queries.append(query)
        if self.broken:
            raise StorageError("the cache is gone", advice="make it again")
        match query:
            case AuditQuery():
                found = tuple(each for each in (FAILED, DONE) if query.status in {None, each.status})
                return AuditPage(found, len(found), (AuditProblem(SessionId("x"), "line 7"),), ("a note",))
            case DecisionQuery():
                return DecisionPage((DECIDED,), 120)
            case CostQuery():
                return CostPage((COST,), 1, COST)


async def test_the_views_and_their_filters() -> None:
    past = GivenAudit()
    async with driving(ScriptedSession(*runs.up_to_reflexion()), SMALL, past=past) as bench:
        await bench.press("U")
        await bench.until(lambda: "2 tasks · last 30 d" in bench.text())
        for words in (
            "1 journal damaged",
            "a note",
            "failed T-1 shop/code ␛]52;c;x␇[bold]the",
            "UNPROVED",
        ):
            assert words in bench.text()
        await bench.press("s")
        await bench.until(lambda: "1 task · failed" in bench.text())
        assert "T-2" not in bench.text()
        await bench.press("t", "d", "slash", *"shop", "enter")
        await bench.until(lambda: "service shop · infra · last 90 d" in bench.text())
        assert past.queries[-1] == AuditQuery(TaskStatus.FAILED, "shop", "infra", 90)
        await bench.press("right_square_bracket")
        await bench.until(lambda: "the newest 1 of 120 decisions" in bench.text())
        assert "approved commit Count the cart" in bench.text()
        assert "by user (ada in a shell at 10:59)" in bench.text()
        count = len(past.queries)
        await bench.press("s")
        assert len(past.queries) == count, "decisions have no status"
        assert past.queries[-1:] == [DecisionQuery("shop", "infra", days=90)]
        await bench.press("right_square_bracket")
        await bench.until(lambda: "$0.2500, 41,000 + 900 tokens" in bench.text())
        await bench.press("enter")
        assert bench.screen.name == "audit", "a sum has no session"
        await bench.press("right_square_bracket", "slash")
        await bench.press("escape")
        assert bench.screen.name == "audit"
        await bench.press("escape")
        assert bench.screen.name != "audit"


async def test_a_record_opens_its_session_at_its_event() -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=GivenAudit(), others=[forked()]) as bench:
        await bench.press("U")
        await bench.until(lambda: "2 tasks" in bench.text())
        await bench.press("j", "enter")
        await bench.until(lambda: len(bench.app.tabs.all) == 2)
        assert bench.opened == [SessionRequest(OpenMode.REPLAY, FORKED, 48)]


async def test_an_error_is_shown_and_the_next_filter_asks_again() -> None:
    past = GivenAudit()
    past.broken = True
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=past) as bench:
        await bench.press("U")
        await bench.until(lambda: "the cache is gone: make it again" in bench.text())
        past.broken = False
        await bench.press("d")
        await bench.until(lambda: "2 tasks · last 90 d" in bench.text())


async def test_how_the_audit_looks(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=GivenAudit()) as bench:
        await bench.press("U")
        await bench.until(lambda: "2 tasks" in bench.text())
        assert not await draw_screen(bench, "audit", THREE_SIZES, pytestconfig, tmp_path)


class Wall(MetaPathFinder):
    """Finds no module of the audit: its folder is not installed."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        del path, target
        if name == WITHOUT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


async def test_the_key_of_a_part_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=GivenAudit()) as bench:
        for name in [each for each in sys.modules if each.startswith(WITHOUT)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [Wall(), *sys.meta_path])
        await bench.press("U")
        await bench.until(lambda: "the part audit of agent-workbench is missing here" in bench.text())
        await bench.press("question_mark")
        assert bench.screen.name == "help", "the screen goes on"
