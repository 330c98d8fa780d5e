"""What a real server shows of the client beyond the contract."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from agent_workbench.adapters.llama_cpp.gbnf import sentence_grammar
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.server_answers import JsonObject, number_at
from agent_workbench.core.errors import ModelRefused
from agent_workbench.core.model import Message, ModelRequest, Role
from tests.adapters.llama_cpp.answers import ask, collect
from tests.adapters.llama_cpp.contract import ENDLESS
from tests.llama_fixtures import LlamaServer


@pytest.fixture
async def model(llama_server: LlamaServer) -> AsyncIterator[LlamaCppModel]:
    model = llama_server.model()
    yield model
    await model.close()


async def _slot(server: LlamaServer) -> JsonObject:
    """Return what the server says of its one slot."""
    endpoint = Endpoint(server.url, server.api_key)
    reply = await endpoint.get("/slots", asyncio.get_running_loop().time() + 10)
    await endpoint.close()
    assert reply.ok
    (slot,) = json.loads(reply.body)
    assert isinstance(slot, dict)
    return slot


async def test_an_early_end_frees_the_slot(llama_server: LlamaServer, model: LlamaCppModel) -> None:
    async with contextlib.aclosing(model.answer(ask(grammar=ENDLESS, answer_tokens=7000))) as items:
        async for _ in items:
            assert (await _slot(llama_server))["is_processing"] is True
            break
    async with asyncio.timeout(30):
        while (slot := await _slot(llama_server))["is_processing"]:  # noqa: ASYNC110 - a slot sets no event
            # Asked too often, the server does not come to look whether anybody listens.
            await asyncio.sleep(0.2)
    # Had it gone on to its end, the slot would hold them all; how many it had by then is the machine's speed.
    assert number_at(slot, "n_prompt_tokens") < 7000


async def test_many_streams_one_after_the_other(model: LlamaCppModel) -> None:
    # A connection that is used again after a stream fails in one of three to five requests.
    for number in range(40):
        text = f"number {number}"
        assert (await collect(model, ask(grammar=sentence_grammar(text)))).text == text


async def test_streams_at_the_same_time_wait_for_each_other(model: LlamaCppModel) -> None:
    texts = [f"number {number}" for number in range(4)]
    got = await asyncio.gather(*(collect(model, ask(grammar=sentence_grammar(text))) for text in texts))
    assert [answer.text for answer in got] == texts


async def test_a_prompt_that_grows_at_its_end_is_read_once(model: LlamaCppModel) -> None:
    messages = [Message(Role.SYSTEM, "Be careful. " * 30), Message(Role.USER, "The task.")]
    evaluated = []
    for number in range(5):
        text = f"Thought: step {number}"
        got = await collect(model, ModelRequest(tuple(messages), grammar=sentence_grammar(text)))
        figures = got.end.figures
        evaluated.append(figures.prompt_tokens - figures.cached_tokens)
        messages += [Message(Role.ASSISTANT, got.text), Message(Role.USER, f"Observation: {number}")]
    assert max(evaluated[1:]) < 40


async def test_a_prompt_is_not_read_again_after_requests_on_the_side(model: LlamaCppModel) -> None:
    """A commit message or a summary has the one slot for a while; the prompt of the task comes back from memory."""
    task = Message(Role.USER, " ".join(f"Line {number} of the file is about the cart." for number in range(150)))
    first = await collect(model, ModelRequest((task,), grammar=sentence_grammar("A thought.")))
    for number in range(3):
        aside = Message(Role.USER, " ".join(f"Change {number} of {each} was made." for each in range(80)))
        assert (await collect(model, ModelRequest((aside,), grammar=sentence_grammar("Said.")))).text == "Said."
    grown = (task, Message(Role.ASSISTANT, first.text), Message(Role.USER, "Observation: it is so."))
    again = (await collect(model, ModelRequest(grown, grammar=sentence_grammar("Done.")))).end.figures
    read_again = first.end.figures.prompt_tokens - again.cached_tokens
    assert first.end.figures.prompt_tokens > 1000
    assert read_again <= first.end.figures.prompt_tokens // 100


async def test_counts_are_remembered(model: LlamaCppModel, llama_server: LlamaServer) -> None:
    texts = [f"text {number} of some" for number in range(50)]
    first = await model.count_tokens(texts)
    await model.close()
    again = llama_server.model()
    assert await again.count_tokens(list(reversed(texts))) == tuple(reversed(first))
    await again.close()


async def test_text_that_is_no_unicode_is_sent_nevertheless(model: LlamaCppModel) -> None:
    got = await collect(model, ask("half \ud83d and \x00", grammar=sentence_grammar("ok")))
    assert got.text == "ok"
    (count,) = await model.count_tokens(["half \ud83d"])
    assert count > 0


async def test_a_wrong_key(llama_server: LlamaServer) -> None:
    model = LlamaCppModel(llama_server.url, api_key="wrong")
    with pytest.raises(ModelRefused, match="API key"):
        await model.observe()
    await model.close()


async def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    llama_server: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    model = llama_server.model()
    assert (await model.observe()).model == "tiny.gguf"
    await model.close()
