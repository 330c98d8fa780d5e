"""OpenAI-compatible servers that are not llama.cpp: they work, with what they cannot do switched off and said."""

from collections.abc import AsyncIterator

import pytest

from agent_workbench.adapters.llama_cpp.client import LlamaCppModel
from agent_workbench.core.errors import ModelRefused
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import END, FaultyServer, as_json, delta, error, stream

MODELS = as_json({"object": "list", "data": [{"id": "first"}, {"id": "second"}]})


@pytest.fixture
async def server() -> AsyncIterator[FaultyServer]:
    plain = FaultyServer().on("/health").on("/props").on("/v1/models", MODELS).chat(stream(delta("hi"), END))
    async with plain:
        yield plain


async def test_facts_are_honest_and_said(server: FaultyServer) -> None:
    said: list[str] = []
    model = LlamaCppModel(server.url + "/v1/", on_status=said.append)
    facts = await model.observe()
    await model.close()
    assert (facts.model, facts.context_tokens, facts.takes_grammar, facts.counts_tokens) == ("first", 0, False, False)
    assert "not a llama.cpp server" in said[-1]


async def test_only_what_every_server_knows_is_sent(server: FaultyServer) -> None:
    model = LlamaCppModel(server.url)
    got = await collect(model, ask(grammar='root ::= "a"'))
    await model.close()
    assert got.text == "hi"
    (request,) = server.asked("/v1/chat/completions")
    assert set(request.json) == {"model", "messages", "max_tokens", "stream", "stream_options"}
    assert request.json["model"] == "first"


async def test_the_model_that_was_named_is_asked_for(server: FaultyServer) -> None:
    model = LlamaCppModel(server.url, model_name="second")
    facts = await model.observe()
    await collect(model, ask())
    await model.close()
    assert facts.model == "second"
    assert server.asked("/v1/chat/completions")[0].json["model"] == "second"


async def test_tokens_are_not_counted(server: FaultyServer) -> None:
    model = LlamaCppModel(server.url)
    assert await model.count_tokens(["a", "b"]) == (0, 0)
    await model.close()
    assert server.asked("/tokenize") == []


async def test_a_gateway_that_wants_a_key_says_so(server: FaultyServer) -> None:
    refusal = error(401, "who are you")
    server.on("/health", refusal).on("/props", refusal).on("/v1/models", refusal)
    model = LlamaCppModel(server.url)
    with pytest.raises(ModelRefused, match="API key"):
        await model.observe()
    await model.close()


async def test_a_server_with_a_health_route_of_its_own_is_still_plain(server: FaultyServer) -> None:
    server.on("/health", as_json({})).on("/props", error(404, "Not Found"))
    model = LlamaCppModel(server.url)
    assert not (await model.observe()).takes_grammar
    await model.close()
