"""Sessions side by side: each has its own screens, its own gate and its own end."""

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual._compositor import LayoutUpdate
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import TextArea

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import LockedError, UsageError
from agent_workbench.core.events import ActionProposed
from agent_workbench.core.intents import ApproveProposal, Leave, RejectProposal
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.settings import CallBy
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.notifier import terminal_notification
from tests.fakes import runs
from tests.fakes.scripted_session import FakeClock, ScriptedHost, ScriptedSession
from tests.tui.driver import LARGE, SMALL, Driver, driving
from tests.tui.test_pictures import LARGER, Compare, draw_screen

ANSWERED, DIFF = runs.diff_step(3, runs.RIGHT)
PROPOSED = (*ANSWERED, ActionProposed(DIFF))
LINE = "T-1 ▸ running   new · idle"


def line(bench: Driver) -> str:
    return bench.text().splitlines()[0].strip()


async def test_an_update_that_comes_while_the_app_ends_is_not_shown() -> None:
    session = ScriptedSession(*runs.opening())
    async with driving(session) as bench:
        tab = bench.app.tabs.front
    tab._take(session.notify("too late").newest)
    assert tab.show_newest() is None


async def test_a_tab_that_is_left_before_it_has_its_session_leaves_it_then() -> None:
    late = ScriptedSession(*runs.opening())
    async with driving(ScriptedSession(*runs.opening()), LARGE, others=[late]) as bench:
        mounted, plain = asyncio.Event(), bench.app.switch_mode

        async def switch_slowly(mode: str) -> None:
            await plain(mode)
            await mounted.wait()

        bench.app.switch_mode = switch_slowly  # type: ignore[method-assign,assignment]
        opening = asyncio.create_task(bench.app.tabs.open(SessionRequest(OpenMode.NEW)))
        await bench.until(lambda: len(bench.app.tabs.all) == 2)
        await bench.app.leave("done")
        mounted.set()
        await opening
        await bench.until(lambda: late.intents == [Leave("done")])


@pytest.mark.slow
async def test_a_tab_that_waits_says_so_and_has_a_gate_and_dialogues_of_its_own() -> None:
    other = ScriptedSession(*runs.opening())
    async with driving(ScriptedSession(*runs.up_to_reflexion()), LARGE, others=[other]) as bench:
        first = bench.session
        await bench.press("ctrl+t")
        assert bench.opened == [SessionRequest(OpenMode.NEW)]
        assert line(bench) == LINE
        drawn = bench.app.tabs.all[0].update_shown
        first.record(*PROPOSED)
        await bench.until(lambda: line(bench) == "T-1 ! diff waits   new · idle")
        assert bench.app.tabs.all[0].update_shown is drawn, "a tab behind another is not drawn"
        await bench.press("exclamation_mark")
        assert bench.app.update_shown is first.newest
        await bench.press("a")
        assert "too quick" in bench.text()
        assert first.intents == []
        await bench.press("r")
        assert bench.screen.name == "reason"
        await bench.press("ctrl+pagedown")
        assert bench.screen.name == "workbench"
        await bench.press("comma", *"off by one", "enter")
        assert [type(each) for each in first.intents] == [RejectProposal]
        await bench.look()
        await bench.press("a")
        assert isinstance(first.intents[-1], ApproveProposal)
        assert other.intents == []


async def test_a_tab_is_left_alone_and_the_last_one_ends_the_app() -> None:
    others = [ScriptedSession(*runs.opening()), ScriptedSession(*runs.up_to_done())]
    async with driving(ScriptedSession(*runs.up_to_reflexion()), SMALL, others=others) as bench:
        await bench.press("ctrl+t")
        await bench.press("ctrl+t")
        await bench.press("q")
        await bench.until(lambda: len(bench.app.tabs.all) == 2)
        assert [type(each) for each in others[1].intents] == [Leave]
        assert line(bench) == LINE
        assert bench.app.return_value is None
        await bench.press("full_stop")
        assert bench.app.tabs.front.session is bench.session
        bench.session.intents.clear()
        await bench.press("ctrl+q")
        await bench.until(lambda: bench.app.return_value is not None)
        assert [type(each) for each in (*bench.session.intents, *others[0].intents)] == [Leave, Leave]
        assert bench.app.farewells == ["kept"] * 3


@pytest.mark.slow
async def test_news_of_a_tab_that_went_behind_another_wait_until_it_is_in_front_again() -> None:
    other = ScriptedSession(*runs.opening())
    async with driving(ScriptedSession(*runs.up_to_reflexion()), others=[other]) as bench:
        await bench.press("ctrl+t")
        first, drawn = bench.app.tabs.all[0], bench.app.tabs.all[0].update_shown
        bench.session.record(*PROPOSED)
        await bench.until(lambda: line(bench).startswith("T-1 ! diff"))
        bench.app.post_message(first.Updated(first))  # sent while it was in front, heard when another one is
        await bench.idle()
        assert first.update_shown is drawn
        await bench.press("comma")
        assert first.update_shown is bench.session.newest


async def test_what_keeps_a_session_from_being_opened_is_said() -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion())) as bench:
        await bench.press("full_stop")
        assert "Ctrl-T opens another" in " ".join(bench.text().split())
        bench.app.host = ScriptedHost(error=LockedError("T-1 is in use by pid 7", advice="end it"))
        await bench.press("ctrl+t")
        assert "in use by pid 7" in bench.text()
        assert len(bench.app.tabs.all) == 1


