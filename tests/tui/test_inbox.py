"""The inbox on the screen: items of other sessions are listed, open in the panes, and are decided there one by one."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import TrustError
from agent_workbench.core.events import ActionProposed, Event, PlanRead
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.inbox import InboxDecision, InboxItem, time_after
from agent_workbench.core.intents import (
    ApproveProposal,
    EditProposal,
    Leave,
    RejectProposal,
    SkipProposal,
)
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.proposed_action import Risk
from agent_workbench.core.session_request import OpenMode, SessionRequest
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, MIDDLE, Driver, driving
from tests.tui.test_pictures import THREE_SIZES, draw_screen

OTHER = SessionId("20261120T091500-zz2345")
THIRD = SessionId("20261120T091600-zz2346")
SINCE = "2026-11-20T07:15:00.000000Z"
Waiting = tuple[InboxItem, ScriptedSession]
ANSWERED, DIFF = runs.diff_step(3, runs.RIGHT)
BASELINE = (*runs.opening(), *runs.started(), ActionProposed(runs.checks("P-1", CheckPurpose.BASELINE)))
DIFF_WAITS = runs.up_to_first_diff()
FOLLOW = SessionRequest(OpenMode.FOLLOW, OTHER)


def waiting(*events: Event, session: SessionId = OTHER, **fields: object) -> Waiting:
    """Return an inbox item for what these events leave at the gate of another session, and that session, followed."""
    header, *behind = events or runs.up_to_first_diff()
    there = ScriptedSession(replace(header, session=session), *behind).as_followed()
    state = there.newest.state
    assert state.waiting is not None
    item = InboxItem(session, TaskId(state.run.task if state.run else ""), state.waiting, SINCE)
    return replace(item, **fields), there


def with_proposal(**changes: object) -> tuple[Event, ...]:
    """Return the events up to the first diff, which is changed."""
    *before, last = runs.up_to_first_diff()
    assert isinstance(last, ActionProposed)
    return (*before, ActionProposed(replace(last.proposal, **changes)))


async def opened(bench: Driver, *keys: str) -> Driver:
    """Open the first item of the inbox, and look at it for a moment."""
    await bench.press("I")
    await bench.until(lambda: "T-1" in bench.text())
    await bench.press(*(keys or ("enter",)))
    await bench.until(lambda: bench.app.tabs.front.followed and bench.app.update_shown is not None)
    return await bench.look()


def decisions(there: ScriptedSession) -> list[type]:
    return [type(each) for each in there.intents]


async def test_the_start_tells_how_many_wait_in_other_sessions() -> None:
    here, there = waiting(session=runs.SESSION), waiting()
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[here, there]) as bench:
        await bench.until(lambda: "1 proposal waits in other sessions; I opens the inbox" in bench.text())


async def test_the_proposal_of_a_session_that_is_still_opening_is_not_counted() -> None:
    here, there = waiting(session=runs.SESSION), waiting()
    session = ScriptedSession()
    async with driving(session, LARGE, waiting=[here, there]) as bench:
        session.record(*runs.up_to_first_diff())
        await bench.until(lambda: "in other sessions" in bench.text())
        assert "1 proposal waits in other sessions" in bench.text()


async def test_what_comes_to_wait_later_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.tui.session.tabs.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("agent_workbench.tui.session.tabs.SHARE", 1)
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        told: list[str] = []
        monkeypatch.setattr(bench.app, "tell", lambda text, *_: told.append(text))
        monkeypatch.setattr(bench.app.notifier, "call", told.append)
        bench.host.waiting = [waiting()]
        await bench.until(lambda: len(told) == 2)
        assert told == ["T-1: diff waits; ! goes to it"] * 2, "on the screen, and for who looks elsewhere"
        bench.host.waiting += [waiting(session=THIRD), waiting(session=SessionId(f"{OTHER[:-1]}7"))]
        await bench.until(lambda: len(told) == 4)
        assert told[-1] == "2 proposals wait in other sessions; I opens the inbox"


async def test_nothing_is_told_where_nothing_waits() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        await bench.press("I")
        await bench.until(lambda: "nothing waits in the sessions of this repository" in bench.text())
        assert "opens the inbox" not in bench.text()
        await bench.press("enter", "o", "I")
        assert bench.screen.name == "workbench"
        assert bench.opened == []
        await bench.press("exclamation_mark")
        assert "nothing else waits for you" in bench.text()


async def test_an_age_in_minutes_does_not_touch_the_risk() -> None:
    item = waiting(risk=Risk.MEDIUM, since="2026-11-20T09:57:00.000000Z")
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[item]) as bench:
        await bench.press("I")
        await bench.until(lambda: "medium 18 min" in bench.text())


async def test_an_item_opens_in_the_panes_and_is_decided_with_the_keys_of_the_gate() -> None:
    item, there = waiting()
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await bench.press("I", "enter")
        await bench.until(lambda: bench.app.tabs.front.followed)
        await bench.idle()
        assert bench.opened == [FOLLOW]
        assert "line.cents + line.quantity" in bench.text()
        await bench.press("a")
        assert "too quick" in bench.text()
        await bench.look()
        there.outcome = Accepted("approved; the session continues")
        await bench.press("a")
        await bench.until(lambda: "approved; the session continues" in bench.text())
        (approval,) = there.intents
        assert isinstance(approval, ApproveProposal)
        assert (approval.proposal, approval.left) == (item.proposal.id, ())


@pytest.mark.slow
async def test_lines_that_were_not_shown_are_shown_before_they_are_approved() -> None:
    many = "".join(f"+line {number}\n" for number in range(200))
    diff = f"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,200 @@\n{many}"
    item, there = waiting(*with_proposal(text=diff, diff=diff, paths=("new.txt",), special=()))
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await opened(bench)
        assert "lines not shown yet" in bench.text()
        await bench.press("a")
        assert not there.intents
        for _ in range(10):
            await bench.look()
            await bench.press("a")
        assert set(decisions(there)) == {ApproveProposal}


async def test_special_paths_are_confirmed_by_a_second_press() -> None:
    item, there = waiting(*with_proposal(special=("shop/cart.py",)))
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await opened(bench)
        await bench.press("a")
        assert "a again: this changes shop/cart.py" in bench.text()
        await bench.press("a")
        assert not there.intents, "the second press counts after a moment only"
        await bench.look()
        await bench.press("a")
        assert decisions(there) == [ApproveProposal]


@pytest.mark.slow
async def test_a_hunk_is_left_out_with_its_reason() -> None:
    diff = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-old\n+new\n" for name in ("a.py", "b.py"))
    item, there = waiting(*with_proposal(text=diff, diff=diff, paths=("a.py", "b.py"), special=()))
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await opened(bench)
        await bench.press("3", "g", "n", "space")
        assert bench.screen.name == "reason"
        bench.screen.query_one(Input).value = "not now"
        await bench.press("enter")
        await bench.press("0")
        await bench.look()
        await bench.press("a")
        (approval,) = there.intents
        assert isinstance(approval, ApproveProposal)
        assert [each.reason for each in approval.left] == ["not now"]
        assert approval.result_sha


@pytest.mark.slow
async def test_a_proposal_is_rejected_with_a_reason_and_checks_are_skipped() -> None:
    rejected, skipped = waiting(), waiting(*BASELINE, session=THIRD)
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[rejected, skipped]) as bench:
        await opened(bench)
        await bench.press("s")
        assert not rejected[1].intents, "a diff cannot be skipped"
        await bench.press("r")
        bench.screen.query_one(Input).value = "multiply"
        await bench.press("enter")
        await bench.until(lambda: bench.app.tabs.front.session is skipped[1])
        assert rejected[1].intents[0] == RejectProposal(rejected[0].proposal.id, "multiply")
        await bench.look()
        await bench.press("s")
        assert decisions(skipped[1]) == [SkipProposal]


@pytest.mark.slow
async def test_after_a_decision_the_next_item_takes_its_place() -> None:
    first, second = waiting(), waiting(session=THIRD)
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[first, second]) as bench:
        await opened(bench)
        await bench.press("a")
        await bench.until(lambda: bench.app.tabs.front.session is second[1])
        await bench.until(lambda: len(bench.app.tabs.all) == 2)
        assert decisions(first[1]) == [ApproveProposal, Leave]
        await bench.press("a")
        assert "too quick" in bench.text(), "the key that approved the first does not approve the second"
        await bench.look()
        await bench.press("a")
        await bench.idle()
        assert decisions(second[1]) == [ApproveProposal]
        assert bench.app.tabs.front.session is second[1], "after the last one it shows how the session goes on"


@pytest.mark.slow
async def test_a_refused_decision_says_why_and_stays() -> None:
    first, second = waiting(), waiting(session=THIRD)
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[first, second]) as bench:
        first[1].outcome = Refused("P-3 was decided already")
        await opened(bench)
        await bench.press("a")
        await bench.until(lambda: "P-3 was decided already" in bench.text())
        assert bench.app.tabs.front.session is first[1]


@pytest.mark.slow
async def test_the_key_goes_from_item_to_item_and_round_again() -> None:
    first, second = waiting(), waiting(session=THIRD)
    async with driving(ScriptedSession(*runs.up_to_reflexion()), LARGE, waiting=[first, second]) as bench:
        bench.session.record(*ANSWERED, ActionProposed(DIFF))
        await bench.idle()
        here = bench.app.tabs.front
        seen = []
        for _ in range(3):
            await bench.press("exclamation_mark")
            await bench.idle()
            seen.append(bench.app.tabs.front.session)
        assert seen == [first[1], second[1], here.session]
        await bench.until(lambda: len(bench.app.tabs.all) == 1)
        assert decisions(first[1]) == [Leave], "an item that is passed over leaves no tab behind"


async def test_an_item_that_waits_in_a_tab_opens_no_second_one() -> None:
    here = waiting(session=runs.SESSION)
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE, waiting=[here]) as bench:
        await bench.press("I")
        await bench.until(lambda: "high" in bench.text() or "low" in bench.text())
        await bench.press("enter")
        assert bench.opened == []
        assert bench.screen.name == "workbench"


async def test_a_repository_without_trust_has_its_tabs_to_go_to() -> None:
    other = ScriptedSession(*runs.opening())
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE, others=[other]) as bench:
        await bench.press("ctrl+t")

        bench.host.refusal = TrustError("this repository is not trusted")
        await bench.press("exclamation_mark")
        assert bench.app.tabs.front.session is bench.session


@pytest.mark.slow
async def test_nothing_but_the_proposal_can_be_decided_in_a_followed_session() -> None:
    item, there = waiting()
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await opened(bench)
        for key in ("e", "E", "A", "X", "u", "colon", "shift+tab", "p"):
            await bench.press("0", key)
            assert bench.screen.name == "workbench", key
        assert not [each for each in there.intents if isinstance(each, EditProposal)]
        assert "only followed" in " ".join(bench.text().split())


async def test_a_decision_waits_for_whoever_goes_on_and_the_session_can_be_opened_here() -> None:
    item, there = waiting()
    decided = InboxDecision(item.reference, Verdict.APPROVE) if item.reference is not None else None
    there.as_followed(decided=decided)
    itself = ScriptedSession(*runs.opening())
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)], others=[itself]) as bench:
        await opened(bench)
        assert "the next `agent run` goes on with it" in bench.text()
        await bench.press("0", "a")
        assert not there.intents, "it is decided"
        await bench.press("enter")
        await bench.until(lambda: bench.app.tabs.front.session is itself)
        assert bench.opened[-1] == SessionRequest(session=OTHER)
        await bench.until(lambda: decisions(there) == [Leave])


@pytest.mark.slow
async def test_what_the_session_does_next_is_followed() -> None:
    item, there = waiting()
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await opened(bench)
        there.record(*runs.applied(item.proposal)).as_followed(holder="pid 7")
        await bench.idle()
        assert "working" in bench.text()
        assert "in pid 7" in bench.text()


async def test_a_session_that_ends_while_it_is_followed_closes_its_tab() -> None:
    item, there = waiting()
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await opened(bench)
        there.end("its journal is gone")
        await bench.until(lambda: len(bench.app.tabs.all) == 1)
        await bench.until(lambda: "its journal is gone" in " ".join(bench.text().split()))


async def test_a_proposal_that_is_too_long_is_opened_in_its_session() -> None:
    item, there = waiting(*with_proposal(diff="+" + "x" * 4_000_000))
    async with driving(
        ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)], others=[ScriptedSession()]
    ) as bench:
        assert item.reference is None
        await bench.press("I")
        await bench.until(lambda: "too long to be shown" in bench.text())
        await bench.press("o")
        assert bench.host.requests[-1] == SessionRequest(session=OTHER)


async def test_what_is_foreign_in_the_inbox_is_shown_as_text() -> None:
    item, there = waiting(
        *with_proposal(paths=("\x1b]0;own\x07[@click=app.quit]x[/]",)), source="\x1b]52;c;AAAA\x07gitea:a/b#7[/]"
    )
    async with driving(ScriptedSession(*runs.opening()), LARGE, waiting=[(item, there)]) as bench:
        await bench.press("I")
        await bench.until(lambda: "T-1" in bench.text())
        assert "[@click=app.quit]x[/]" in bench.text()
        assert "gitea:a/b#7[/]" in bench.text()
        assert "\x1b" not in bench.text()


@pytest.mark.slow
async def test_how_the_inbox_looks(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    ids = [SessionId(f"{OTHER[:-1]}{letter}") for letter in "abcde"]
    queued = (
        replace(each, path="tasks/queue/default/q.yaml") if isinstance(each, PlanRead) else each for each in DIFF_WAITS
    )
    five = [
        waiting(*queued, session=ids[0], risk=Risk.HIGH, source="gitea:ada/shop#7"),
        waiting(*runs.up_to_commit(), session=ids[1], risk=Risk.MEDIUM, since="2026-11-18T07:15:00.000000Z"),
        waiting(*BASELINE, session=ids[2], holder="pid 41"),
        waiting(session=ids[3], expires=time_after(SINCE, 8 * 3_600)),
        waiting(session=ids[4]),
    ]
    last = five[-1][0]
    assert last.reference is not None
    five[0][1].as_followed(about=("high risk", "from gitea:ada/shop#7", "rejected by itself in 5 h"))
    five[-1] = (replace(last, decided=InboxDecision(last.reference, Verdict.APPROVE)), five[-1][1])
    async with driving(ScriptedSession(*runs.opening()), THREE_SIZES[0][0], waiting=five) as bench:
        await bench.until(lambda: "opens the inbox" in bench.text())
        bench.app.clear_notifications()
        await bench.until(lambda: "opens the inbox" not in bench.text())
        await bench.press("I")
        await bench.until(lambda: "commit" in bench.text().lower())
        wrong = await draw_screen(bench, "inbox", THREE_SIZES, pytestconfig, tmp_path)
        await bench.press("enter")
        await bench.until(lambda: bench.app.tabs.front.followed)
        await bench.look()
        wrong += await draw_screen(bench, "inbox_item", THREE_SIZES, pytestconfig, tmp_path)
        decided = five[0][1].as_followed(decided=five[-1][0].decided)
        await bench.until(lambda: bench.app.update_shown is decided.newest)
        wrong += await draw_screen(bench, "inbox_decided", THREE_SIZES, pytestconfig, tmp_path)
        assert not wrong, wrong


async def test_how_an_empty_inbox_looks(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    async with driving(ScriptedSession(*runs.opening()), MIDDLE) as bench:
        await bench.press("I")
        await bench.until(lambda: "nothing waits in the sessions" in bench.text())
        wrong = await draw_screen(bench, "inbox_empty", THREE_SIZES[:2], pytestconfig, tmp_path)
        assert not wrong, wrong
