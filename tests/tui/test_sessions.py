"""The sessions of the repo on screen: what is asked of them, and which one is shown next."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import Struct, field
from msgspec.structs import replace
from textual.pilot import Pilot

from agent_workbench.core.errors import TrustError
from agent_workbench.core.history.audit_records import AnyPage, AnyQuery, AuditPage
from agent_workbench.core.history.comparison import ComparedSession, Comparison
from agent_workbench.core.history.journal_proof import JournalProof
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.session.window import AppEnvironment
from tests.fakes import runs
from tests.fakes.scripted_session import FakeClock, ScriptedHost, ScriptedSession
from tests.tui.driver import SMALL, Driver, driving
from tests.tui.test_pictures import LARGER, THREE_SIZES, Compare, draw_screen

T1 = TaskId("T-1")
PARENT, FORKED, BROUGHT = (
    SessionId(name) for name in ("20261120T101500-abc234", "20261120T111500-bcd345", "20261119T101500-cde456")
)


def summary(session: SessionId, status: TaskStatus, **more: object) -> SessionSummary:
    known = {"last": "2026-11-20T11:20:00", "tasks": (T1,), "events": 90, "steps": 7, "tokens": 41_234, "ours": True}
    return SessionSummary(session, status=status, **{**known, **more})  # type: ignore[arg-type]


SUMMARIES = (
    summary(FORKED, TaskStatus.IN_PROGRESS, waits=True, parent=PARENT, parent_seq=36),
    summary(PARENT, TaskStatus.DONE),
    summary(BROUGHT, TaskStatus.FAILED, ours=False, tasks=(T1, TaskId("T-2"))),
)


class GivenSessions(Struct):
    """Implements `core.history.summaries.PastSessions` over what it was given; keeps what was asked."""

    asked: list[tuple[str, SessionId, int | None]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)

    async def summaries(self) -> Sequence[SessionSummary]:
        return SUMMARIES

    async def verify(self, session: SessionId) -> JournalProof:
        if session == BROUGHT:
            return JournalProof(session, 90, "", problems=("line 7: it does not fit",))
        through = 83 if session == PARENT else -1
        return JournalProof(session, 90, "", through=through, by="commit 0123456789")

    async def foresee_fork(self, session: SessionId, at: int | None) -> tuple[str, ...]:
        if session == BROUGHT:
            raise TrustError("session was not begun here", advice="replay it")
        self.asked.append(("foresee", session, at))
        return ("It continues after event 36.", "[b]Files as they were[/b]")

    async def fork(self, session: SessionId, at: int | None) -> SessionId:
        self.asked.append(("fork", session, at))
        return FORKED

    async def export(self, session: SessionId) -> str:
        self.asked.append(("export", session, None))
        return f"session-{session}.md"

    async def compare(self, first: SessionId, second: SessionId) -> Comparison:
        return Comparison(ComparedSession(first), ComparedSession(second), parted=36, step=3, diff=runs.RIGHT)

    async def audit(self, query: AnyQuery) -> AnyPage:
        return AuditPage((), 0)

    async def keep_picture(self, session: SessionId, seq: int, picture: str) -> str:
        self.pictures.append(picture)
        return f"session-{session}-{seq}.svg"


def forked() -> ScriptedSession:
    return ScriptedSession(*runs.up_to_reflexion())


@pytest.mark.slow
async def test_sessions_are_a_tree_that_can_be_proved_exported_and_opened() -> None:
    past = GivenSessions()
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=past, others=[forked()]) as bench:
        await bench.press("S")
        await bench.until(lambda: "parked" in bench.text())
        shown = [line for line in bench.text().splitlines() if "2026112" in line or "20261119T" in line]
        assert [line.count("└") for line in shown] == [0, 1, 0]
        await bench.press("v", "E")
        await bench.until(lambda: f"written to session-{PARENT}.md" in bench.text())
        await bench.press("j", "v")
        await bench.until(lambda: "? not provable: no commit and no checkpoint" in bench.text())
        await bench.press("G", "v")
        await bench.until(lambda: "✗ RED: line 7: it does not fit" in bench.text())
        await bench.press("F")
        await bench.until(lambda: any("not begun here" in each.message for each in bench.app._notifications))
        assert past.asked == [("export", PARENT, None)]
        await bench.press("g", "j", "enter")
        await bench.until(lambda: len(bench.app.tabs.all) == 2)
        assert bench.opened == [SessionRequest(session=FORKED)]
        assert bench.session.intents == []


class OpenElsewhere(GivenSessions):
    """The forked session is open in another process."""

    async def summaries(self) -> Sequence[SessionSummary]:
        return tuple(replace(each, holder="pid 7") if each.id == FORKED else each for each in SUMMARIES)


async def test_a_session_that_is_open_elsewhere_is_followed() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    async with driving(session, past=OpenElsewhere(), others=[forked().as_followed(holder="pid 7")]) as bench:
        await bench.press("S")
        await bench.until(lambda: "pid 7" in bench.text())
        await bench.press("g", "j")
        assert "follow: Enter" in bench.text()
        await bench.press("enter")
        await bench.until(lambda: bench.app.tabs.front.followed)
        assert bench.opened == [SessionRequest(OpenMode.FOLLOW, FORKED)]


class OddSessions(GivenSessions):
    """Sessions whose words fill their columns."""

    async def summaries(self) -> Sequence[SessionSummary]:
        empty = replace(SUMMARIES[1], status=None, tasks=(), steps=12_345, tokens=123_456_789)
        return (empty, replace(SUMMARIES[2], problem="line 1: it does not fit"))


@pytest.mark.parametrize("size", [SMALL, (160, 40)])
async def test_columns_are_parted_whatever_stands_in_them(size: tuple[int, int]) -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=OddSessions()) as bench:
        await bench.resize(*size)
        await bench.press("S")
        await bench.until(lambda: "damaged" in bench.text())
        words = bench.text().split()
        assert {"task", "damaged"} < set(words)
        assert words.count("2026-11-20") == 2
        assert size == SMALL or {"12,345", "steps", "123,456,789", "tokens"} < set(words)


async def test_a_fork_is_asked_about_and_then_shown() -> None:
    past = GivenSessions()
    async with driving(
        ScriptedSession(*runs.up_to_reflexion()).as_replay(seq=90), past=past, others=[forked()]
    ) as bench:
        here = bench.session.newest.state
        await bench.press("F")
        await bench.until(lambda: bench.screen.name == "confirm")
        assert "[b]Files as they were[/b]" in bench.text()
        await bench.look()
        await bench.press("y")
        await bench.until(lambda: len(bench.app.tabs.all) == 2)
        assert past.asked == [("foresee", here.session, here.seq), ("fork", here.session, here.seq)]
        assert bench.opened == [SessionRequest(session=FORKED)]


@pytest.mark.slow
async def test_two_sessions_are_compared_and_the_screen_is_kept_as_a_picture(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    past = GivenSessions()
    async with driving(ScriptedSession(*runs.up_to_reflexion()), past=past) as bench:
        await bench.press("S")
        await bench.until(lambda: "parked" in bench.text())
        await bench.press("g", "=")
        await bench.until(lambda: "marks a session" in bench.text())
        await bench.press("G", "m", "k", "=")
        await bench.until(lambda: bench.screen.name == "comparison")
        shown = bench.text()
        assert "cde456 against bcd345" in shown
        assert "They diverge after event 36, step 3" in shown
        assert "return sum(line.cents * line.quantity" in shown
        await bench.press("ctrl+o")
        await bench.until(lambda: bool(past.pictures))
        assert "They diverge after event 36, step 3" in past.pictures[0]
        assert not await draw_screen(bench, "comparison", THREE_SIZES, pytestconfig, tmp_path)
        await bench.press("=", "j")
        assert bench.screen.name == "sessions"


@pytest.mark.slow
def test_how_the_sessions_look(snap_compare: Compare, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    app = WorkbenchApp(
        ScriptedHost(session), SessionRequest(), clock=FakeClock(), environment=AppEnvironment(GivenSessions())
    )

    async def settle(pilot: Pilot[SessionUpdate]) -> None:
        while app.update_shown is not session.newest:
            await pilot.pause()
        bench = Driver(app, session, FakeClock(), pilot)
        await bench.press("S")
        await bench.until(lambda: "parked" in bench.text())
        await bench.press("v")
        await bench.until(lambda: "0-83 are proved" in bench.text())
        assert not await draw_screen(bench, "sessions", LARGER, pytestconfig, tmp_path)
        await bench.resize(*SMALL)

    assert snap_compare(app, terminal_size=SMALL, run_before=settle)
