"""Thinking models in a task: the thought is in the journal, the answer is right, and the thought is in no prompt."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core.events import InterruptCause, ModelAnswered, ModelInterrupted, ModelObserved, TaskCommitted
from agent_workbench.core.model import (
    AnswerEnd,
    Message,
    ModelRequest,
    Purpose,
    Role,
    Sampling,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.engine.prompt.messages import build_parts
from scripts.tiny_model import Template, write_tiny_gguf
from tests.engine.stage import FINISH, OPEN, a_stage, call, change
from tests.engine.test_executor import run
from tests.fakes.faulty_server import END, PROPS, FaultyServer, as_json, delta, event, stream

STEPS = (*(call("note", f'{{"text": "look {number}"}}') for number in range(6)), change("wrong", "right"), FINISH)


@pytest.mark.parametrize("template", ["think", "hybrid"])
async def test_a_task_with_a_model_that_thinks(tmp_path: Path, template: Template) -> None:
    path = tmp_path / "tiny.gguf"
    await asyncio.to_thread(write_tiny_gguf, path, template=template)
    served = EmbeddedModel(
        EmbeddedServer(path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(16384))
    )
    model = ScriptedModel(served, {"T-1": STEPS})
    async with a_stage(tmp_path, model=model, approvals=OPEN) as stage:
        await run(stage)
        answers = [event for event in stage.events if isinstance(event, ModelAnswered)]
        assert tuple(answer.text for answer in answers) == STEPS
        assert any(isinstance(event, TaskCommitted) for event in stage.events)
        assert any(isinstance(event, ModelObserved) and event.facts.thinks for event in stage.events)
        thoughts = [answer.reasoning.strip() for answer in answers if answer.reasoning.strip()]
        assert thoughts or template == "hybrid", "there a thought is only offered"
        prompt = "".join(part.text for part in build_parts(stage.state, Purpose.EXECUTOR))
        assert not [thought for thought in thoughts if len(thought) > 8 and thought in prompt]
    await model.close()


async def test_a_thought_over_its_budget_is_ended_and_the_answer_follows(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    await asyncio.to_thread(write_tiny_gguf, path, template="think")
    server = EmbeddedServer(path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(2048))
    model = EmbeddedModel(server)

    async def answer(budget: int | None) -> tuple[str, str, StopCause]:
        sampling = Sampling(temperature=1.0, thinking_budget_tokens=budget)
        request = ModelRequest(
            (Message(Role.USER, "?"),),
            grammar='root ::= "Answer: " [a-z]+',
            answer_tokens=60,
            sampling=sampling,
            seed=3,
        )
        thought, text = "", ""
        async for item in model.answer(request):
            match item:
                case ThoughtDelta():
                    thought += item.text
                case TextDelta():
                    text += item.text
                case AnswerEnd():
                    return thought, text, item.stop
                case _:
                    pass
        raise AssertionError("it has no end")

    free, _, _ = await answer(None)
    thought, text, stop = await answer(8)
    await model.close()
    assert free.startswith(thought)
    assert 0 < len(thought) < len(free)
    assert (text[:8], stop) == ("Answer: ", StopCause.END)


@pytest.mark.parametrize("text", [True, False])
async def test_a_thought_that_breaks_off_is_kept(tmp_path: Path, text: bool) -> None:
    thought = event({"choices": [{"delta": {"reasoning_content": "I wonder "}}]})
    parts = (thought, thought, *((delta("Thought: so"),) if text else ()))
    async with (
        FaultyServer().chat(stream(*parts, cut=True)) as server,
        a_stage(tmp_path, model=LlamaCppModel(server.url), approvals=OPEN, headless=True) as stage,
    ):
        await run(stage)
        (broken,) = (event for event in stage.events if isinstance(event, ModelInterrupted))
    assert (broken.cause, broken.reasoning) == (InterruptCause.DIED, "I wonder I wonder ")
    assert broken.partial == ("Thought: so" if text else "")


async def test_a_server_swapped_for_another_between_two_steps_is_met_anew(tmp_path: Path) -> None:
    smaller = as_json({**PROPS, "default_generation_settings": {"n_ctx": 3000}, "model_path": "/models/small.gguf"})
    answers = [stream(delta(text), END) for text in (call("note", '{"text": "a"}'), change("wrong", "right"), FINISH)]
    server = FaultyServer().chat(*answers).on("/props", as_json(PROPS), smaller)
    async with server, a_stage(tmp_path, model=LlamaCppModel(server.url), approvals=OPEN) as stage:
        await run(stage)
        met = [event.facts for event in stage.events if isinstance(event, ModelObserved)]
        assert any(isinstance(event, TaskCommitted) for event in stage.events)
    told = [(facts.model, facts.context_tokens) for facts in met]
    assert (told[0], told[-1]) == (("fake.gguf", 4096), ("small.gguf", 3000))
