"""The tree of sessions: forks below what they come from, and every session once, whatever journals claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.views.session_tree import view_sessions


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
