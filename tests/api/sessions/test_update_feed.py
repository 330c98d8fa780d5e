"""Progress of a session that nobody watches: what it does and how far it is, in a line now and then."""

import asyncio

from msgspec.structs import replace

from agent_workbench.api.sessions.session_handle import UpdateFeed
from agent_workbench.core.live import Live, Notice, Streaming
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession


async def test_what_takes_long_is_told_and_what_waits_is_not() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    told = asyncio.Queue[str]()
    feed = UpdateFeed(told.put_nowait)
    feed.publish(session.newest)
    async with asyncio.TaskGroup() as group:
        telling = group.create_task(feed.tell_progress(0.0))
        for _ in range(3):
            await asyncio.sleep(0)
        assert told.empty()
        reading = Streaming(seconds=30.0, prompt_processed=612, prompt_total=2_112, prompt_cached=112)
        live = Live(activity="thinking", seconds=30.0, streaming=reading)
        feed.publish(replace(session.newest, live=live))
        assert await told.get() == "T-1: thinking  reading the prompt, 612 of 2,112 tokens, 90 s left, 30 s"
        written = replace(reading, text="Thought: so", tokens=4, seconds=31.0)
        feed.publish(replace(session.newest, live=replace(live, seconds=31.0, streaming=written)))
        while (line := await told.get()) != "T-1: thinking  4 tokens, 31 s":
            assert "reading" in line
        telling.cancel()


def test_each_notice_is_told_once() -> None:
    session, told = ScriptedSession(*runs.up_to_reflexion()), list[str]()
    feed = UpdateFeed(told.append)
    for notices in ((), (Notice(1, "one"),), (Notice(1, "one"), Notice(2, "two")), (Notice(2, "two"),)):
        feed.publish(replace(session.newest, live=Live(notices=notices)))
    assert told == ["one", "two"]
