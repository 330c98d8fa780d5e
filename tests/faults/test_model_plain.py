"""OpenAI-compatible servers that are not llama.cpp: they work, with what they cannot do switched off and said."""

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.errors import ModelRefused, ModelUnavailable
from agent_workbench.core.model import Sampling
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import DONE, END, PROPS, FaultyServer, as_json, delta, error, event, stream
from tests.fakes.model_servers import router

MODELS = as_json({"object": "list", "data": [{"id": "first"}, {"id": "second"}]})


@pytest.fixture
async def server() -> AsyncIterator[FaultyServer]:
    plain = (
        FaultyServer()
        .on("/health")
        .on("/props")
        .on("/tokenize")
        .on("/v1/models", MODELS)
        .chat(stream(delta("hi"), END))
    )
    async with plain:
        yield plain


async def test_facts_are_honest_and_said(server: FaultyServer) -> None:
    said: list[str] = []
    model = LlamaCppModel(server.url + "/v1/", on_status=said.append)
    facts = await model.observe()
    await model.close()
    assert (facts.model, facts.context_tokens, facts.takes_grammar, facts.counts_tokens) == ("first", 0, False, False)
    assert (facts.tells_cache, facts.thinks, facts.build) == (False, False, "")
    assert len(facts.off) == 4
    assert all(lack in said[-1] for lack in facts.off)


async def test_only_what_every_server_knows_is_sent(server: FaultyServer) -> None:
    model = LlamaCppModel(server.url)
    sampling = Sampling(temperature=0.5, top_p=0.9, top_k=20, min_p=0.1, thinking_budget_tokens=9)
    got = await collect(model, ask(grammar='root ::= "a"', seed=7, sampling=sampling))
    await collect(model, ask())
    await model.close()
    assert got.text == "hi"
    request, bare = (request.json for request in server.asked("/v1/chat/completions"))
    assert set(bare) == {"model", "messages", "max_tokens", "stream", "stream_options", "seed"}
    assert set(request) == {*bare, "temperature", "top_p"}
    assert (request["model"], request["seed"], request["temperature"], request["top_p"]) == ("first", 7, 0.5, 0.9)


async def test_all_of_the_sampling_goes_to_llama_cpp() -> None:
    async with FaultyServer().chat(stream(delta("hi"), END)) as server:
        model = LlamaCppModel(server.url)
        await collect(model, ask(seed=7, sampling=Sampling(temperature=0.0, top_k=20, min_p=0.1)))
        await collect(model, ask(exact=True, answer_tokens=90, sampling=Sampling(thinking_budget_tokens=200)))
        await model.close()
        request, exact = (request.json for request in server.asked("/v1/chat/completions"))
    assert (request["seed"], request["temperature"], request["top_k"], request["min_p"]) == (7, 0.0, 20, 0.1)
    assert not {"top_p", "thinking_budget_tokens"} & set(request)
    assert exact["thinking_budget_tokens"] == 90
    assert (request["cache_prompt"], exact["cache_prompt"]) == (True, False)


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
    assert not [request for request in server.asked("/tokenize") if request.json.get("content") == "a"]


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ({"context_length": 4096}, 4096),
        ({"max_model_len": 8192}, 8192),
        ({"meta": {"n_ctx": 512, "n_ctx_train": 32768}}, 512),
        ({"max_context_length": 9, "top_provider": {"context_length": 7}}, 7),
        ({"context_length": "many"}, 0),
    ],
)
async def test_the_context_is_read_off_the_list_of_models(
    server: FaultyServer, entry: dict[str, object], tokens: int
) -> None:
    server.on("/v1/models", as_json({"data": [{"id": "first", **entry}, {"id": "second", "context_length": 1}]}))
    model = LlamaCppModel(server.url)
    facts = await model.observe()
    await model.close()
    assert facts.context_tokens == tokens
    assert ("the context size is unknown" in facts.off) == (not tokens)


@pytest.mark.parametrize(
    ("route", "said", "asked", "grammar"),
    [
        ("/tokenize", {"tokens": [1, 2]}, {"content": "a", "model": "first"}, True),
        ("/tokenize", {"count": 2, "max_model_len": 99, "tokens": [1, 2]}, {"content": "a", "model": "first"}, True),
        ("/extras/tokenize", {"tokens": [1, 2]}, {"input": "a", "model": "first"}, True),
    ],
)
async def test_tokens_are_counted_by_whatever_route_there_is(
    server: FaultyServer, route: str, said: dict[str, object], asked: dict[str, object], grammar: bool
) -> None:
    server.on(route, as_json(said))
    model = LlamaCppModel(server.url)
    facts = await model.observe()
    assert await model.count_tokens(["a"]) == (2,)
    await collect(model, ask(grammar='root ::= "hi"'))
    await model.close()
    assert facts.counts_tokens
    assert server.asked(route)[-1].json == asked
    assert ("grammar" in server.asked("/v1/chat/completions")[0].json) == facts.takes_grammar == grammar


