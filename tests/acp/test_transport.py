"""What reaches the SDK of a client's messages, and what is answered before."""

import asyncio
import io
import json
import threading
from collections.abc import Sequence

from agent_workbench.acp.editor import BUSY, MAX_REQUESTS, ClientPipe
from agent_workbench.server_process import MAX_MESSAGE_CHARS

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {"cwd": "/x"}}


async def received(lines: Sequence[str]) -> tuple[list[object], list[dict[str, object]]]:
    """Return the messages that the SDK gets of these lines, and what the client is answered."""
    out = io.StringIO()
    pipe = ClientPipe(io.StringIO("\n".join(lines) + "\n"), out)
    found: list[object] = []
    while (message := await pipe.receive()) is not None:
        found.append(message)
    return found, [json.loads(line) for line in out.getvalue().splitlines()]


async def test_messages_of_the_wrong_shape_are_answered_and_the_next_is_read() -> None:
    wrong = (
        "[1]",
        '"text"',
        "null",
        "{}",
        '{"id": [1], "result": 1}',
        '{"method": 7, "id": 1}',
        '{"id": 2, "error": 3}',
    )
    found, answers = await received((*wrong, "", json.dumps(REQUEST)))
    assert found == [REQUEST]
    assert [each["error"]["code"] for each in answers] == [-32600] * len(wrong)  # type: ignore[index]


async def test_what_is_no_json_or_too_deep_or_too_long_is_refused_by_its_id() -> None:
    deep = f'{{"id":3,"method":"x","params":{"[" * 100}{"]" * 100}}}'
    long = f'{{"jsonrpc":"2.0","id":"p-9","method":"session/prompt","params":"{"x" * MAX_MESSAGE_CHARS}"}}'
    found, answers = await received(("{", deep, '{"id":5,"id":6}', long, json.dumps(REQUEST)))
    assert found == [REQUEST]
    assert [each["id"] for each in answers] == [None, 3, 5, "p-9"]


async def test_names_in_meta_are_no_arguments_and_foreign_notifications_are_passed_over() -> None:
    said = {**REQUEST, "params": {"cwd": "/x", "_meta": {"self": 1, "session_id": "other"}}}
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
    found, answers = await received(tuple(map(json.dumps, (said, {"method": "$/progress"}, cancel))))
    assert (found, answers) == ([REQUEST, cancel], [])


async def test_a_flood_of_requests_is_refused_until_some_are_answered() -> None:
    flood = [json.dumps({**REQUEST, "id": number}) for number in range(MAX_REQUESTS + 5)]
    found, answers = await received(flood)
    assert (len(found), len(answers)) == (MAX_REQUESTS, 5)


class _Unread(io.StringIO):
    """A pipe to a client that does not read until `reads` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()

    def write(self, text: str) -> int:
        self.reads.wait()
        return super().write(text)


async def test_answers_that_the_client_does_not_read_are_not_kept_without_bound() -> None:
    out, count = _Unread(), MAX_REQUESTS + 1
    pipe = ClientPipe(io.StringIO("".join(f"{json.dumps({**REQUEST, 'id': each})}\n" for each in range(count))), out)
    answers = []
    for _ in range(MAX_REQUESTS):
        message = await pipe.receive()
        assert message is not None
        answers.append(asyncio.create_task(pipe.send({"id": message["id"], "result": None})))
    more = asyncio.create_task(pipe.receive())
    await asyncio.sleep(0)
    # The thread that reads does one thing after the other, so the request has been looked at after this.
    await asyncio.get_running_loop().run_in_executor(pipe._reader, bool)
    out.reads.set()
    assert await more is None, "the last request is refused, and the pipe ends"
    await asyncio.gather(*answers)
    codes = [json.loads(line).get("error", {}).get("code") for line in out.getvalue().splitlines()]
    assert codes == [None] * MAX_REQUESTS + [BUSY]


async def test_a_refused_request_does_not_end_the_one_with_its_id() -> None:
    found, answers = await received([json.dumps(REQUEST)] * 3)
    assert (len(found), len(answers)) == (1, 2)


async def test_a_question_is_withdrawn_once_by_the_id_of_its_request() -> None:
    out = io.StringIO()
    pipe = ClientPipe(io.StringIO('{"id":6,"result":{}}\n'), out)
    for number, session, call in ((4, "a", "P-1"), (5, "b", "P-1"), (6, "a", "P-2")):
        asked = {"sessionId": session, "toolCall": {"toolCallId": call}}
        await pipe.send({"id": number, "method": "session/request_permission", "params": asked})
    await pipe.receive()
    await pipe.withdraw("a", "P-2")  # it is answered
    await pipe.withdraw("a", "P-1")
    await pipe.withdraw("a", "P-1")
    sent = [json.loads(line) for line in out.getvalue().splitlines()][3:]
    assert [(each["method"], each["params"]) for each in sent] == [("$/cancel_request", {"requestId": 4})]
