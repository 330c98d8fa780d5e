import asyncio

import pytest
from msgspec import Struct, field

from agent_workbench.core.errors import StorageError
from agent_workbench.core.events import Event, Recorded, RetryAsked, SessionLeft
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.recorder import Recorder
from tests.fakes.ports import TickingClock


class SlowJournal(Struct):
    """`core.ports.stores.Journal` that writes when it is let, or fails."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    lines: list[Recorded] = field(default_factory=list)
    error: StorageError | None = None
    closed_after: int = -1

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        assert seq == len(self.lines)
        self.begun.set()
        await self.go_on.wait()
        if self.error:
            raise self.error
        self.lines.append(Recorded(seq, time, event, f"h{seq}"))
        return self.lines[-1]

    async def close(self) -> None:
        self.closed_after = len(self.lines)


def recorder_on(journal: SlowJournal) -> tuple[Recorder, list[Recorded]]:
    heard: list[Recorded] = []
    recorder = Recorder(journal, TickingClock(), SessionState(), lambda _: None)
    recorder.listeners.append(heard.append)
    return recorder, heard


async def test_the_state_follows_the_journal() -> None:
    journal = SlowJournal()
    recorder, heard = recorder_on(journal)
    first = asyncio.create_task(recorder.record(SessionLeft("lunch")))
    await journal.begun.wait()
    assert recorder.state.seq == -1
    assert not heard
    journal.go_on.set()
    recorded = await first
    assert (recorded.seq, recorded.hash) == (0, "h0")
    assert (recorder.state.seq, recorder.state.left, recorder.state.hash) == (0, "lunch", "h0")
    assert heard == [recorded]


async def test_events_at_once_stand_one_after_the_other() -> None:
    journal = SlowJournal()
    recorder, heard = recorder_on(journal)
    writing = [asyncio.create_task(recorder.record(SessionLeft(f"{number}"))) for number in range(20)]
    journal.go_on.set()
    await asyncio.gather(*writing)
    assert [each.seq for each in heard] == list(range(20))
    assert recorder.state.left == "19"


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_line_on_its_way_is_waited_for_however_often_one_asks_to_stop(times: int) -> None:
    journal = SlowJournal()
    recorder, heard = recorder_on(journal)
    writing = asyncio.create_task(recorder.record(SessionLeft("lunch")))
    await journal.begun.wait()
    for _ in range(times):
        writing.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not writing.done()
    journal.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert recorder.state.left == "lunch"
    assert heard == journal.lines
    await recorder.record(RetryAsked())
    assert recorder.state.seq == 1


async def test_a_line_that_could_not_be_written_changes_nothing() -> None:
    journal = SlowJournal(error=StorageError("the disk is full"))
    journal.go_on.set()
    recorder, heard = recorder_on(journal)
    with pytest.raises(StorageError):
        await recorder.record(SessionLeft("lunch"))
    assert recorder.state == SessionState()
    assert not heard
    journal.error = None
    assert (await recorder.record(RetryAsked())).seq == 0


async def test_closing_waits_for_what_is_being_written() -> None:
    journal = SlowJournal()
    recorder, _ = recorder_on(journal)
    writing = asyncio.create_task(recorder.record(SessionLeft("lunch")))
    await journal.begun.wait()
    closing = asyncio.create_task(recorder.close())
    await asyncio.sleep(0)
    assert journal.closed_after == -1
    journal.go_on.set()
    await asyncio.gather(writing, closing)
    assert journal.closed_after == 1
