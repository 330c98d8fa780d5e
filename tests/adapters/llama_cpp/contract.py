"""What holds for every `Model` that is served by llama.cpp: a suite to inherit, which needs a fixture `model`."""

import contextlib
import time

import pytest

from agent_workbench.adapters.llama_cpp.gbnf import sentence_grammar
from agent_workbench.core.errors import ContextOverflow
from agent_workbench.core.model import StopCause
from agent_workbench.core.ports.model import Model
from tests.adapters.llama_cpp.answers import ask, collect

# No sentence of this grammar is finite: an answer goes on until it is cut.
ENDLESS = "root ::= [a-z ] root\n"
SENTENCE = 'Thought: "é😀" \\n is {no} [set] — done.\r\n\tAction: note\n{"a": "\\\\"}\x7f'


class ModelContract:
    async def test_introduces_itself(self, model: Model) -> None:
        facts = await model.observe()
        assert facts.context_tokens == 8192
        assert facts.model == "tiny.gguf"
        assert len(facts.template_hash) == 64
        assert "unknown" not in facts.build
        assert facts.takes_grammar
        assert facts.counts_tokens
        assert await model.observe() == facts

    async def test_streams_an_answer_and_ends_it_once(self, model: Model) -> None:
        got = await collect(model, ask(grammar=sentence_grammar("one two three four five six")))
        assert len(got.deltas) > 3
        assert all(got.deltas)
        assert got.last_is_end
        assert got.end.stop is StopCause.END

    async def test_says_what_the_grammar_says(self, model: Model) -> None:
        got = await collect(model, ask(grammar=sentence_grammar(SENTENCE), answer_tokens=200))
        assert got.text == SENTENCE

    async def test_measures(self, model: Model) -> None:
        prompt = "The file holds a test. " * 40
        first = await collect(model, ask(prompt, grammar=sentence_grammar("yes")))
        again = await collect(model, ask(prompt, grammar=sentence_grammar("yes")))
        figures = first.end.figures
        assert figures.prompt_tokens > 200
        assert figures.answer_tokens >= 1
        assert figures.prompt_seconds > 0
        assert figures.answer_seconds > 0
        assert figures.tokens_per_second > 0
        assert again.end.figures.cached_tokens >= figures.prompt_tokens - 2
        assert first.progress[-1].processed_tokens == first.progress[-1].total_tokens == figures.prompt_tokens

    async def test_cuts_at_the_limit_and_says_so(self, model: Model) -> None:
        got = await collect(model, ask(grammar=ENDLESS, answer_tokens=20))
        assert got.end.stop is StopCause.LENGTH
        assert got.end.figures.answer_tokens == 20

    async def test_counts_tokens(self, model: Model) -> None:
        nothing, one, many, same = await model.count_tokens(["", "a", "the file and the test " * 50, "a"])
        assert nothing == 0
        assert one == same == 1
        assert many > 100

    async def test_is_free_again_when_an_answer_is_closed_early(self, model: Model) -> None:
        begun = time.monotonic()
        await collect(model, ask(grammar=ENDLESS, answer_tokens=300))
        seconds = time.monotonic() - begun
        async with contextlib.aclosing(model.answer(ask(grammar=ENDLESS, answer_tokens=6000))) as items:
            await anext(items)
        begun = time.monotonic()
        await collect(model, ask(grammar=sentence_grammar("ok")))
        # Left to itself the closed answer would have gone on for twenty times as long; the server has one slot.
        assert time.monotonic() - begun < 1.0 + 4 * seconds

    async def test_refuses_a_prompt_that_does_not_fit(self, model: Model) -> None:
        with pytest.raises(ContextOverflow) as caught:
            await collect(model, ask("a b c d e f g h " * 2000))
        assert caught.value.context_tokens == 8192
        assert caught.value.prompt_tokens > 8192
        assert caught.value.advice

    async def test_answers_without_a_grammar_that_is_none(self, model: Model) -> None:
        assert (await collect(model, ask(grammar="root ::= missing ("))).end.figures.answer_tokens > 0
        assert (await model.observe()).takes_grammar

    async def test_closes_twice(self, model: Model) -> None:
        await model.observe()
        await model.close()
        await model.close()
