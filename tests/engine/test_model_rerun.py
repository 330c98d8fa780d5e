"""A session asked again of a live model: the same model gives the same answers, another one is told apart."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.core.events import PromptBuilt, Recorded
from agent_workbench.core.history.replay_marks import ReproducedPrompt
from agent_workbench.core.ports.model import Model
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Limits, Settings
from agent_workbench.core.settings.models import ModelSettings, ServingSettings
from agent_workbench.engine.rerun import rerun, rerun_with_model
from agent_workbench.engine.session.unattended import run_unattended
from scripts.tiny_model import write_tiny_gguf
from tests.adapters.git.user import make_repo
from tests.engine.front import in_front_of
from tests.engine.stage import OPEN, a_stage, call
from tests.fakes.ports import GivenChunks, Hang, SayingModel

SETTINGS = Settings(limits=Limits(max_tool_calls_per_task=5), model=ModelSettings(answer_tokens=300))
CHUNKS = GivenChunks((Chunk("answer.txt", 1, 1, "wrong", 1.0),))


def embedded(model: Path, log: Path) -> EmbeddedModel:
    """Return a server of its own, so that nothing is in its cache."""
    return EmbeddedModel(EmbeddedServer(model, log=log, environ=os.environ, serving=ServingSettings(16_384)))


async def recorded_with(folder: Path, model: Model) -> tuple[Repository, tuple[Recorded, ...]]:
    """Have a model do what it will for a few steps; return the repo and the journal."""
    # Unattended: what would have to wait for a person (a file renamed or removed) is refused.
    async with a_stage(
        folder, settings=SETTINGS, approvals=OPEN, model=model, retriever=CHUNKS, headless=True
    ) as stage:
        await run_unattended(stage.session, stage.recorder, None)
        return Repository(stage.user.root, folder / "elsewhere"), stage.journal()


async def asked(events: tuple[Recorded, ...], model: Model, trees: Repository) -> list[ReproducedPrompt]:
    try:
        return [prompt async for prompt in rerun_with_model(events, model, trees.recorded_files, SETTINGS)]
    finally:
        await model.close()


@pytest.mark.slow
async def test_the_same_model_answers_the_same_and_another_does_not(tmp_path: Path, tiny_model_path: Path) -> None:
    log = tmp_path / "server.log"
    trees, journal = await recorded_with(tmp_path, embedded(tiny_model_path, log))
    prompts = [each.event for each in journal if isinstance(each.event, PromptBuilt)]
    assert len(prompts) >= 5
    assert all(prompt.grammar_sha and prompt.seed for prompt in prompts)
    assert all(prompt.difference is None for prompt in rerun(journal))
    again = await asked(journal, embedded(tiny_model_path, log), trees)
    assert [(each.compared, each.difference, each.remark) for each in again] == [(True, None, "")] * len(prompts)
    other = tmp_path / "other.gguf"
    await asyncio.to_thread(write_tiny_gguf, other, seed=2)
    first = (await asked(journal, embedded(other, log), trees))[0]
    assert first.difference is not None
    assert first.difference.what == "the answer is another one"
    assert first.difference.diff.startswith("@@")


async def test_what_cannot_be_asked_the_same_way_is_said(tmp_path: Path) -> None:
    step = call("read_file", '{"path": "answer.txt"}')
    async with a_stage(tmp_path, [step, Hang("Thought: I")], approvals=OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Thought: I")
        root = stage.user.root
    journal = stage.journal()
    empty = tmp_path / "empty"
    empty.mkdir()
    for name, words in ((root, ""), (_another_repo(empty), "asked without a grammar, it could not be made again")):
        model = SayingModel([step])
        first, second = await asked(journal, model, Repository(name, tmp_path / "elsewhere"))
        assert first.difference is None
        assert first.remark.startswith(words)
        assert bool(first.remark) == bool(words)
        assert (second.compared, second.remark) == (False, "no whole answer is recorded")
        (request,) = model.requests
        assert bool(request.grammar) != bool(words)
        assert request.seed == next(each.event.seed for each in journal if isinstance(each.event, PromptBuilt))


def _another_repo(folder: Path) -> Path:
    return make_repo(folder, {"a": "b\n"}).root
