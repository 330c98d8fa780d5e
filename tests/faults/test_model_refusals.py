"""Servers that refuse, are busy, still load, are something else, or are not there."""

import asyncio
import contextlib
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.errors import ContextOverflow, ModelError, ModelRefused, ModelUnavailable
from tests.adapters.llama_cpp.answers import Collected, ask, collect
from tests.fakes.faulty_server import (
    END,
    PROPS,
    Answer,
    FaultyServer,
    as_json,
    delta,
    error,
    stream,
)

GOOD = stream(delta("good"), END)
LOADING = error(503, "Loading model", "unavailable_error")
BUSY = error(429, "slow down", "rate_limit")
KEY = "sk-very-secret-0123456789"


async def _answer(*answers: Answer, seconds: float = 20.0, said: list[str] | None = None) -> Collected:
    async with FaultyServer().chat(*answers) as server:
        model = LlamaCppModel(server.url, api_key=KEY, on_status=(said if said is not None else []).append)
        try:
            return await collect(model, ask(answer_seconds=seconds))
        finally:
            await model.close()


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "the request is too long", "exceed_context_size_error", n_prompt_tokens=900, n_ctx=512),
        error(500, "the request exceeds the available context size"),
        error(500, "Context size has been exceeded."),
        as_json({"error": {"code": "context_length_exceeded", "message": "too many", "type": "invalid"}}, 400),
        error(400, "This model's maximum context length is 512 tokens."),
        as_json({"error": {"code": 400, "message": "", "type": "exceed_context_size_error"}}, 200),
        Answer(200, [], kind="text/event-stream"),
        Answer(200, [b"data: [DONE]\n\n"], kind="text/event-stream"),
    ],
)
async def test_an_overflow_is_known_in_all_its_shapes(answer: Answer) -> None:
    with pytest.raises(ContextOverflow, match="does not fit") as caught:
        await _answer(answer)
    assert "context_tokens" in caught.value.advice


