"""Servers that do not list their context: it is read by their own routes, and a prompt that they cut is no answer."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from itertools import takewhile

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.diagnostics import Health
from agent_workbench.core.errors import ContextOverflow, ModelRefused
from agent_workbench.core.model import (
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    Message,
    ModelFacts,
    ModelRequest,
    Purpose,
    Role,
    StopCause,
)
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.engine.endpoint_findings import MeasuredContext, context_finding, measure_context
from tests.adapters.llama_cpp.answers import collect
from tests.fakes.faulty_server import (
    DONE,
    END,
    Answer,
    FaultyServer,
    Reaction,
    Request,
    as_json,
    delta,
    error,
    event,
    stream,
)

# As Ollama 0.32 and LM Studio 0.4 send them.
OLLAMA_LIST = {
    "object": "list",
    "data": [{"id": "coder:latest", "object": "model", "created": 1, "owned_by": "library"}],
}
VERSION = {"version": "0.32.5"}
SHOWN = {
    "parameters": 'num_ctx                        8192\nstop                           "<|im_end|>"',
    "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768},
    "capabilities": ["completion"],
}
LM_STUDIO_LIST = {"data": [{"id": "coder-7b", "object": "model", "owned_by": "organization_owner"}], "object": "list"}


def loaded(*models: dict[str, object]) -> Answer:
    """Return what `/api/ps` says."""
    return as_json({"models": list(models)})


def in_memory(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "model": name, "size": 6, "digest": "a2", "details": {"family": "qwen2"}, **more}


@pytest.fixture
async def server() -> AsyncIterator[FaultyServer]:
    plain = FaultyServer().on("/health").on("/props").on("/tokenize")
    async with plain:
        yield plain


def ollama(server: FaultyServer, *states: Reaction) -> FaultyServer:
    server.on("/v1/models", as_json(OLLAMA_LIST)).on("/api/version", as_json(VERSION)).on("/api/ps", *states)
    return server.on("/api/generate", as_json({"model": "coder", "done": True, "done_reason": "load"}))


async def observed(server: FaultyServer, name: str = "", context_tokens: int = 0) -> ModelFacts:
    model = LlamaCppModel(server.url, model_name=name, context_tokens=context_tokens)
    facts = await model.observe()
    await model.close()
    return facts


async def test_ollama_states_the_context_of_a_model_once_it_is_loaded(server: FaultyServer) -> None:
    cold = loaded(in_memory("other", context_length=9))
    warm = loaded(in_memory("other", context_length=9), in_memory("coder:latest", context_length=4096))
    ollama(server, lambda _: warm if server.asked("/api/generate") else cold)
    facts = await observed(server, "coder")
    assert (facts.context_tokens, facts.context_source, facts.build) == (4096, "/api/ps", "Ollama 0.32.5")
    (load,) = server.asked("/api/generate")
    assert load.json == {"model": "coder", "stream": False}


async def test_an_inspection_loads_nothing(server: FaultyServer) -> None:
    ollama(server, loaded(in_memory("other", context_length=9)))
    model = LlamaCppModel(server.url, loads=False)
    facts = await model.observe()
    await model.close()
    assert (facts.model, facts.context_tokens, facts.build) == ("coder:latest", 0, "Ollama 0.32.5")
    assert not server.asked("/api/generate")


async def test_a_model_that_was_loaded_anew_is_asked_about_again(server: FaultyServer) -> None:
    contexts = [4096]
    ollama(server, lambda _: loaded(in_memory("coder:latest", context_length=contexts[-1])))
    model = LlamaCppModel(server.url)
    assert [(await model.observe()).context_tokens for _ in range(2)] == [4096, 4096]
    assert len(server.asked("/api/generate")) == 1
    contexts.append(32768)
    assert (await model.observe()).context_tokens == 32768
    await model.close()
    assert len(server.asked("/api/generate")) == 2


@pytest.mark.parametrize(("shown", "tokens", "source"), [(SHOWN, 8192, "/api/show"), ({}, 0, "")])
async def test_an_older_ollama_states_what_the_model_sets(
    server: FaultyServer, shown: dict[str, object], tokens: int, source: str
) -> None:
    ollama(server, loaded(in_memory("coder:latest"))).on("/api/show", as_json(shown))
    facts = await observed(server)
    assert (facts.context_tokens, facts.context_source) == (tokens, source)
    assert ("the context size is unknown" in facts.off) == (not tokens)


async def test_an_older_ollama_loads_a_model_once(server: FaultyServer) -> None:
    ollama(server, loaded(in_memory("coder:latest"))).on("/api/show", as_json(SHOWN))
    model = LlamaCppModel(server.url)
    assert [(await model.observe()).context_tokens for _ in range(3)] == [8192] * 3
    await model.close()
    assert len(server.asked("/api/generate")) == 1


async def test_lm_studio_states_the_context_of_the_instance_that_answers(server: FaultyServer) -> None:
    instances = [{"id": "coder-7b:2", "config": {"context_length": 2048}}, {"id": "coder-7b", "config": {}}]
    empty: dict[str, object] = {"type": "llm", "key": "coder-7b", "loaded_instances": [], "max_context_length": 131072}
    some = {**empty, "loaded_instances": [*instances[:1], {"id": "coder-7b", "config": {"context_length": 8192}}]}
    server.on("/v1/models", as_json(LM_STUDIO_LIST)).chat(as_json({"choices": [{"message": {"content": "a"}}]}))
    server.on(
        "/api/v1/models", *(as_json({"models": [{"type": "llm", "key": "x"}, each]}) for each in (empty, empty, some))
    )
    facts = await observed(server)
    assert (facts.context_tokens, facts.context_source, facts.build) == (8192, "/api/v1/models", "LM Studio")
    assert server.asked("/v1/chat/completions")[0].json["max_tokens"] == 1, "its first request loads a model"


async def test_an_older_lm_studio_states_what_is_loaded_not_what_was_trained(server: FaultyServer) -> None:
    entry = {"id": "coder-7b", "type": "llm", "state": "loaded", "max_context_length": 131072}
    server.on("/v1/models", as_json(LM_STUDIO_LIST))
    server.on("/api/v0/models", as_json({"data": [{**entry, "loaded_context_length": 4096}]}))
    facts = await observed(server)
    assert (facts.context_tokens, facts.context_source) == (4096, "/api/v0/models")


@pytest.mark.parametrize("route", ["/api/v1/models", "/api/v0/models"])
async def test_what_lists_its_models_where_lm_studio_does_is_not_taken_for_it(server: FaultyServer, route: str) -> None:
    """Lemonade serves OpenAI's list at the first of these routes."""
    server.on("/v1/models", as_json(LM_STUDIO_LIST)).on(route, as_json(LM_STUDIO_LIST))
    facts = await observed(server)
    assert (facts.context_tokens, facts.build) == (0, "")
    assert not server.asked("/v1/chat/completions")


