"""The inbox on the screen: what waits in other sessions is listed, shown in full, and decided."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from agent_workbench.core.errors import DecisionRefused
from agent_workbench.core.events import Event
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.inbox import InboxChoice, InboxItem, reference_to
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.core.state.session_state import SessionState
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, Driver, driving
from tests.tui.test_pictures import THREE_SIZES, draw_screen

OTHER = SessionId("20261120T091500-zz2345")
SINCE = "2026-11-20T07:15:00.000000Z"
Waiting = tuple[InboxItem, SessionState]


def waiting(*events: Event, session: SessionId = OTHER, **changes: object) -> Waiting:
    """Return an inbox item for what these events leave at the gate of another session, and that session's state."""
    state = replace(ScriptedSession(*events).newest.state, session=session)
    assert state.run is not None
    assert state.run.waiting is not None
    proposal = replace(state.run.waiting, **changes)
    state = replace(state, run=replace(state.run, proposal=proposal))
    return InboxItem(session, TaskId(state.run.task if state.run else ""), proposal, SINCE), state


def reference(item: Waiting) -> object:
    return reference_to(item[0].session, item[0].proposal)


async def opened(bench: Driver) -> Driver:
    """Open the first item of the inbox, and look at it for a moment."""
    await bench.press("I")
    await bench.until(lambda: "T-1" in bench.text())
    await bench.press("enter")
    await bench.until(lambda: bench.screen.name == "inbox-proposal")
    return await bench.look()


async def test_the_start_tells_how_many_wait_in_other_sessions() -> None:
    here, there = waiting(*runs.up_to_first_diff(), session=runs.SESSION), waiting(*runs.up_to_first_diff())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[here, there]) as bench:
        await bench.until(lambda: "1 proposal waits in other sessions; I opens the inbox" in bench.text())


async def test_the_proposal_of_a_session_that_is_still_opening_is_not_counted() -> None:
    here, there = waiting(*runs.up_to_first_diff(), session=runs.SESSION), waiting(*runs.up_to_first_diff())
    session = ScriptedSession()
    async with driving(session, LARGE, waiting=[here, there]) as bench:
        session.record(*runs.up_to_first_diff())
        await bench.until(lambda: "in other sessions" in bench.text())
        assert "1 proposal waits in other sessions" in bench.text()


async def test_nothing_is_told_where_nothing_waits() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        await bench.press("I")
        await bench.until(lambda: "nothing waits in the sessions of this repository" in bench.text())
        assert "opens the inbox" not in bench.text()
        await bench.press("I")
        assert bench.screen.name == "workbench"


async def test_a_proposal_is_approved_as_it_is_shown() -> None:
    item = waiting(*runs.up_to_first_diff())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await opened(bench)
        assert "line.cents + line.quantity" in bench.text()
        await bench.press("a")
        await bench.until(lambda: "approved" in bench.text())
        assert bench.host.decisions == [(reference(item), InboxChoice(Verdict.APPROVE))]
        assert bench.screen.name == "inbox"
        await bench.until(lambda: "nothing waits" in bench.text())


async def test_what_has_only_just_appeared_is_not_approved() -> None:
    item = waiting(*runs.up_to_first_diff())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await bench.press("I")
        await bench.until(lambda: "T-1" in bench.text())
        await bench.press("enter")
        await bench.until(lambda: bench.screen.name == "inbox-proposal")
        await bench.press("a")
        assert "too quick" in bench.text()
        assert not bench.host.decisions


async def test_lines_that_were_not_shown_are_shown_before_they_are_approved() -> None:
    many = "".join(f"+line {number}\n" for number in range(200))
    diff = f"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,200 @@\n{many}"
    item = waiting(*runs.up_to_first_diff(), text=diff, diff=diff, paths=("new.txt",), special=())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await opened(bench)
        assert "lines not shown yet" in bench.text()
        await bench.press("a")
        assert not bench.host.decisions
        for _ in range(10):
            await bench.look()
            await bench.press("a")
        assert bench.host.decisions == [(reference(item), InboxChoice(Verdict.APPROVE))]


