import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core.errors import ModelRefused
from agent_workbench.core.model import AnswerItem, Message, ModelRequest, Purpose, Role, StopCause
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


async def test_a_rejected_answer_may_have_another_and_a_reflexion_is_no_step(llama_server: LlamaServer) -> None:
    scripts = {"T-1": [FIRST, "Reflexion: oh", LAST], "T-1:0": [SECOND]}
    model = ScriptedModel(llama_server.model(), scripts)
    assert (await collect(model, _request(FIRST, "The user rejected it"))).text == SECOND
    assert (await collect(model, _request(FIRST, "The user rejected it", SECOND, "applied"))).text == LAST
    await model.close()


async def test_an_answer_is_given_whole_whatever_the_limit(model: ScriptedModel) -> None:
    assert (await collect(model, _request(answer_tokens=1))).text == FIRST


async def test_answers_stay_given_when_a_summary_takes_their_place(model: ScriptedModel) -> None:
    assert (await collect(model, replace(_request(), answered=2))).text == LAST
    assert (await collect(model, replace(_request(FIRST, "x"), answered=0))).text == FIRST


@pytest.mark.parametrize("text", [FIRST, SECOND, LAST, "two  spaces\n\n", "ends with a return\r\n"])
async def test_the_server_finds_its_own_answer_in_its_cache(llama_server: LlamaServer, text: str) -> None:
    model = ScriptedModel(llama_server.model(), {"T-1": [text]})
    first = await collect(model, _request(f"before {text}", "and then"))
    again = await collect(model, _request(f"before {text}", "and then", text, "go on"))
    await model.close()
    assert again.end.figures.cached_tokens >= first.end.figures.prompt_tokens + first.end.figures.answer_tokens - 1


async def test_a_server_that_takes_no_tokens_is_held_to_the_text(llama_server: LlamaServer) -> None:
    inner = _Refusing(llama_server.model())
    model = ScriptedModel(inner, SCRIPTS)
    assert [(await collect(model, _request())).text for _ in range(2)] == [FIRST, FIRST]
    await model.close()
    assert ["<[" in grammar for grammar in inner.grammars] == [True, False, False]


class _Refusing:
    """A model on a server whose grammars know no tokens."""

    def __init__(self, inner: LlamaCppModel) -> None:
        self._inner = inner
        self.grammars: list[str] = []
        self.observe, self.count_tokens = inner.observe, inner.count_tokens
        self.tokens_of, self.close = inner.tokens_of, inner.close

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        self.grammars.append(request.grammar)
        if "<[" in request.grammar:
            raise ModelRefused("the grammar cannot be read")
        async with contextlib.aclosing(self._inner.answer(request)) as items:
            async for item in items:
                yield item


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