async def test_vllm_lists_it(server: FaultyServer) -> None:
    server.on("/v1/models", as_json({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 16384}]}))
    facts = await observed(server)
    assert (facts.context_tokens, facts.context_source) == (16384, "/v1/models")
    assert not server.asked("/api/version")


@pytest.mark.parametrize(
    ("version", "ps"),
    [({"version": "0.6"}, {"detail": "Not authenticated"}), ({"version": 3}, {}), ({}, {"models": []})],
)
async def test_what_is_no_ollama_is_not_asked_to_load_anything(
    server: FaultyServer, version: dict[str, object], ps: dict[str, object]
) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST)).on("/api/version", as_json(version)).on("/api/ps", as_json(ps))
    assert (await observed(server)).context_tokens == 0
    assert not server.asked("/api/generate")


@pytest.mark.parametrize(("said", "stated", "used"), [(0, 4096, 4096), (8192, 4096, 4096), (2048, 4096, 2048)])
async def test_the_user_may_state_less_than_the_server(server: FaultyServer, said: int, stated: int, used: int) -> None:
    server.on("/v1/models", as_json({"data": [{"id": "m", "context_length": said}]}))
    facts = await observed(server, context_tokens=stated)
    assert facts.context_tokens == used
    assert facts.context_source == ("the settings" if used == stated else "/v1/models")