class SlowHost(ScriptedHost):
    """Opens its session when it is told to."""

    def __init__(self, session: ScriptedSession) -> None:
        super().__init__(session)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def open(self, request: SessionRequest) -> SessionHandle:
        """Open the session as soon as `go` is set."""
        self.asked.set()
        await self.go.wait()
        return await super().open(request)


async def test_the_first_frame_shows_the_panes_and_keys_wait_for_the_session() -> None:
    host = SlowHost(ScriptedSession(*runs.up_to_reflexion()))
    app = WorkbenchApp(host, SessionRequest(), clock=FakeClock())
    drawn: list[str] = []

    def draw(screen: Screen[object], shown: object) -> None:
        if isinstance(shown, LayoutUpdate):
            lines = screen._compositor.render_strips()
            drawn.append("\n".join("".join(segment.text for segment in line) for line in lines))

    app._display = draw  # type: ignore[method-assign, assignment]
    async with app.run_test(size=LARGE) as pilot:
        await host.asked.wait()
        assert all(title in drawn[0] for title in ("1 Plan", "2 Steps", "3 Diff", "4 Scratchpad", "5 Retrieved code"))
        assert not app.tabs.all
        app.post_message(events.Key("question_mark", "?"))
        app.post_message(events.MouseDown(None, 3, 38, 0, 0, 1, False, False, False))
        host.go.set()
        while app.screen.name != "help":
            await pilot.pause()
    assert app.tabs.front.session is not None


async def test_words_pasted_before_the_session_is_there_stay_behind_the_keys_before_them() -> None:
    host = SlowHost(ScriptedSession(*runs.opening()))
    app = WorkbenchApp(host, SessionRequest(), clock=FakeClock())
    async with app.run_test(size=LARGE) as pilot:
        await host.asked.wait()
        app.post_message(events.Key("colon", ":"))
        app.post_message(events.Paste("add a test"))
        host.go.set()
        while app.screen.name != "line" or not app.screen.query_one(TextArea).text:
            await pilot.pause()
        assert app.screen.query_one(TextArea).text == "add a test"


async def test_a_first_session_that_cannot_be_opened_ends_the_app() -> None:
    error = UsageError("no session begins with 'x'")
    app = WorkbenchApp(ScriptedHost(error=error), SessionRequest(OpenMode.REPLAY, "x"), clock=FakeClock())
    async with app.run_test() as pilot:
        while app.failure is None:
            await pilot.pause()
    assert app.failure is error
    assert not app.tabs.all


@pytest.mark.parametrize("first", [True, False], ids=["the first", "one beside it"])
async def test_a_session_that_is_opened_while_the_app_ends_is_left_and_gets_no_tab(*, first: bool) -> None:
    late = ScriptedSession(*runs.opening())
    slow = SlowHost(late)
    app = WorkbenchApp(
        slow if first else ScriptedHost(ScriptedSession(*runs.opening())), SessionRequest(), clock=FakeClock()
    )

    plain = app._close_all

    async def close_all() -> None:
        slow.go.set()
        await plain()

    app._close_all = close_all  # type: ignore[method-assign]
    async with app.run_test() as pilot:
        if not first:
            while not app.tabs.all:
                await pilot.pause()
            app.host = slow
            app.simulate_key("ctrl+t")
        await slow.asked.wait()
    assert len(app.tabs.all) == (0 if first else 1)
    assert [type(each) for each in late.intents] == [Leave]


async def test_who_looks_elsewhere_is_called_once_for_each_thing_that_waits() -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion())) as bench:
        rung: list[str] = []
        bench.app.bell = lambda: rung.append("bell")  # type: ignore[method-assign]
        bench.app.write_control = rung.append  # type: ignore[method-assign, assignment]
        bench.app.notifier.moment_seconds = 0.01
        bench.app.notifier.ways = (CallBy.BELL, CallBy.TERMINAL)
        bench.app.post_message(events.AppBlur())
        await bench.record(*PROPOSED)
        await bench.until(lambda: bool(rung))
        assert rung == ["bell", terminal_notification("T-1: diff waits", in_tmux=False)]
        await bench.live(bench.session.newest.live)
        bench.app.post_message(events.AppFocus())
        await bench.record(*runs.applied(DIFF), *runs.tested("P-40", CheckPurpose.AFTER_DIFF, good=True))
        await bench.record(ActionProposed(runs.commit()))
        await bench.until(lambda: bench.app.tabs.front.notified == f"proposal {runs.commit().id}")
        assert len(rung) == 2


def test_a_notification_goes_through_tmux_and_holds_no_other_sequence() -> None:
    assert terminal_notification("x", in_tmux=False) == "\x1b]9;Agent Workbench: x\x07"
    assert terminal_notification("x", in_tmux=True) == "\x1bPtmux;\x1b\x1b]9;Agent Workbench: x\x07\x1b\\"


def test_how_tabs_look(snap_compare: Compare, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    session, other = ScriptedSession(*runs.up_to_reflexion()), ScriptedSession(*runs.up_to_done())

    app = WorkbenchApp(ScriptedHost(session, other), SessionRequest(), clock=FakeClock())

    async def settle(pilot: Pilot[SessionUpdate]) -> None:
        bench = await Driver(app, session, FakeClock(), pilot).idle()
        await bench.press("ctrl+t")
        session.record(*PROPOSED)
        await bench.until(lambda: "diff waits" in bench.text())
        assert not await draw_screen(bench, "tabs", LARGER, pytestconfig, tmp_path)
        await bench.resize(*SMALL)

    assert snap_compare(app, terminal_size=SMALL, run_before=settle)
