import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.core import events as e
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.history.replay_marks import MarkKind, wait_seconds
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    ChangeReplaySpeed,
    GoToEvent,
    JumpReplay,
    Leave,
    PlayReplay,
    SeekReplay,
    StartTask,
    StepReplay,
)
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.state.growing_tuple import STRIDE
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine import playback as replay
from agent_workbench.engine.playback import Pace, Playback
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from tests.engine.front import Front
from tests.fakes import runs
from tests.strategies import recorded


def story_of(length: int) -> tuple[e.Recorded, ...]:
    """Return so many events of one run."""
    started = e.TaskStarted(TaskId("T-1"), Task(TaskId("T-1"), "It"), WorkspaceFacts("/w", "b", CommitId("c"), "t"), ())
    events: list[e.Event] = [e.SessionStarted(SessionId("s"), "/r", CommitId("c"), "0"), started]
    events += [e.ActionRejected(number, "no") for number in range(length - 2)]
    return tuple(e.Recorded(seq, f"t{seq}", event, f"h{seq}") for seq, event in enumerate(events))


class Replayed(Playback):
    """A playback with the feed that shows it."""

    def __init__(self, events: Sequence[e.Recorded], *, at: int = 0, pace: Pace = wait_seconds) -> None:
        self.updates = UpdateFeed()
        super().__init__(events, UpdatePublisher(self.updates.publish), at=at, pace=pace)


async def now(session: Replayed) -> SessionUpdate:
    """Return what is shown at this moment."""
    return session.updates.newest


def place(update: SessionUpdate) -> tuple[int, int]:
    assert update.live.replay is not None
    return update.live.replay.seq, update.live.replay.last_seq


async def test_it_opens_at_the_start_or_at_the_end() -> None:
    story = story_of(10)
    assert place(await now(Replayed(story))) == (0, 9)
    assert place(await now(Replayed(story, at=-1))) == (9, 9)
    assert (await now(Replayed(story))).live.decidable is False


async def test_steps_and_seeks_stay_inside() -> None:
    story = story_of(10)
    session = Replayed(story)
    moves: list[tuple[StepReplay | SeekReplay, int]] = [
        (StepReplay(1), 1),
        (StepReplay(3), 4),
        (StepReplay(-2), 2),
        (StepReplay(-100), 0),
        (StepReplay(100), 9),
        (SeekReplay(0.0), 0),
        (SeekReplay(0.5), 4),
        (SeekReplay(1.0), 9),
        (SeekReplay(7.0), 9),
        (SeekReplay(-7.0), 0),
    ]
    for intent, wanted in moves:
        await session.submit(intent)
        update = await now(session)
        assert place(update) == (wanted, 9), intent
        assert update.state == fold_all(story[: wanted + 1])


@settings(max_examples=50)
@given(recorded(20), st.lists(st.integers(-25, 25) | st.floats(0, 1), max_size=8))
@pytest.mark.slow
def test_every_place_shows_what_folding_gives(story: tuple[e.Recorded, ...], moves: list[int | float]) -> None:
    async def check() -> None:
        session = Replayed(story)
        for move in moves:
            await session.submit(StepReplay(move) if isinstance(move, int) else SeekReplay(move))
            update = await now(session)
            seq, last = place(update)
            assert last == len(story) - 1
            assert update.state == fold_all(story[: seq + 1])

    asyncio.run(check())


async def test_an_empty_journal_can_be_opened() -> None:
    session = Replayed(())
    await session.submit(StepReplay(1))
    await session.submit(PlayReplay(playing=True))
    assert (await now(session)).state == SessionState()


def at_once(before: str, after: str, speed: float) -> float:
    del before, after, speed
    return 0.0


async def test_playing_goes_to_the_end_and_stops() -> None:
    story = story_of(30)
    session = Replayed(story, pace=at_once)
    front = Front(LocalSession(session, session.updates, EventFeed()))
    await session.submit(PlayReplay(playing=True))
    ended = await front.until(lambda it: it.live.replay and it.live.replay.seq == 29 and not it.live.replay.playing)
    assert ended.state == fold_all(story)
    await session.submit(PlayReplay(playing=True))
    assert not (await now(session)).live.replay.playing  # type: ignore[union-attr] # a replay always has one


