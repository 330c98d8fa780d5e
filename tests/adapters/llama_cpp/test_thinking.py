"""Chat templates with thoughts: what is asked of the server, and what of its stream is the answer."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.gbnf import Thinking, sentence_grammar, with_thought
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.model import StopCause
from agent_workbench.core.settings.models import ServingSettings
from scripts.tiny_model import Template, write_tiny_gguf
from tests.adapters.llama_cpp.answers import ask, collect
from tests.adapters.llama_cpp.contract import SENTENCE
from tests.fakes.faulty_server import END, PROPS, FaultyServer, as_json, delta, event, stream

GRAMMAR = 'root ::= "yes"\n'
ASKING = "<|user|>?<|assistant|>"


def _server(template: str, prompt: str) -> FaultyServer:
    thought = event({"choices": [{"delta": {"reasoning_content": "hm\n"}}]})
    answer = stream(thought, delta("\n"), delta("\nyes\n"), delta("\nno"), END)
    server = FaultyServer().on("/props", as_json({**PROPS, "chat_template": template})).chat(answer)
    return server.on("/apply-template", as_json({"prompt": prompt}))


@pytest.mark.parametrize(
    ("template", "prompt", "thinking"),
    [
        ("{{ messages }}", ASKING, Thinking.NONE),
        ("{{ messages }}<think>", ASKING + "<think>\n", Thinking.OPENED),
        ("{{ messages }}<think>", ASKING, Thinking.OFFERED),
        ("{{ messages }}<think>", ASKING + "<think>\n\n</think>\n\n", Thinking.OFFERED),
    ],
)
async def test_what_is_asked_for_follows_the_template(template: str, prompt: str, thinking: Thinking) -> None:
    async with _server(template, prompt) as server:
        model = LlamaCppModel(server.url)
        await collect(model, ask(grammar=GRAMMAR, answer_tokens=50))
        await model.close()
        (request,) = server.asked("/v1/chat/completions")
    assert request.json["grammar"] == with_thought(GRAMMAR, thinking)
    assert request.json["max_tokens"] == (50 if thinking is Thinking.NONE else 100)


async def test_line_ends_after_a_thought_are_no_part_of_the_answer() -> None:
    async with _server("<think>", ASKING + "<think>\n") as server:
        model = LlamaCppModel(server.url)
        got = await collect(model, ask(grammar=GRAMMAR))
        await model.close()
    assert got.text == "yes\n\nno"


async def test_line_ends_before_an_answer_are_kept_where_nobody_thinks() -> None:
    async with FaultyServer().chat(stream(delta("\n"), delta("\nyes\n"), delta("\nno"), END)) as server:
        model = LlamaCppModel(server.url)
        got = await collect(model, ask(grammar=GRAMMAR))
        await model.close()
    assert got.text == "\n\nyes\n\nno"


@pytest.mark.parametrize("template", ["think", "hybrid"])
async def test_a_real_server_streams_the_answer_and_nothing_else(tmp_path: Path, template: Template) -> None:
    path = tmp_path / f"{template}.gguf"
    await asyncio.to_thread(write_tiny_gguf, path, template=template)
    model = EmbeddedModel(EmbeddedServer(path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(8192)))
    thoughts = []
    for number in range(24):
        got = await collect(
            model, ask(f"{number}?", grammar=sentence_grammar(SENTENCE), answer_tokens=1500, seed=number)
        )
        assert (got.text, got.end.stop) == (SENTENCE, StopCause.END)
        assert len(got.deltas) > 3
        thoughts.append(got.thought)
    assert (await model.observe()).thinks
    assert any(thoughts)
    assert not [thought for thought in thoughts if "think>" in thought or SENTENCE in thought]
    await model.close()
