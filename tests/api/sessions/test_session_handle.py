"""Every reader of a session's events gets all of them once and in order, however slow it is."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.api.sessions.session_handle import KEPT_EVENTS, EventFeed
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import ActionRejected, Recorded


class Recording:
    """A journal that is written while it is read."""

    def __init__(self, length: int = 0) -> None:
        self.events: list[Recorded] = []
        self.reads = 0
        self.feed = EventFeed()
        self._write(length)

    def begin(self) -> "Recording":
        self.feed.begin(len(self.events) - 1, self.read)
        return self

    def record(self, count: int) -> None:
        for recorded in self._write(count):
            self.feed.add(recorded)

    def _write(self, count: int) -> list[Recorded]:
        first = len(self.events)
        new = [Recorded(seq, "t", ActionRejected(seq, "no"), f"h{seq}") for seq in range(first, first + count)]
        self.events += new
        return new

    async def read(self) -> Sequence[Recorded]:
        self.reads += 1
        await asyncio.sleep(0)
        return tuple(self.events)


async def numbers(feed: EventFeed, after_seq: int = -1) -> list[int]:
    return [recorded.seq async for recorded in feed.events(after_seq)]


async def test_what_was_recorded_before_comes_first_then_what_is_recorded() -> None:
    recording = Recording(5).begin()
    reading = asyncio.create_task(numbers(recording.feed, 1))
    for _ in range(10):
        await asyncio.sleep(0)
    recording.record(3)
    recording.feed.end()
    assert await reading == [2, 3, 4, 5, 6, 7]
    assert recording.reads == 1
    assert recording.feed.opened_seq == 4


async def test_a_reader_waits_for_a_session_that_is_not_open_yet() -> None:
    recording = Recording()
    reading = asyncio.create_task(numbers(recording.feed))
    await asyncio.sleep(0)
    assert not reading.done()
    recording.begin().record(2)
    recording.feed.end()
    assert await reading == [0, 1]


async def test_one_that_was_never_opened_has_no_events() -> None:
    feed = EventFeed()
    feed.end()
    assert await numbers(feed) == []


async def test_a_reader_that_fell_behind_what_is_kept_reads_the_journal() -> None:
    recording = Recording().begin()
    events = recording.feed.events(-1)
    recording.record(1)
    assert (await anext(events)).seq == 0
    recording.record(3 * KEPT_EVENTS)
    recording.feed.end()
    assert [recorded.seq async for recorded in events] == list(range(1, 3 * KEPT_EVENTS + 1))
    assert recording.reads == 1
    assert len(recording.feed._recent) == KEPT_EVENTS


async def test_a_number_that_is_not_recorded_yet_is_waited_for() -> None:
    recording = Recording(2).begin()
    reading = asyncio.create_task(numbers(recording.feed, 3))
    await asyncio.sleep(0)
    recording.record(4)
    recording.feed.end()
    assert await reading == [4, 5]


async def test_a_journal_that_lost_an_event_is_an_error_and_no_endless_loop() -> None:
    recording = Recording(3).begin()
    recording.events.clear()
    with pytest.raises(JournalError, match="no event 0"):
        await numbers(recording.feed)


@settings(max_examples=60)
@given(
    before=st.integers(0, 30),
    bursts=st.lists(st.integers(0, 2 * KEPT_EVENTS), max_size=5),
    readers=st.lists(st.integers(-1, 40), min_size=1, max_size=4),
)
def test_no_reader_misses_or_repeats_an_event(before: int, bursts: list[int], readers: list[int]) -> None:
    async def check() -> None:
        recording = Recording(before).begin()
        reading = [asyncio.create_task(numbers(recording.feed, after_seq)) for after_seq in readers]
        for burst in bursts:
            recording.record(burst)
            await asyncio.sleep(0)
        recording.feed.end()
        for after_seq, found in zip(readers, await asyncio.gather(*reading), strict=True):
            assert found == list(range(after_seq + 1, len(recording.events)))

    asyncio.run(check())
