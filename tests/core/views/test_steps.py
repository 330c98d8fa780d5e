"""The transcript: the same made event by event or at once, live or read back."""

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.events import Event, Recorded, SessionLeft
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.state import SessionState
from agent_workbench.core.views.steps import Transcript, extend, view_steps
from tests.fakes import runs


def recorded(events: tuple[Event, ...]) -> list[Recorded]:
    return [Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate(events)]


ALL = recorded((*runs.up_to_done(), *runs.started(), *runs.read_step(), SessionLeft("x")))


def test_event_by_event_is_the_same_as_at_once() -> None:
    state, transcript = SessionState(), Transcript()
    for each in ALL:
        state = fold(state, each)
        transcript = extend(transcript, state)
    assert transcript == extend(Transcript(), state)
    assert transcript.entries


@given(st.integers(0, len(ALL)), st.integers(0, len(ALL)))
def test_a_replay_may_go_anywhere(here: int, there: int) -> None:
    before = extend(Transcript(), fold_all(ALL[:here]))
    assert extend(before, fold_all(ALL[:there])).entries == extend(Transcript(), fold_all(ALL[:there])).entries


def test_nothing_new_gives_back_the_same_value() -> None:
    transcript = extend(Transcript(), fold_all(ALL))
    assert extend(transcript, fold_all(ALL)) is transcript


def test_keys_of_entries_are_unique() -> None:
    keys = [entry.key for entry in extend(Transcript(), fold_all(ALL)).entries]
    assert len(set(keys)) == len(keys)


@given(st.text(max_size=60))
def test_a_streaming_answer_of_any_shape_is_shown(text: str) -> None:
    update = SessionUpdate(fold_all(ALL), Live(streaming=Streaming(text, 1, 1.0)))
    assert view_steps(update, Transcript()).unsettled
