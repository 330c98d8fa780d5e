import asyncio
import inspect
from collections.abc import AsyncGenerator

from agent_workbench.api.sessions.session_handle import UpdateFeed
from agent_workbench.core.live import Live, Notice, Running, SessionUpdate, Streaming
from agent_workbench.engine.runtime.publisher import KEPT_NOTICES, UpdatePublisher


async def read_all(feed: UpdateFeed) -> list[SessionUpdate]:
    return [update async for update in feed.updates()]


async def test_a_reader_sees_what_stands_then_what_is_newer_and_the_end() -> None:
    feed = UpdateFeed()
    publisher = UpdatePublisher(feed.publish)
    reading = asyncio.create_task(read_all(feed))
    await asyncio.sleep(0)
    publisher.show_activity("one")
    publisher.show_activity("two")
    for _ in range(3):
        await asyncio.sleep(0)
    publisher.end("bye")
    updates = await reading
    assert [update.live.activity for update in updates] == ["", "two", "two"]
    assert [update.farewell for update in updates] == ["", "", "bye"]


async def test_every_reader_sees_the_end() -> None:
    feed = UpdateFeed()
    publisher = UpdatePublisher(feed.publish)
    readers = [asyncio.create_task(read_all(feed)) for _ in range(3)]
    await asyncio.sleep(0)
    publisher.end("bye")
    for updates in await asyncio.gather(*readers):
        assert updates[-1].ended
    assert [update.ended for update in await read_all(feed)] == [True]


async def test_a_reader_who_was_told_the_end_hears_no_more() -> None:
    feed = UpdateFeed()
    publisher = UpdatePublisher(feed.publish)
    publisher.end("bye")
    publisher.notify("too late")
    assert [update.ended for update in await read_all(feed)] == [True]


async def test_what_streams_is_gone_with_the_activity_and_notices_stay() -> None:
    feed = UpdateFeed()
    publisher = UpdatePublisher(feed.publish)
    publisher.notify("look")
    publisher.notify("look")
    publisher.show_streaming(Streaming("text"))
    publisher.show_activity("ls")
    publisher.show_output("out", 1.0)
    assert feed.newest.live.running == Running("ls", "out", 1.0)
    publisher.show_activity("thinking")
    assert feed.newest.live == Live(activity="thinking", notices=(Notice(1, "look"), Notice(2, "look")))


async def test_notices_are_bounded_and_keep_their_numbers() -> None:
    feed = UpdateFeed()
    publisher = UpdatePublisher(feed.publish)
    for number in range(KEPT_NOTICES + 5):
        publisher.notify(str(number))
    numbers = [notice.number for notice in feed.newest.live.notices]
    assert numbers == [*range(6, KEPT_NOTICES + 6)]


def test_the_engine_cannot_read_back_what_is_shown() -> None:
    public = [member for name, member in inspect.getmembers(UpdatePublisher) if not name.startswith("_")]
    assert public
    assert [each for each in public if not inspect.isfunction(each)] == [], "no properties"
    returned = {each.__name__: inspect.signature(each).return_annotation for each in public}
    assert {name: what for name, what in returned.items() if what is not None} == {}


def test_a_feed_is_what_reads() -> None:
    assert isinstance(UpdateFeed().updates(), AsyncGenerator)