def usage(tokens: int) -> Answer:
    figures = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}
    return stream(delta("hi"), delta("", "stop"), event(figures), DONE)


def conversation(*sizes: int, prompt_tokens: int = 0) -> ModelRequest:
    """Return messages of so many bytes, about a fourth as many tokens."""
    roles = (Role.SYSTEM, *(Role.USER, Role.ASSISTANT) * len(sizes))
    return ModelRequest(
        tuple(Message(role, "abc " * (size // 4)) for role, size in zip(roles, sizes, strict=False)),
        prompt_tokens=prompt_tokens,
    )


async def test_a_prompt_that_was_cut_is_no_answer_and_shows_the_context(server: FaultyServer) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST)).chat(usage(3000), usage(4096), usage(4096))
    model = LlamaCppModel(server.url)
    await collect(model, conversation(4000, 8000))
    await collect(model, conversation(4000, 8000, 400, 4000))
    assert (await model.observe()).context_tokens == 0
    with pytest.raises(ContextOverflow, match="cut the prompt: it read 4,096 tokens of at least 4,") as cut:
        await collect(model, conversation(4000, 8000, 400, 4000, 400, 4000))
    facts = await model.observe()
    await model.close()
    assert (cut.value.context_tokens, cut.value.cut) == (4096, True)
    assert (facts.context_tokens, facts.context_source) == (4096, "measured")


async def test_a_first_prompt_that_was_cut_is_seen_by_its_size(server: FaultyServer) -> None:
    ollama(server, loaded(in_memory("coder:latest", context_length=4096))).chat(usage(2050))
    model = LlamaCppModel(server.url)
    with pytest.raises(ContextOverflow) as cut:
        await collect(model, conversation(4000, 20000))
    facts = await model.observe()
    await model.close()
    assert cut.value.context_tokens == 4096, "half of a context is read of what does not fit into it"
    assert facts.context_tokens == 4096


@pytest.mark.parametrize(
    ("messages", "counted", "cut"),
    [
        ((4000, 8000), 2900, False),
        ((4000, 8000), 3100, True),
        ((4000, 8000), 0, False),
        # The template's tokens are estimated, which is much of many short messages.
        ((160,) * 61, 2440 + 61 * 12, False),
    ],
)
async def test_counted_tokens_are_compared_with_those_that_were_read(
    server: FaultyServer, messages: tuple[int, ...], counted: int, cut: bool
) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST)).on("/tokenize", as_json({"tokens": [1, 2, 3]})).chat(usage(2700))
    model = LlamaCppModel(server.url)
    with pytest.raises(ContextOverflow) if cut else contextlib.nullcontext():
        await collect(model, conversation(*messages, prompt_tokens=counted))
    await model.close()


async def test_what_came_from_the_cache_of_an_older_llama_cpp_is_read(server: FaultyServer) -> None:
    """Its timings leave that out, as those of ik_llama.cpp do."""
    props = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1, "chat_template": "x"}
    figures = {"timings": {"prompt_n": 40, "predicted_n": 1}, "usage": {"prompt_tokens": 3000, "completion_tokens": 1}}
    server.on("/health", as_json({})).on("/props", as_json(props)).on("/tokenize", as_json({"tokens": [1, 2, 3]}))
    server.chat(stream(delta("hi"), delta("", "stop"), event({"choices": [], **figures}), DONE))
    model = LlamaCppModel(server.url)
    got = await collect(model, conversation(4000, 8000, prompt_tokens=3000))
    facts = await model.observe()
    await model.close()
    assert (got.end.figures.prompt_tokens, got.end.figures.cached_tokens, facts.tells_cache) == (3000, 2960, True)


