import time
from collections.abc import AsyncIterator

import pytest

from agent_workbench.adapters.llama_cpp.scripted import ScriptedModel
from agent_workbench.core.model import Message, ModelRequest, Purpose, Role, StopCause
from tests.adapters.llama_cpp.answers import collect
from tests.llama_fixtures import LlamaServer

FIRST = 'Thought: look.\nAction: read_file\n{"path": "é.py"}'
SECOND = "Thought: mend it.\nAction: write_diff\n--- a/é.py\n+++ b/é.py\n@@ -1 +1 @@\n-a\n+b\n"
LAST = "Thought: done 😀.\nAction: finish\n{}"
SCRIPTS = {"T-1": [FIRST, SECOND, LAST], "T-2": ["only"], "T-1:reflexion": ["I was too quick."]}


@pytest.fixture
async def model(llama_server: LlamaServer) -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel(llama_server.model(), SCRIPTS)
    yield model
    await model.close()


def _request(
    *turns: str, subject: str = "T-1", purpose: Purpose = Purpose.EXECUTOR, answer_tokens: int = 100
) -> ModelRequest:
    """Return a request: a task, then answers and observations in turn."""
    messages = [Message(Role.SYSTEM, "Be careful."), Message(Role.USER, "The task.")]
    for number, turn in enumerate(turns):
        messages.append(Message(Role.USER if number % 2 else Role.ASSISTANT, turn))
    return ModelRequest(tuple(messages), purpose=purpose, answer_tokens=answer_tokens, subject=subject)


async def test_says_that_it_is_scripted(model: ScriptedModel) -> None:
    assert (await model.observe()).scripted


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        ((), FIRST),
        ((FIRST, "what is in it"), SECOND),
        ((FIRST, "what is in it", SECOND, "applied"), LAST),
        ((FIRST, "x", SECOND, "y", LAST, "z"), LAST),
        ((FIRST, "x", SECOND, "The user rejected this diff: too much"), SECOND),
        ((FIRST, "x", SECOND, "1 hunk\nThe user rejected hunk 1", SECOND, "applied"), LAST),
        ((FIRST, "The user rejected it", FIRST, "The user rejected it"), FIRST),
        ((FIRST, "He said: The user rejected it"), SECOND),
    ],
)
async def test_gives_one_answer_after_the_other(model: ScriptedModel, turns: tuple[str, ...], text: str) -> None:
    got = await collect(model, _request(*turns))
    assert got.text == text
    assert got.end.stop is StopCause.END
    assert len(got.deltas) > 3


async def test_each_subject_has_its_script(model: ScriptedModel) -> None:
    assert (await collect(model, _request(subject="T-2"))).text == "only"


async def test_other_purposes_have_their_own(model: ScriptedModel) -> None:
    got = await collect(model, _request(FIRST, "it failed", purpose=Purpose.REFLEXION))
    assert got.text == "I was too quick."


async def test_an_answer_is_given_whole_whatever_the_limit(model: ScriptedModel) -> None:
    assert (await collect(model, _request(answer_tokens=1))).text == FIRST


async def test_asks_the_model_itself_where_there_is_no_script(model: ScriptedModel) -> None:
    got = await collect(model, _request(subject="T-9", answer_tokens=5))
    assert got.end.figures.answer_tokens <= 5


async def test_can_be_slowed_down(llama_server: LlamaServer) -> None:
    model = ScriptedModel(llama_server.model(), {"T-1": ["a" * 20]}, tokens_per_second=50)
    await model.observe()
    begun = time.monotonic()
    got = await collect(model, _request())
    await model.close()
    assert time.monotonic() - begun >= len(got.deltas) / 50
