import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.core import events as e
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    Leave,
    PlayReplay,
    SeekReplay,
    StartTask,
    StepReplay,
)
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.plan import Task
from agent_workbench.core.state import SessionState
from agent_workbench.core.workspace import WorkspaceFacts
from agent_workbench.engine import replay
from agent_workbench.engine.replay import STRIDE, ReplaySession
from tests.engine.front import Front
from tests.strategies import recorded


def story_of(length: int) -> tuple[e.Recorded, ...]:
    """Return so many events of one run."""
    started = e.TaskStarted(TaskId("T-1"), Task(TaskId("T-1"), "It"), WorkspaceFacts("/w", "b", CommitId("c"), "t"), ())
    events: list[e.Event] = [e.SessionStarted(SessionId("s"), "/r", CommitId("c"), "0"), started]
    events += [e.ActionRejected(number, "no") for number in range(length - 2)]
    return tuple(e.Recorded(seq, f"t{seq}", event, f"h{seq}") for seq, event in enumerate(events))


async def now(session: ReplaySession) -> SessionUpdate:
    """Return what is shown at this moment."""
    return await anext(session.updates())


def place(update: SessionUpdate) -> tuple[int, int]:
    assert update.live.replay is not None
    return update.live.replay.seq, update.live.replay.last_seq


async def test_it_opens_at_the_start_or_at_the_end() -> None:
    story = story_of(10)
    assert place(await now(ReplaySession(story))) == (0, 9)
    assert place(await now(ReplaySession(story, at_end=True))) == (9, 9)
    assert (await now(ReplaySession(story))).live.decidable is False


async def test_steps_and_seeks_stay_inside() -> None:
    story = story_of(10)
    session = ReplaySession(story)
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
def test_every_place_shows_what_folding_gives(story: tuple[e.Recorded, ...], moves: list[int | float]) -> None:
    async def check() -> None:
        session = ReplaySession(story)
        for move in moves:
            await session.submit(StepReplay(move) if isinstance(move, int) else SeekReplay(move))
            update = await now(session)
            seq, last = place(update)
            assert last == len(story) - 1
            assert update.state == fold_all(story[: seq + 1])

    asyncio.run(check())


async def test_an_empty_journal_can_be_opened() -> None:
    session = ReplaySession(())
    await session.submit(StepReplay(1))
    await session.submit(PlayReplay(playing=True))
    assert (await now(session)).state == SessionState()


async def test_playing_goes_to_the_end_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PLAY_SECONDS", 0.0)
    story = story_of(30)
    session = ReplaySession(story)
    front = Front(session)
    await session.submit(PlayReplay(playing=True))
    ended = await front.until(lambda it: it.live.replay and it.live.replay.seq == 29 and not it.live.replay.playing)
    assert ended.state == fold_all(story)
    await session.submit(PlayReplay(playing=True))
    assert not (await now(session)).live.replay.playing  # type: ignore[union-attr] # a replay always has one


@pytest.mark.parametrize("intent", [PlayReplay(playing=False), StepReplay(1), SeekReplay(0.0), Leave()])
async def test_whatever_the_user_does_stops_playing(
    monkeypatch: pytest.MonkeyPatch, intent: PlayReplay | StepReplay | SeekReplay | Leave
) -> None:
    monkeypatch.setattr(replay, "PLAY_SECONDS", 0.0)
    session = ReplaySession(story_of(5_000))
    front = Front(session)
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
    session = ReplaySession(story_of(5))
    await session.submit(Leave())
    assert [update.ended async for update in session.updates()] == [True]


@pytest.mark.parametrize("intent", [StartTask(), AbortTask(), ApproveProposal(ProposalId("P-1"), "sha")])
async def test_nothing_can_be_decided(intent: StartTask | AbortTask | ApproveProposal) -> None:
    session = ReplaySession(story_of(5))
    before = await now(session)
    await session.submit(intent)
    after = await now(session)
    assert "this is a replay" in after.live.notice
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
    session = ReplaySession(story)
    assert folds.since() == 1
    await session.submit(SeekReplay(1.0))
    assert folds.since() <= len(story)
    for fraction in numbers(len(story)):
        await session.submit(SeekReplay(fraction))
        assert folds.since() <= STRIDE
    for steps in (1, -1, -64, 300):
        await session.submit(StepReplay(steps))
        assert folds.since() <= STRIDE