@pytest.mark.parametrize(
    ("first", "second", "added"),
    [
        (3000, 1000, 4000),  # without the tokens of the cache, as old versions count
        (3000, 3400, 4000),
        (3000, 3010, 40),
        (12, 12, 4000),  # nobody has so small a context
        (0, 0, 4000),
    ],
)
async def test_what_may_be_whole_is_an_answer(server: FaultyServer, first: int, second: int, added: int) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST)).chat(usage(first), usage(second))
    model = LlamaCppModel(server.url)
    await collect(model, conversation(4000, 8000 if first > 100 else 400))
    got = await collect(model, conversation(4000, 8000 if first > 100 else 400, 40, added))
    await model.close()
    assert got.text == "hi"


async def test_a_long_run_of_one_character_may_be_few_tokens(server: FaultyServer) -> None:
    ollama(server, loaded(in_memory("coder:latest", context_length=32768))).chat(usage(3000), usage(3100))
    model = LlamaCppModel(server.url)
    before = conversation(4000, 8000)
    await collect(model, before)
    ruled = Message(Role.USER, ("=" * 4000 + "\n" + " " * 4000) * 5)
    more = (*before.messages, Message(Role.ASSISTANT, "abc"), ruled)
    assert (await collect(model, replace(before, messages=more))).text == "hi"
    await model.close()


@pytest.mark.parametrize(
    ("version", "is_cut"), [("0.3.9", False), ("0.30.2", False), ("0.31.0", True), ("0.4.0", True)]
)
async def test_a_version_of_ollama_that_tells_only_what_it_read_anew_is_not_judged(
    server: FaultyServer, version: str, is_cut: bool
) -> None:
    ollama(server, loaded(in_memory("coder:latest", context_length=32768))).chat(usage(6000), usage(1200))
    server.on("/api/version", as_json({"version": version}))
    model = LlamaCppModel(server.url)
    await collect(model, conversation(4000, 20000))
    with pytest.raises(ContextOverflow) if is_cut else contextlib.nullcontext():
        await collect(model, conversation(4000, 20000, 400, 4000))
    await model.close()


@pytest.mark.parametrize("word", ["नमस्ते ", "வணக்கம் ", "привет "])
async def test_a_word_of_any_script_may_be_one_token(server: FaultyServer, word: str) -> None:
    ollama(server, loaded(in_memory("coder:latest", context_length=32768))).chat(usage(2100), usage(2600))
    model = LlamaCppModel(server.url)
    before = ModelRequest((Message(Role.USER, word * 2000),))
    await collect(model, before)
    more = (*before.messages, Message(Role.ASSISTANT, "abc"), Message(Role.USER, word * 500))
    assert (await collect(model, replace(before, messages=more))).text == "hi"
    await model.close()


async def test_another_conversation_is_not_compared_with_the_last(server: FaultyServer) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST)).chat(usage(6000), usage(2000), stream(delta("hi"), END))
    model = LlamaCppModel(server.url)
    await collect(model, conversation(4000, 20000))
    await collect(model, conversation(4004, 4000))
    await collect(model, conversation(4004, 4000, 40, 4000))
    await model.close()


