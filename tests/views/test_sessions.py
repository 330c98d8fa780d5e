"""The line of sessions and what calls for the user, and the tree: forks below what they come from."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.events import TroubleMet
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.live import Followed, Live, PreflightQuestion, SessionUpdate
from agent_workbench.core.plan import TaskStatus
from agent_workbench.views.sessions import (
    TabNotification,
    TabState,
    TabView,
    lay_out_tabs,
    should_notify,
    view_notification,
    view_sessions,
    view_tab,
)
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

ASKED = PreflightQuestion("trust", "Trust what this repo would run?", (), "yes", "no")
CALL = TabNotification("proposal 1", "T-1: diff waits")


def update(*events: object, live: Live | None = None) -> SessionUpdate:
    session = ScriptedSession(*events)  # type: ignore[arg-type] # whatever happened
    return session.show(live).newest if live is not None else session.newest


@pytest.mark.parametrize(
    ("seen", "state", "said"),
    [
        (SessionUpdate(ScriptedSession().newest.state, Live(activity="opening")), TabState.OPENING, ""),
        (SessionUpdate(ScriptedSession().newest.state, Live(question=ASKED)), TabState.WAITS, ASKED.title),
        (update(*runs.opening()), TabState.IDLE, ""),
        (update(*runs.up_to_first_diff()), TabState.WAITS, "T-1: diff waits"),
        (update(*runs.started(), TroubleMet("model", "it\x07 is away", "wait")), TabState.TROUBLE, "trouble: it"),
        (update(*runs.up_to_done()), TabState.DONE, "T-1 is done"),
        (update(*runs.opening(), *runs.started(), live=Live(followed=Followed("pid 7"))), TabState.RUNNING, ""),
        (update(*runs.opening(), *runs.started(), live=Live(followed=Followed())), TabState.STOPPED, ""),
        (ScriptedSession(*runs.up_to_first_diff()).as_replay().newest, TabState.RECORDING, ""),
    ],
)
def test_how_a_session_stands_and_what_it_calls_for(seen: SessionUpdate, state: TabState, said: str) -> None:
    call = view_notification(seen)
    assert view_tab(seen).state is state
    assert said in call.text if call is not None else not said
    assert call is None or call.text.isprintable()


@pytest.mark.parametrize(
    ("told", "focused", "in_front", "wanted"),
    [
        ("", False, True, True),
        ("", False, False, True),
        ("", True, False, False),
        ("", None, True, False),
        ("", None, False, True),
        (CALL.key, False, False, False),
        ("proposal 0", False, True, True),
    ],
)
def test_a_user_is_told_once_and_only_when_looking_elsewhere(
    told: str, focused: bool | None, in_front: bool, wanted: bool
) -> None:
    assert should_notify(CALL, told, focused=focused, in_front=in_front) is wanted
    assert not should_notify(None, told, focused=focused, in_front=in_front)


TABS = tuple(
    TabView(f"T-{n}", TabState.WAITS if n == 5 else TabState.RUNNING, "diff" if n == 5 else "") for n in range(9)
)


def test_tabs_lose_their_words_and_then_those_far_from_the_front() -> None:
    def written(width: int, front: int = 0) -> str:
        placed = lay_out_tabs(TABS, front, width)
        assert all(before.end < after.start for before, after in pairwise(placed))
        assert placed[-1].end <= width
        return "".join(each.text for each in placed)

    assert " T-5 ! diff waits" in written(200)
    assert " T-5 ! " in written(100)
    assert "waits" not in written(100)
    assert " T-8" in written(100)
    assert " T-8" not in written(30)
    assert " T-8 ▸" in written(30, front=8)
    assert lay_out_tabs(TABS, 4, 5)[0].number == 4


def session(name: str, parent: str = "") -> SessionSummary:
    return SessionSummary(
        SessionId(name), parent=SessionId(parent) if parent else None, parent_seq=7 if parent else None
    )


def test_forks_stand_below_what_they_come_from() -> None:
    newest_first = [session("e", "b"), session("d", "a"), session("c"), session("b", "a"), session("a")]
    rows = view_sessions([replace(each, ours=True) for each in newest_first])
    assert [f"{row.branch}{row.summary.id}" for row in rows] == ["c", "a", "└ d", "└ b", "  └ e"]
    assert [row.origin for row in rows] == ["", "", "from event 7", "from event 7", "from event 7"]
    assert view_sessions([session("e", "gone")])[0].origin == "from event 7 of gone"


NAMES = list("abcdefgh")


@given(st.lists(st.sampled_from([*NAMES, "gone", ""]), min_size=len(NAMES), max_size=len(NAMES)))
def test_every_session_is_shown_once(parents: list[str]) -> None:
    summaries = [session(name, parent) for name, parent in zip(NAMES, parents, strict=True)]
    assert sorted(row.summary.id for row in view_sessions(summaries)) == NAMES


WORKED_ON = replace(session("a"), ours=True, events=9, status=TaskStatus.IN_PROGRESS)


@pytest.mark.parametrize(
    ("summary", "state", "takes_up"),
    [
        (WORKED_ON, "stopped", True),
        (replace(WORKED_ON, waits=True), "parked", True),
        (replace(WORKED_ON, waits=True, holder="pid 7"), "waits", False),
        (replace(WORKED_ON, holder="pid 7"), "open", False),
        (replace(WORKED_ON, ours=False), "stopped", False),
        (replace(WORKED_ON, problem="line 2"), "damaged", False),
        (replace(WORKED_ON, status=TaskStatus.DONE), "done", False),
        (replace(WORKED_ON, status=TaskStatus.DONE, waits=True), "done", False),
        (replace(WORKED_ON, status=TaskStatus.FAILED), "failed", False),
        (replace(WORKED_ON, status=None), "no task", True),
        (replace(WORKED_ON, status=None, events=0), "empty", False),
        (replace(WORKED_ON, status=None, events=0, holder="pid 7"), "open", False),
        (replace(WORKED_ON, status=None, chat=True), "stopped", True),
        (replace(WORKED_ON, status=None, chat=True, waits=True), "parked", True),
    ],
)
def test_what_a_session_came_to(summary: SessionSummary, state: str, takes_up: bool) -> None:
    (row,) = view_sessions([summary])
    assert (row.state, row.resumable) == (state, takes_up)


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        (replace(WORKED_ON, tasks=(TaskId("T-1"),), title="Round prices"), "T-1 Round prices"),
        (replace(WORKED_ON, chat=True, title="Where are prices rounded?"), "chat Where are prices rounded?"),
        (replace(WORKED_ON, label="nightly"), "nightly"),
        (replace(WORKED_ON, status=None), ""),
    ],
)
def test_a_session_is_told_in_words(summary: SessionSummary, told: str) -> None:
    (row,) = view_sessions([summary])
    assert row.task == told