async def test_special_paths_are_confirmed_by_a_second_press() -> None:
    item = waiting(*runs.up_to_first_diff(), special=("shop/cart.py",))
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await opened(bench)
        await bench.press("a")
        assert "a again: this changes shop/cart.py" in bench.text()
        assert not bench.host.decisions
        await bench.press("a")
        assert not bench.host.decisions, "the second press counts after a moment only"
        await bench.look()
        await bench.press("a")
        assert bench.host.decisions == [(reference(item), InboxChoice(Verdict.APPROVE, special=True))]


async def test_a_proposal_is_rejected_with_a_reason() -> None:
    item = waiting(*runs.up_to_first_diff())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await opened(bench)
        await bench.press("r", "escape")
        assert bench.screen.name == "inbox-proposal"
        await bench.press("r")
        bench.screen.query_one(Input).value = "multiply"
        await bench.press("enter")
        await bench.until(lambda: bool(bench.host.decisions))
        assert bench.host.decisions == [(reference(item), InboxChoice(Verdict.REJECT, "multiply"))]


async def test_checks_are_skipped_and_diffs_are_not() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[waiting(*runs.up_to_first_diff())]) as bench:
        await opened(bench)
        await bench.press("s")
        assert not bench.host.decisions


async def test_a_refused_decision_says_why() -> None:
    item = waiting(*runs.up_to_first_diff())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        bench.host.refusal = DecisionRefused("P-3 was decided already", advice="`agent inbox` lists what waits")
        await opened(bench)
        await bench.press("a")
        await bench.until(lambda: "P-3 was decided already: `agent inbox` lists what waits" in bench.text())
        assert bench.screen.name == "inbox-proposal"
        bench.host.refusal = None
        await bench.look()
        await bench.press("a")
        await bench.until(lambda: bench.screen.name == "inbox")


async def test_what_was_decided_elsewhere_is_gone_from_the_list_when_its_proposal_is_closed() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[waiting(*runs.up_to_first_diff())]) as bench:
        await opened(bench)
        bench.host.waiting = []
        await bench.press("escape")
        await bench.until(lambda: "nothing waits in the sessions" in bench.text())


async def test_what_no_longer_waits_is_not_shown() -> None:
    item, state = waiting(*runs.up_to_first_diff())
    gone = replace(state, run=replace(state.run, proposal=None)) if state.run is not None else state
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, gone)]) as bench:
        await bench.press("I")
        await bench.until(lambda: "T-1" in bench.text())
        await bench.press("enter")
        await bench.until(lambda: "does not wait any more" in bench.text())
        assert bench.screen.name == "inbox"


async def test_a_proposal_that_is_too_long_is_opened_in_its_session() -> None:
    item = waiting(*runs.up_to_first_diff(), diff="+" + "x" * 4_000_000)
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item], others=[ScriptedSession()]) as bench:
        assert item[0].reference is None
        await bench.press("I")
        await bench.until(lambda: "too long to be shown" in bench.text())
        await bench.press("o")
        assert bench.host.requests[-1] == SessionRequest(session=OTHER)


async def test_what_is_foreign_in_the_inbox_is_shown_as_text() -> None:
    proposal: Proposal = waiting(*runs.up_to_first_diff())[0].proposal
    item = waiting(*runs.up_to_first_diff(), paths=("\x1b]0;own\x07[@click=app.quit]x[/]",), text=proposal.text)
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await bench.press("I")
        await bench.until(lambda: "T-1" in bench.text())
        assert "[@click=app.quit]x[/]" in bench.text()
        assert "\x1b" not in bench.text()


async def test_how_the_inbox_looks(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    items = [waiting(*runs.up_to_first_diff()), waiting(*runs.up_to_commit(), session=SessionId(f"{OTHER[:-1]}6"))]
    async with driving(ScriptedSession(*runs.opening()), THREE_SIZES[0][0], waiting=items) as bench:
        await bench.until(lambda: "opens the inbox" in bench.text())
        bench.app.clear_notifications()
        await bench.until(lambda: "opens the inbox" not in bench.text())
        await bench.press("I")
        await bench.until(lambda: "commit" in bench.text().lower())
        wrong = await draw_screen(bench, "inbox", THREE_SIZES, pytestconfig, tmp_path)
        await bench.press("enter")
        await bench.until(lambda: bench.screen.name == "inbox-proposal")
        await bench.look()
        wrong += await draw_screen(bench, "inbox_proposal", THREE_SIZES, pytestconfig, tmp_path)
        assert not wrong, wrong
