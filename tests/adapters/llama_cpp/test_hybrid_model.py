"""A model with a recurrent layer on the real server: where its prompts part it goes on from a checkpoint."""

from collections.abc import Iterator

import pytest

from agent_workbench.adapters.llama_cpp.gguf_files import read_gguf_facts
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.core.model import Message, ModelRequest, Role
from tests.adapters.llama_cpp.answers import collect
from tests.adapters.llama_cpp.hybrid_model import write_hybrid_gguf
from tests.llama_fixtures import LlamaServer, ServerThread

AGAIN_TOKENS = 8
"""Tokens that a prompt reads again: a checkpoint is made a little before its end."""
WORDS = "the file is read and the test is run again with a change that has to be right "
ANSWER = "Action: read_file"


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    folder = tmp_path_factory.mktemp("hybrid")
    write_hybrid_gguf(folder / "hybrid.gguf", temperature=0.375)
    thread = ServerThread(folder / "hybrid.gguf", folder / "server.log")
    server = thread.start()
    yield server
    thread.stop()


def test_its_header_is_read(hybrid: LlamaServer) -> None:
    facts = read_gguf_facts(hybrid.model_path)
    assert facts.recurrent
    assert facts.kv_heads == (0, 2)
    assert facts.sampling == (("temp", 0.375),)


async def test_thoughts_that_are_not_sent_back_make_it_read_nothing_again(hybrid: LlamaServer) -> None:
    model = hybrid.model()
    messages = [Message(Role.SYSTEM, WORDS * 30), Message(Role.USER, WORDS * 20)]
    before, again = 0, []
    for turn in range(6):
        grammar = f'root ::= "{ANSWER}"'
        got = await collect(model, ModelRequest(tuple(messages), grammar=grammar, answer_tokens=200, seed=turn))
        assert (got.text, bool(got.thought)) == (ANSWER, True)
        figures = got.end.figures
        read = figures.prompt_tokens - figures.cached_tokens
        again.append(read - (figures.prompt_tokens - before))
        before = figures.prompt_tokens
        messages += [Message(Role.ASSISTANT, ANSWER), Message(Role.USER, WORDS * (3 if turn % 2 else 10))]
    await model.close()
    assert before > 2_500
    assert max(again[1:]) <= AGAIN_TOKENS, again


async def test_the_server_samples_as_the_file_recommends(hybrid: LlamaServer) -> None:
    endpoint = Endpoint(hybrid.url, hybrid.api_key)
    reply = await endpoint.get("/props", 1e12)
    await endpoint.close()
    assert reply.json is not None
    settings = reply.json["default_generation_settings"]
    assert isinstance(settings, dict)
    assert settings["params"]["temperature"] == pytest.approx(0.375)