@pytest.mark.parametrize(
    "fault",
    [
        error(400, "too long", "exceed_context_size_error", n_prompt_tokens=900, n_ctx=512),
        error(400, "request (900 tokens) exceeds the available context size (512 tokens), try increasing it"),
        error(400, "This model's maximum context length is 512 tokens. However, your messages resulted in 900 tokens."),
        error(400, "This model's maximum context length is 512 tokens. However, you requested 900 tokens (700 in the"),
        error(400, "Requested tokens (900) exceed context window of 512"),
    ],
)
async def test_an_overflow_says_by_how_much(fault: Answer) -> None:
    with pytest.raises(ContextOverflow, match="900 tokens in 512") as caught:
        await _answer(fault)
    assert (caught.value.prompt_tokens, caught.value.context_tokens) == (900, 512)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (error(401, "Invalid API Key", "authentication_error"), ModelRefused, "API key"),
        (error(403, "no"), ModelRefused, "API key"),
        (error(404, "File Not Found", "not_found_error"), ModelRefused, "no such route or model"),
        (error(405, "no"), ModelRefused, "no such route"),
        (error(501, "start it with --jinja", "not_supported_error"), ModelRefused, "--jinja"),
        (error(400, "failed to parse grammar"), ModelRefused, "rejected the request .* grammar"),
        (error(500, "Failed to parse messages: Missing 'role' in message"), ModelRefused, "rejects this conv"),
        (error(500, "Conversation roles must alternate user/assistant"), ModelRefused, "rejects this conv"),
        (error(400, "System role not supported"), ModelRefused, "rejects this conversation"),
        (error(422, "wrong"), ModelRefused, "rejected the request"),
        (Answer(400, [b"<html>not for you</html>"], kind="text/html"), ModelRefused, "rejected the request"),
        (error(500, "boom"), ModelUnavailable, "failed .*boom"),
        (Answer(502, [b"<html>"], kind="text/html"), ModelUnavailable, "failed"),
        (Answer(307, [], headers={"Location": "http://127.0.0.1:1/"}), ModelRefused, "redirects .*127.0.0.1:1/"),
    ],
)
async def test_refusals(answer: Answer, kind: type[ModelError], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        await _answer(answer)
    assert type(caught.value) is kind
    assert "127.0.0.1" in str(caught.value)
    assert caught.value.advice


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_the_key_is_in_no_error(status: int) -> None:
    with pytest.raises(ModelError) as caught:
        await _answer(error(status, f"Incorrect API key provided: {KEY}. Again: {KEY}"))
    shown = f"{caught.value!r} {caught.value} {caught.value.advice} {caught.value.__cause__!r}"
    assert KEY not in shown


async def test_the_key_is_sent() -> None:
    async with FaultyServer().chat(GOOD) as server:
        model = LlamaCppModel(server.url, api_key=KEY)
        await collect(model, ask())
        await model.close()
        assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


async def test_every_request_closes_its_connection() -> None:
    async with FaultyServer().chat(GOOD).on("/tokenize", as_json({"tokens": [1, 2]})) as server:
        model = LlamaCppModel(server.url)
        await collect(model, ask())
        await model.count_tokens(["a"])
        await model.close()
        assert {request.headers["connection"] for request in server.requests} == {"close"}


async def test_a_busy_server_is_asked_again_and_it_is_said() -> None:
    said: list[str] = []
    assert (await _answer(BUSY, BUSY, GOOD, said=said)).text == "good"
    assert len(said) == 2, said
    assert "is busy" in said[0]


async def test_a_server_that_stays_busy_is_given_up() -> None:
    with pytest.raises(ModelUnavailable, match=r"overloaded .*429.*slow down"):
        await _answer(BUSY, seconds=1.5)


async def test_nobody_waits_longer_than_there_is_time() -> None:
    later = Answer(429, [b"{}"], headers={"Retry-After": "3600"})
    begun = asyncio.get_running_loop().time()
    with pytest.raises(ModelUnavailable, match="429"):
        await _answer(later, GOOD, seconds=10.0)
    assert asyncio.get_running_loop().time() - begun < 5


async def test_retry_after_is_heard() -> None:
    later = Answer(429, [b"{}"], headers={"Retry-After": "1"})
    begun = asyncio.get_running_loop().time()
    await _answer(later, GOOD)
    assert asyncio.get_running_loop().time() - begun >= 1


async def test_retry_after_may_be_a_date() -> None:
    said: list[str] = []
    later = Answer(429, [b"{}"], headers={"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1), True)})
    with pytest.raises(ModelUnavailable, match="429"):
        await _answer(later, GOOD, seconds=10.0, said=said)
    past = Answer(429, [b"{}"], headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    assert (await _answer(past, GOOD, said=said)).text == "good"
    nonsense = Answer(429, [b"{}"], headers={"Retry-After": "soon"})
    assert (await _answer(nonsense, GOOD)).text == "good"


async def test_no_redirect_is_followed_and_no_key_goes_with_it() -> None:
    async with FaultyServer().chat(GOOD) as elsewhere:
        onwards = Answer(308, [], headers={"Location": f"{elsewhere.url}/v1/chat/completions"})
        with pytest.raises(ModelRefused, match="redirects to"):
            await _answer(onwards)
        assert elsewhere.requests == []


async def test_a_field_that_is_refused_by_name_is_left_out_from_then_on() -> None:
    said: list[str] = []
    no_seed = error(400, "Unrecognized request argument supplied: seed", "invalid_request_error")
    no_tokens = error(400, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    async with FaultyServer().chat(no_seed, no_tokens, GOOD) as server:
        model = LlamaCppModel(server.url, on_status=said.append)
        assert (await collect(model, ask())).text == "good"
        assert (await collect(model, ask())).text == "good"
        await model.close()
        first, second, third, later = (request.json for request in server.asked("/v1/chat/completions"))
    assert "seed" in first
    assert "seed" not in second
    assert "max_tokens" in second
    assert set(third) == set(later) == {*first, "max_completion_tokens"} - {"seed", "max_tokens"}
    assert len(said) == 2
    assert "rejects `seed`" in said[0]


@pytest.mark.parametrize("status", [400, 422])
async def test_a_refused_grammar_is_dropped_said_once_and_known_from_then_on(status: int) -> None:
    said: list[str] = []
    refusal = as_json({"detail": [{"loc": ["body", "grammar"], "msg": "Extra inputs are not permitted"}]}, status)
    async with FaultyServer().chat(refusal, GOOD) as server:
        model = LlamaCppModel(server.url, on_status=said.append)
        before = await model.observe()
        assert (await collect(model, ask(grammar='root ::= "a"'))).text == "good"
        after = await model.observe()
        assert (await collect(model, ask(grammar='root ::= "a"'))).text == "good"
        await model.observe()
        await model.close()
        sent = ["grammar" in request.json for request in server.asked("/v1/chat/completions")]
    assert (before.takes_grammar, before.off) == (True, ())
    assert not after.takes_grammar
    assert "held to a grammar" in after.off[0]
    assert sent == [True, False, False]
    assert len([line for line in said if "`grammar`" in line]) == 1
    assert len([line for line in said if "held to a grammar" in line]) == 1


async def test_a_grammar_that_cannot_be_read_is_dropped_for_this_request_alone() -> None:
    async with FaultyServer().chat(error(400, "failed to parse grammar"), GOOD) as server:
        model = LlamaCppModel(server.url)
        assert (await collect(model, ask(grammar="root ::= odd"))).text == "good"
        assert (await collect(model, ask(grammar='root ::= "a"'))).text == "good"
        assert (await model.observe()).takes_grammar
        await model.close()
        sent = ["grammar" in request.json for request in server.asked("/v1/chat/completions")]
    assert sent == [True, False, True]


async def test_a_server_that_loads_again_in_between_is_waited_for() -> None:
    said: list[str] = []
    assert (await _answer(LOADING, GOOD, said=said)).text == "good"
    assert "loads its model" in said[0]


async def test_loading_is_waited_for_visibly() -> None:
    said: list[str] = []
    async with (
        FaultyServer().on("/health", LOADING, LOADING, as_json({})).on("/props", LOADING, as_json(PROPS)) as server
    ):
        model = LlamaCppModel(server.url, on_status=said.append)
        facts = await model.observe()
        await model.close()
    assert facts.context_tokens == 4096
    assert facts.model == "fake.gguf"
    assert len(said) == 3
    assert all("loads its model" in line for line in said)


FOREIGN = (
    Answer(503, [b"<html><h1>503 Service Temporarily Unavailable</h1> loading, try again</html>"], kind="text/html"),
    Answer(503, [b"upstream connect error or disconnect/reset before headers"], kind="text/plain"),
    Answer(503, [b""]),
    as_json({"message": "failure to get a peer from the ring-balancer"}, 503),
    as_json(["Loading model"], 503, {"Retry-After": "1"}),
)


@pytest.mark.parametrize("answer", FOREIGN)
async def test_a_503_that_says_nothing_of_loading_is_not_waited_for(answer: Answer) -> None:
    said: list[str] = []
    with pytest.raises(ModelUnavailable) as answering:
        await _answer(answer, GOOD, said=said)
    async with FaultyServer().on("/health", answer).on("/props", answer).on("/v1/models", answer) as server:
        model = LlamaCppModel(server.url, on_status=said.append)
        with pytest.raises(ModelUnavailable) as observing:
            await model.observe()
        await model.close()
    assert said == []
    assert all("model.url" in each.value.advice for each in (answering, observing))
    assert all(each.value.retry_after_seconds == 0 for each in (answering, observing))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Loading model", "code": 503}}, "loads its model"),
        ({"status": "loading model"}, "loads its model"),
        ({"error": "Model x/y is currently loading", "estimated_time": 20.0}, "loads its model"),
        ({"error": "server busy, please try again.  maximum pending requests exceeded"}, "is busy"),
        ({"error": {"message": "The engine is currently overloaded", "type": "server_error"}}, "is busy"),
        ({"detail": {"msg": "Server is busy; please try again later.", "type": "service_unavailable"}}, "is busy"),
    ],
)
async def test_a_503_that_says_why_it_passes_is_waited_for(body: object, words: str) -> None:
    said: list[str] = []
    assert (await _answer(as_json(body, 503), GOOD, said=said)).text == "good"
    assert [words in line for line in said] == [True]


async def test_waiting_for_a_model_to_load_is_ended_at_once() -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    async with FaultyServer().on("/health", LOADING) as server:
        model = LlamaCppModel(server.url, on_status=said.put_nowait)
        waiting = asyncio.create_task(model.observe())
        for _ in range(3):
            assert "loads its model" in await said.get()
        waiting.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait({waiting})
        assert waiting.cancelled()
        await model.close()


async def test_loading_for_ever_is_given_up() -> None:
    async with FaultyServer().on("/health", LOADING) as server:
        model = LlamaCppModel(server.url, ready_seconds=1.5)
        with pytest.raises(ModelUnavailable, match="Loading model"):
            await model.observe()
        await model.close()


async def test_nobody_there() -> None:
    with contextlib.closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        model = LlamaCppModel(f"http://127.0.0.1:{port}")
        with pytest.raises(ModelUnavailable, match=f"nothing answers at http://127.0.0.1:{port}") as caught:
            await model.observe()
        with pytest.raises(ModelUnavailable, match="nothing answers"):
            await collect(model, ask())
        await model.close()
    assert "model.path" in caught.value.advice


async def test_a_password_in_the_address_is_not_shown() -> None:
    model = LlamaCppModel("http://me:hidden@127.0.0.1:1")
    with pytest.raises(ModelUnavailable, match="nothing answers") as caught:
        await model.observe()
    assert "hidden" not in f"{caught.value!r}"
    await model.close()


async def test_something_that_is_no_http_server() -> None:
    async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    async with server:
        model = LlamaCppModel(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(ModelUnavailable, match="closed the connection"):
            await model.observe()
        await model.close()


async def test_a_web_server_that_is_no_model_server() -> None:
    page = Answer(200, [b"<html>hello</html>"], kind="text/html")
    async with FaultyServer().on("/health", page).on("/props", page).on("/v1/models", page) as server:
        model = LlamaCppModel(server.url)
        with pytest.raises(ModelRefused, match="does not answer like a model server"):
            await model.observe()
        await model.close()


async def test_a_wrong_key_is_found_out_at_once() -> None:
    refusal = error(401, "Invalid API Key", "authentication_error")
    async with FaultyServer().on("/props", refusal) as server:
        model = LlamaCppModel(server.url, api_key="wrong")
        with pytest.raises(ModelRefused, match="API key") as caught:
            await model.observe()
        await model.close()
    assert "api_key_env" in caught.value.advice


async def test_a_failing_count_says_why() -> None:
    async with FaultyServer().on("/tokenize", error(500, "boom")) as server:
        model = LlamaCppModel(server.url)
        with pytest.raises(ModelUnavailable, match="boom"):
            await model.count_tokens(["a", "b", "c"])
        await model.close()
