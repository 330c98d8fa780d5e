"""What stands out in a recording, at which pace it is played, and values had at any place of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.events import Recorded, SessionLeft, UserSaid
from agent_workbench.core.history.replay_marks import (
    MAX_SECONDS,
    MIN_SECONDS,
    SPEEDS,
    MarkKind,
    Marks,
    faster,
    marks_of,
    slower,
    wait_seconds,
)
from agent_workbench.core.state.growing_tuple import STRIDE, FoldSnapshots
from agent_workbench.views.timeline import AFTER, BEFORE, HERE, cell_of, seq_at, view_timeline, with_position
from tests.fakes import runs

STORY = (*runs.up_to_done(), UserSaid("thanks"))
EVENTS = tuple(Recorded(seq, "", event) for seq, event in enumerate(STORY))


def names(kind: MarkKind) -> list[str]:
    return [type(STORY[seq]).__name__ for seq in marks_of(EVENTS).of(kind)]


def test_every_kind_finds_its_events_and_not_what_nobody_looks_for() -> None:
    assert names(MarkKind.DIFF) == ["ActionProposed"] * 2
    assert names(MarkKind.FAILURE) == ["TestsFinished"], "the baseline fails too and is not ours"
    assert names(MarkKind.WORD) == ["UserSaid"]
    assert names(MarkKind.TASK) == ["TaskStarted", "TaskFinished"]
    assert names(MarkKind.COMMIT) == ["TaskCommitted"]
    assert len(names(MarkKind.DECISION)) == sum(name == "ActionDecided" for name in map(kind_name, STORY)) - 2


def kind_name(event: object) -> str:
    return type(event).__name__


def test_beside_is_never_where_one_stands() -> None:
    marks = marks_of(EVENTS)
    first, second = marks.of(MarkKind.DIFF)
    assert marks.nearest(MarkKind.DIFF, first, forward=True) == second
    assert marks.nearest(MarkKind.DIFF, second, forward=False) == first
    assert marks.nearest(MarkKind.DIFF, second, forward=True) is None
    assert marks.nearest(MarkKind.DIFF, first, forward=False) is None


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("2026-11-20T10:15:01.000000Z", 1.0),
        ("2026-11-20T11:15:00.000000Z", MAX_SECONDS),
        ("2026-11-20T10:15:00.000001Z", MIN_SECONDS),
        ("2026-11-20T09:15:00.000000Z", MIN_SECONDS),
        ("no time", MIN_SECONDS),
        ("2026-11-20T10:15:01", MIN_SECONDS),
    ],
)
def test_a_wait_is_what_was_recorded_within_bounds(after: str, seconds: float) -> None:
    assert wait_seconds("2026-11-20T10:15:00.000000Z", after, 1.0) == pytest.approx(seconds)
    assert wait_seconds("2026-11-20T10:15:00.000000Z", after, 4.0) == pytest.approx(seconds / 4)


def test_speeds_end_at_both_ends() -> None:
    assert [faster(speed) for speed in SPEEDS] == [*SPEEDS[1:], SPEEDS[-1]]
    assert [slower(speed) for speed in SPEEDS] == [SPEEDS[0], *SPEEDS[:-1]]


def test_the_timeline_shows_what_matters_most_and_where_we_are() -> None:
    marks = marks_of(EVENTS)
    line = view_timeline(marks, len(EVENTS))
    assert [seq for seq, cell in enumerate(line) if cell and cell[0] == "✗"] == list(marks.of(MarkKind.FAILURE))
    drawn = with_position(line, 7, len(EVENTS))
    assert (drawn[7], drawn[6], drawn[8]) == (HERE, BEFORE, AFTER)
    narrow = view_timeline(marks, 3)
    assert len(narrow) == len(with_position(narrow, 0, len(EVENTS))) == 3
    assert view_timeline(marks, 0) == view_timeline(Marks(), 0) == ()
    assert with_position((), 0, 0) == []


def test_a_kind_that_is_everywhere_is_marked_where_there_is_most_of_it() -> None:
    marks = Marks(1_000, {MarkKind.DIFF: (*range(0, 1_000, 10), *range(500, 520))})
    cells = [at for at, cell in enumerate(view_timeline(marks, 50)) if cell]
    assert cells == [cell_of(510, 1_000, 50)]


@given(st.integers(1, 500), st.integers(2, 200))
def test_each_cell_leads_to_an_event_and_both_ends_are_reached(count: int, cells: int) -> None:
    places = [seq_at(cell, count, cells) for cell in range(cells)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, count - 1)
    if count >= cells:
        assert [cell_of(seq, count, cells) for seq in places] == list(range(cells))


def said(count: int, word: str) -> tuple[Recorded, ...]:
    return tuple(Recorded(seq, "", SessionLeft(f"{word}{seq}")) for seq in range(count))


def grow(before: int, recorded: Recorded) -> int:
    """Return a number that only these events in this order make."""
    return hash((before, recorded.event))


ONE, OTHER = said(4 * STRIDE, "a"), said(3 * STRIDE, "b")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4 * STRIDE)), max_size=8))
def test_a_trail_gives_what_folding_from_the_beginning_gives(places: list[tuple[bool, int]]) -> None:
    trail = FoldSnapshots(0, grow)
    for other, wanted in places:
        events = OTHER if other else ONE
        count = min(wanted, len(events))
        assert trail.at(events, count) == FoldSnapshots(0, grow).at(events[:count])


def test_a_trail_goes_back_in_few_steps() -> None:
    steps: list[int] = []

    def counted(before: int, recorded: Recorded) -> int:
        steps.append(recorded.seq)
        return grow(before, recorded)

    trail = FoldSnapshots(0, counted)
    trail.at(ONE)
    for count in (len(ONE) - 1, 1, STRIDE, 3 * STRIDE + 7):
        steps.clear()
        trail.at(ONE, count)
        assert len(steps) < STRIDE
