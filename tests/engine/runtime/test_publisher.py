import asyncio

from agent_workbench.core.live import Live, Running, SessionUpdate, Streaming
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.publisher import UpdatePublisher


async def read_all(board: UpdatePublisher) -> list[SessionUpdate]:
    return [update async for update in board.updates()]


async def test_a_reader_sees_what_stands_then_what_is_newer_and_the_end() -> None:
    board = UpdatePublisher(SessionState())
    reading = asyncio.create_task(read_all(board))
    await asyncio.sleep(0)
    board.show_activity("one")
    board.show_activity("two")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    board.end("bye")
    updates = await reading
    assert [update.live.activity for update in updates] == ["", "two", "two"]
    assert [update.ended for update in updates] == [False, False, True]
    assert updates[-1].farewell == "bye"


async def test_every_reader_sees_the_end() -> None:
    board = UpdatePublisher(SessionState())
    readers = [asyncio.create_task(read_all(board)) for _ in range(3)]
    await asyncio.sleep(0)
    board.end("bye")
    for updates in await asyncio.gather(*readers):
        assert updates[-1].ended
    assert [update.ended for update in await read_all(board)] == [True]


async def test_what_comes_after_the_end_does_not_undo_it() -> None:
    board = UpdatePublisher(SessionState())
    board.end("bye")
    board.notify("too late")
    assert [update.ended for update in await read_all(board)] == [True]


def test_an_activity_clears_what_streamed_and_keeps_the_rest() -> None:
    board = UpdatePublisher(SessionState())
    board.notify("look")
    board.notify("look")
    board.show_streaming(Streaming("text"))
    board.show_running(Running("ls", "out", 1.0))
    assert (board.live.notice, board.live.notice_number) == ("look", 2)
    board.show_activity("thinking")
    assert board.live == Live(activity="thinking", notice="look", notice_number=2)