def reading(context: int, *, refuses: bool = False) -> Reaction:
    """A server that reads a token for each word, and of a prompt without room half its context, as Ollama does."""

    def answer(request: Request) -> Answer:
        messages = request.json["messages"]
        assert isinstance(messages, list)
        tokens = sum(len(message["content"].split()) + 4 for message in messages)
        if refuses and tokens > context:
            return error(400, f"{tokens} tokens exceed the context of {context}", "exceed_context_size_error")
        return usage(tokens if tokens < context else context // 2 + 2)

    return answer


def reading_anew() -> Reaction:
    """A server that tells a token for each word which its cache, the last prompt, does not have."""
    last: list[str] = []

    def answer(request: Request) -> Answer:
        messages = request.json["messages"]
        assert isinstance(messages, list)
        words = messages[-1]["content"].split()
        known = list(takewhile(lambda pair: pair[0] == pair[1], zip(words, last, strict=False)))
        last[:] = words
        return usage(len(words) - len(known) + 4)

    return answer


@pytest.mark.parametrize(
    ("reaction", "measured", "health", "seen", "advice"),
    [
        (
            reading(6000),
            MeasuredContext(4095, cut=True),
            Health.WARNING,
            "about 4095 tokens, measured",
            "context_tokens: 4095",
        ),
        (
            reading(4096, refuses=True),
            MeasuredContext(4096, cut=True),
            Health.WARNING,
            "about 4096 tokens",
            "context_tokens: 4096",
        ),
        (reading(1500), MeasuredContext(752, cut=True), Health.WARNING, "about 752 tokens", "context_tokens: 752"),
        (reading_anew(), MeasuredContext(8195), Health.GOOD, "at least 8195 tokens, measured", ""),
        (reading(100_000), MeasuredContext(8195), Health.GOOD, "at least 8195 tokens, measured", ""),
        (stream(delta("hi"), END), MeasuredContext(), Health.WARNING, "does not say", "set model.context_tokens"),
    ],
)
async def test_a_context_that_nobody_states_is_measured(
    server: FaultyServer, reaction: Reaction, measured: MeasuredContext, health: Health, seen: str, advice: str
) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST)).chat(reaction)
    model = LlamaCppModel(server.url)
    found = await context_finding(model, await model.observe(), local=True)
    assert (found.health, seen in found.seen, advice in found.advice) == (health, True, True), found
    await model.close()
    again = LlamaCppModel(server.url)
    assert await measure_context(again) == measured
    await again.close()


class Slow:
    """A model that reads small prompts whole, and whose time is over or whose server fails at a larger one."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return ModelFacts("http://fake", "slow", 0)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        tokens = len(request.messages[-1].text.split())
        if tokens > 3000:
            raise self._failure
        yield AnswerEnd(StopCause.LENGTH, AnswerFigures(prompt_tokens=tokens))

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return (0,) * len(texts)

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    ("failure", "seen", "advice"),
    [
        (TimeoutError(), "at least 2051 tokens, measured", "more took longer than 60 s to try"),
        (ModelRefused("too much"), "about 2051 tokens, measured", "context_tokens: 2051"),
    ],
)
async def test_a_measurement_that_comes_to_no_end_says_how_far_it_came(
    failure: Exception, seen: str, advice: str
) -> None:
    model = Slow(failure)
    found = await context_finding(model, await model.observe(), local=True)
    assert (found.health, seen in found.seen, advice in found.advice) == (Health.WARNING, True, True), found


async def test_a_server_elsewhere_is_not_measured(server: FaultyServer) -> None:
    server.on("/v1/models", as_json(OLLAMA_LIST))
    model = LlamaCppModel(server.url)
    found = await context_finding(model, await model.observe(), local=False)
    await model.close()
    assert found.advice == "set model.context_tokens to its size"
    assert not server.asked("/v1/chat/completions")


async def test_a_small_context_is_told_with_what_makes_it_larger(server: FaultyServer) -> None:
    ollama(server, loaded(in_memory("coder:latest", context_length=4096)))
    model = LlamaCppModel(server.url)
    found = await context_finding(model, await model.observe(), local=True)
    await model.close()
    assert (found.health, found.seen) == (Health.WARNING, "4096 tokens for one conversation (/api/ps)")
    assert "OLLAMA_CONTEXT_LENGTH=16384" in found.advice