STOPPING = [
    *(PlayReplay(playing=False), StepReplay(1), SeekReplay(0.0), GoToEvent(9)),
    *(JumpReplay(MarkKind.FAILURE), Leave()),
]


@pytest.mark.parametrize("intent", STOPPING)
async def test_whatever_the_user_does_stops_playing(
    intent: PlayReplay | StepReplay | SeekReplay | GoToEvent | JumpReplay | Leave,
) -> None:
    session = Replayed(story_of(5_000), pace=at_once)
    front = Front(LocalSession(session, session.updates, EventFeed()))
    await session.submit(PlayReplay(playing=True))
    await front.until(lambda it: it.live.replay and it.live.replay.seq > 3)
    await session.submit(intent)
    stopped = await now(session)
    assert stopped.live.replay is not None
    assert not stopped.live.replay.playing or stopped.ended
    for _ in range(20):
        await asyncio.sleep(0)
    assert place(await now(session)) == place(stopped)


async def test_leaving_ends_it() -> None:
    session = Replayed(story_of(5))
    await session.submit(Leave())
    await session.run()
    assert [update.ended async for update in session.updates.updates()] == [True]


@pytest.mark.parametrize("intent", [StartTask(), AbortTask(), ApproveProposal(ProposalId("P-1"), "sha")])
async def test_nothing_can_be_decided(intent: StartTask | AbortTask | ApproveProposal) -> None:
    session = Replayed(story_of(5))
    before = await now(session)
    outcome = await session.submit(intent)
    after = await now(session)
    assert isinstance(outcome, Refused)
    assert "this is a replay" in outcome.reason
    assert after.state == before.state
    assert after.live.replay == before.live.replay


class Folds:
    """Counts the folds of a replay."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0

        def counted(state: SessionState, each: e.Recorded) -> SessionState:
            self.count += 1
            return fold(state, each)

        monkeypatch.setattr(replay, "fold", counted)

    def since(self) -> int:
        count, self.count = self.count, 0
        return count


def numbers(last: int) -> Sequence[float]:
    return [0.0, 1.0, 0.5, 0.25, 0.9, 1 / last]


async def test_a_long_session_opens_and_moves_with_few_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    story = story_of(10_000)
    folds = Folds(monkeypatch)
    session = Replayed(story)
    assert folds.since() <= len(story) + STRIDE
    for fraction in numbers(len(story)):
        await session.submit(SeekReplay(fraction))
        assert folds.since() <= STRIDE
    for steps in (1, -1, -64, 300):
        await session.submit(StepReplay(steps))
        assert folds.since() <= STRIDE


async def test_it_opens_at_an_event_and_goes_to_one() -> None:
    story = story_of(10)
    assert place(await now(Replayed(story, at=4))) == (4, 9)
    assert place(await now(Replayed(story, at=400))) == (9, 9)
    session = Replayed(story, at=4)
    await session.submit(GoToEvent(7))
    assert (await now(session)).state == fold_all(story[:8])


async def test_it_jumps_by_kind_and_says_where_there_is_nothing_more() -> None:
    story = tuple(e.Recorded(seq, "", event) for seq, event in enumerate(runs.up_to_reflexion()))
    diffs = [each.seq for each in story if isinstance(each.event, e.ActionProposed) and each.event.proposal.diff]
    session = Replayed(story)
    await session.submit(JumpReplay(MarkKind.DIFF))
    assert place(await now(session))[0] == diffs[0]
    await session.submit(JumpReplay(MarkKind.FAILURE))
    failed = (await now(session)).state
    assert failed.run is not None
    assert failed.run.results is not None
    await session.submit(JumpReplay(MarkKind.DIFF, forward=False))
    assert place(await now(session))[0] == diffs[0]
    assert await session.submit(JumpReplay(MarkKind.DIFF, forward=False)) == Refused("there is no diff before this")


async def test_it_plays_at_the_speed_that_was_chosen() -> None:
    asked: list[float] = []

    def pace(before: str, after: str, speed: float) -> float:
        asked.append(speed)
        return 0.0

    session = Replayed(story_of(3), pace=pace)
    for faster in (True, True, False):
        await session.submit(ChangeReplaySpeed(faster))
    await session.submit(PlayReplay(playing=True))
    await Front(LocalSession(session, session.updates, EventFeed())).until(
        lambda it: it.live.replay and it.live.replay.seq == 2
    )
    assert set(asked) == {2.0}
