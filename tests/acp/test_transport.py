"""What reaches the SDK of a client's messages, and what is answered before."""

import io
import json
from collections.abc import Sequence

from agent_workbench.acp.transport import MAX_REQUESTS, ClientPipe
from agent_workbench.server_process.client_pipe import MAX_MESSAGE_CHARS

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


async def test_a_question_is_withdrawn_once_by_the_id_of_its_request() -> None:
    out = io.StringIO()
    pipe = ClientPipe(io.StringIO(""), out)
    asked = {"toolCall": {"toolCallId": "P-1"}}
    await pipe.send({"id": 4, "method": "session/request_permission", "params": asked})
    await pipe.withdraw("P-1")
    await pipe.withdraw("P-1")
    sent = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["method"] for each in sent] == ["session/request_permission", "$/cancel_request"]
    assert sent[1]["params"] == {"requestId": 4}
