"""The same seed and the same prompt give the same answer on a server of ours."""

import os
from pathlib import Path

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.gbnf import sentence_grammar
from agent_workbench.core.model import ModelRequest, Sampling
from agent_workbench.core.settings.models import ServingSettings
from tests.adapters.llama_cpp.answers import ask, collect

# What lies in the cache, and how much of it, is another thing each time.
PROMPTS = ("The file. ", "A test of the file number 7. " * 25, "Read the lines and run the test again. " * 120)
WORDS = "root ::= [a-z ]{60,200}\n"


def _request(prompt: str, seed: int = 7) -> ModelRequest:
    return ask(prompt, grammar=WORDS, answer_tokens=250, seed=seed, exact=True)


async def test_an_exact_answer_is_the_same_whatever_was_asked_before_and_by_whichever_start(
    tiny_model_path: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(tiny_model_path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(8192))
    model = EmbeddedModel(server)
    first = [(await collect(model, _request(prompt))).text for prompt in PROMPTS]
    again = [(await collect(model, _request(prompt))).text for prompt in PROMPTS]
    between = []
    for prompt in PROMPTS:
        # The same beginning, read into the cache by others and left there.
        await collect(model, ask(prompt, grammar=sentence_grammar("yes")))
        await collect(model, ask(prompt[: len(prompt) // 2] + "and something else. " * 9, grammar=WORDS))
        got = await collect(model, _request(prompt))
        between.append(got.text)
        assert got.end.figures.cached_tokens == 0
    await server.stop()
    after = [(await collect(model, _request(prompt))).text for prompt in reversed(PROMPTS)]
    await model.close()
    assert len(set(first)) == len(PROMPTS)
    assert first == again == between == list(reversed(after))


async def test_another_seed_is_another_answer_and_no_heat_is_one_for_all(tiny_model_path: Path, tmp_path: Path) -> None:
    model = EmbeddedModel(
        EmbeddedServer(tiny_model_path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(2048))
    )
    assert len({(await collect(model, _request(PROMPTS[0], seed))).text for seed in range(4)}) == 4
    cold = Sampling(temperature=0.0)
    answers = {(await collect(model, ask(PROMPTS[0], seed=seed, sampling=cold, exact=True))).text for seed in range(4)}
    await model.close()
    assert len(answers) == 1