async def test_a_route_that_wants_the_text_as_a_prompt_is_known_and_takes_no_grammar(server: FaultyServer) -> None:
    counted = as_json({"count": 3, "max_model_len": 2048, "tokens": [1, 2, 3]})
    server.on("/tokenize", error(422, "prompt: Field required"), counted)
    model = LlamaCppModel(server.url)
    facts = await model.observe()
    assert await model.count_tokens(["a"]) == (3,)
    await model.close()
    assert (facts.counts_tokens, facts.context_tokens, facts.takes_grammar) == (True, 2048, False)
    assert server.asked("/tokenize")[-1].json == {"prompt": "a", "add_special_tokens": False, "model": "first"}


async def test_a_llama_cpp_without_its_properties_gets_what_it_has(server: FaultyServer) -> None:
    entry = {"id": "m", "owned_by": "llamacpp", "created": 1, "meta": {"n_ctx": 512, "n_ctx_train": 9}}
    server.on("/v1/models", as_json({"data": [entry]}), as_json({"data": [{**entry, "created": 2}]}))
    server.on("/tokenize", as_json({"tokens": [1, 2]}))
    model = LlamaCppModel(server.url)
    facts = await model.observe()
    await collect(model, ask(grammar='root ::= "hi"'))
    assert await model.observe() == replace(
        facts, tells_cache=False, off=("the share of the prompt that came from the cache is unknown",)
    )
    await model.close()
    assert (facts.context_tokens, facts.takes_grammar, facts.counts_tokens, facts.off) == (512, True, True, ())
    assert server.asked("/v1/chat/completions")[0].json["grammar"] == 'root ::= "hi"'
    assert len(server.asked("/tokenize")) == 1, "it says of itself what it said before"


async def test_a_router_is_asked_about_the_model_behind_it(server: FaultyServer) -> None:
    models = [{"id": "one", "status": {"value": "unloaded"}}, {"id": "a/b c", "status": {"value": "loaded"}}]
    server.on("/health", as_json({})).on("/v1/models", as_json({"data": models}))
    server.on("/props", as_json({"role": "router", "default_generation_settings": {"n_ctx": 0}}))
    server.on("/props?model=a%2Fb%20c", as_json(PROPS)).on("/tokenize", as_json({"tokens": [1]}))
    model = LlamaCppModel(server.url)
    facts = await model.observe()
    await collect(model, ask(grammar='root ::= "hi"'))
    await model.count_tokens(["a"])
    await model.close()
    assert (facts.model, facts.context_tokens, facts.off) == ("a/b c", 4096, ())
    assert server.asked("/v1/chat/completions")[0].json["model"] == "a/b c"
    assert {request.json["model"] for request in server.asked("/tokenize")} == {"a/b c"}


async def test_a_router_loads_the_model_first_and_is_waited_for() -> None:
    said: list[str] = []
    server = router("one", "two", loaded=("one",))
    server.loads_after = 2
    async with server:
        model = LlamaCppModel(server.url, model_name="two", on_status=said.append)
        assert (await model.observe()).context_tokens == server.context_tokens
        await model.observe()
        await model.close()
    assert len(server.asked("/models/load")) == 1
    assert any("loads its model" in line for line in said)


async def test_a_model_that_a_router_cannot_load_is_an_error() -> None:
    server = router("one")
    server.broken.add("one")
    async with server:
        model = LlamaCppModel(server.url)
        with pytest.raises(ModelUnavailable, match="could not load one"):
            await model.observe()
        await model.close()


async def test_a_router_that_is_only_looked_at_loads_nothing() -> None:
    async with router("one") as server:
        model = LlamaCppModel(server.url, loads=False)
        facts = await model.observe()
        await model.close()
        assert (facts.model, facts.context_tokens, server.asked("/models/load")) == ("one", 0, [])
        assert [each.path for each in server.requests if "props?" in each.path] == ["/props?model=one&autoload=false"]


async def test_a_server_that_tells_what_its_cache_held_is_known_by_its_answers(server: FaultyServer) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}}
    server.chat(stream(delta("hi", "stop"), event({"choices": [], "usage": usage}), DONE))
    model = LlamaCppModel(server.url)
    assert not (await model.observe()).tells_cache
    await collect(model, ask())
    assert (await model.observe()).tells_cache
    await model.close()


async def test_another_server_behind_the_same_address_is_noticed(server: FaultyServer) -> None:
    model = LlamaCppModel(server.url)
    assert (await model.observe()).context_tokens == 0
    server.on("/props", as_json(PROPS)).on("/v1/models", as_json({"data": [{"id": "other"}]}))
    large = await model.observe()
    server.on("/props", as_json({**PROPS, "default_generation_settings": {"n_ctx": 1024}}))
    small = await model.observe()
    await model.close()
    assert (large.context_tokens, small.context_tokens) == (4096, 1024)
    assert replace(large, context_tokens=1024) == small


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
