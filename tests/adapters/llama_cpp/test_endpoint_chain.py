"""Chains of endpoints against real sockets: who fails rests, the next one is asked, an earlier one is returned to."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable

import pytest

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink, StatusRelay
from agent_workbench.adapters.llama_cpp.endpoint_chain import ChainedModel
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.errors import ContextOverflow, ModelError, ModelRefused, ModelUnavailable
from agent_workbench.core.model import AnswerEnd, AnswerFigures, Purpose
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import DONE, END, PROPS, Answer, FaultyServer, as_json, delta, error, event, stream

LOADING = error(503, "Loading model", "unavailable_error")
GONE = "http://127.0.0.1:9"


class Stage:
    """A chain with what it says, and the time it goes by."""

    def __init__(self, *urls: str, rest_seconds: float = 1000.0, loading_seconds: float = 30.0) -> None:
        self.said: list[str] = []
        self.links = tuple(self._link(chr(ord("a") + place), url, rest_seconds) for place, url in enumerate(urls))
        self.model = ChainedModel({Purpose.EXECUTOR: self.links}, self.said.append, loading_seconds=loading_seconds)

    def _link(self, name: str, url: str, rest_seconds: float) -> ChainLink:
        status_relay = StatusRelay(self.said.append)
        return ChainLink(name, LlamaCppModel(url, on_status=status_relay), status_relay, rest_seconds=rest_seconds)

    async def end(self) -> str:
        """Return who answers the next step."""
        await self.model.observe()
        return (await collect(self.model, ask())).end.endpoint


@contextlib.asynccontextmanager
async def chain(*urls: str, rest_seconds: float = 1000.0, loading_seconds: float = 30.0) -> AsyncIterator[Stage]:
    stage = Stage(*urls, rest_seconds=rest_seconds, loading_seconds=loading_seconds)
    try:
        yield stage
    finally:
        await stage.model.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let others have their turn until something holds."""
    while not condition():  # noqa: ASYNC110 - nobody says when
        await asyncio.sleep(0)


def sound(text: str = "hello") -> FaultyServer:
    return FaultyServer().chat(stream(delta(text), END))


async def test_the_first_that_answers_is_asked_and_kept() -> None:
    async with sound("one") as first, sound("two") as second, chain(first.url, second.url) as stage:
        facts = await stage.model.observe()
        assert (facts.endpoint, facts.passed) == (f"a ({first.url})", ())
        got = await collect(stage.model, ask())
        assert (got.text, got.end.endpoint) == ("one", f"a ({first.url})")
        assert second.requests == []


async def test_a_dead_endpoint_is_passed_and_said() -> None:
    async with sound() as second, chain(GONE, second.url) as stage:
        facts = await stage.model.observe()
        assert facts.endpoint == f"b ({second.url})"
        assert facts.passed == (f"a: nothing answers at {GONE}",)
        assert (await collect(stage.model, ask())).text == "hello"
        assert (await stage.model.observe()).passed == facts.passed, "the same facts, so that they are recorded once"
        assert [line for line in stage.said if line.startswith("skipping a")] == [
            f"skipping a: nothing answers at {GONE}"
        ]


async def test_death_in_the_middle_says_that_another_can_be_asked() -> None:
    dying = FaultyServer().chat(stream(delta("half an"), cut=True))
    async with dying as first, sound() as second, chain(first.url, second.url) as stage:
        await stage.model.observe()
        with pytest.raises(ModelUnavailable) as caught:
            await collect(stage.model, ask())
        assert (caught.value.another, caught.value.partial) == (True, "half an")
        assert await stage.end() == f"b ({second.url})"
        assert len(first.asked("/v1/chat/completions")) == 1


async def test_the_last_one_to_fail_tells_of_all() -> None:
    dying = FaultyServer().chat(stream(delta("half an"), cut=True))
    refusing = FaultyServer().on("/props", error(401, "Invalid API Key", "authentication_error"))
    async with dying as first, refusing as third, chain(GONE, first.url, third.url) as stage:
        await stage.model.observe()
        with pytest.raises(ModelUnavailable) as mid:
            await collect(stage.model, ask())
        assert mid.value.another, "there is one left"
        with pytest.raises(ModelUnavailable) as caught:
            await stage.model.observe()
        assert not caught.value.another
        for words in (f"a: nothing answers at {GONE}", "b: ", "c: the server at", "refuses the API key"):
            assert words in str(caught.value)
        assert "c: put the key" in caught.value.advice


async def test_after_all_failed_all_are_tried_again() -> None:
    async with (
        FaultyServer().chat(error(500, "out of luck"), stream(delta("hello"), END)) as one,
        chain(GONE, one.url) as stage,
    ):
        await stage.model.observe()
        with pytest.raises(ModelUnavailable) as caught:
            await collect(stage.model, ask())
        assert not caught.value.another
        assert await stage.end() == f"b ({one.url})", "although both rest"


async def test_a_recovered_endpoint_is_returned_to_when_its_rest_is_over() -> None:
    first = FaultyServer().chat(error(500, "out of luck"), stream(delta("back"), END))
    async with first, sound() as second, chain(first.url, second.url, rest_seconds=0.0) as stage:
        await stage.model.observe()
        with pytest.raises(ModelUnavailable):
            await collect(stage.model, ask())
        assert await stage.end() == f"b ({second.url})", "not in the same round"
        assert await stage.end() == f"a ({first.url})"
        assert await stage.end() == f"a ({first.url})"


async def test_who_rests_is_left_alone() -> None:
    first = FaultyServer().chat(error(500, "out of luck"), stream(delta("back"), END))
    async with first, sound() as second, chain(first.url, second.url) as stage:
        await stage.model.observe()
        with pytest.raises(ModelUnavailable):
            await collect(stage.model, ask())
        asked = len(first.requests)
        for _ in range(3):
            assert await stage.end() == f"b ({second.url})"
        assert len(first.requests) == asked


async def test_a_rest_doubles_until_there_is_an_answer() -> None:
    link = ChainLink("a", LlamaCppModel(GONE), StatusRelay(print), rest_seconds=2.0)
    rests = []
    for _ in range(10):
        link.failed(ModelUnavailable("gone"))
        rests.append(round(link.rest_seconds()))
    assert rests == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    link.answered(AnswerFigures())
    assert (link.rest_seconds(), link.why) == (0.0, "")
    link.failed(ModelUnavailable("gone"))
    assert round(link.rest_seconds()) == 2
    await link.close()


async def test_a_long_prompt_is_not_read_anew_where_that_takes_long() -> None:
    timings = {"cache_n": 0, "prompt_n": 1000, "prompt_ms": 100_000, "predicted_n": 1, "predicted_ms": 1}
    figures = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "timings": timings})
    slow = FaultyServer().chat(
        stream(delta("one"), figures, DONE), error(500, "out of luck"), stream(delta("back"), END)
    )
    async with slow, sound() as second, chain(slow.url, second.url, rest_seconds=0.0) as stage:
        assert await stage.end() == f"a ({slow.url})"
        with pytest.raises(ModelUnavailable):
            await collect(stage.model, ask())
        for tokens, expected in ((900, second), (900, second), (500, second), (1, slow)):
            facts = await stage.model.observe()
            assert facts.endpoint.endswith(f"({expected.url})"), tokens
            await collect(stage.model, ask(prompt_tokens=tokens))


async def test_money_is_saved_even_where_that_takes_long() -> None:
    slow = FaultyServer().chat(error(500, "out of luck"), stream(delta("back"), END))
    async with slow, sound() as second, chain(slow.url, second.url, rest_seconds=0.0) as stage:
        stage.links[0].answered(AnswerFigures(prompt_tokens=1000, prompt_seconds=1000.0))
        stage.links[1].dearness = 2.0
        with pytest.raises(ModelUnavailable):
            await collect(stage.model, ask())
        await stage.model.observe()
        got = await collect(stage.model, ask(prompt_tokens=1000))
        assert got.end.endpoint == f"b ({second.url})"
        assert (await stage.model.observe()).endpoint == f"a ({slow.url})"


async def test_who_loads_is_passed_and_becomes_ready_behind() -> None:
    loaded = asyncio.Event()
    first = sound("first").on("/props", Answer(200, [loaded, as_json(PROPS).parts[0]]))
    async with (
        first,
        sound("second") as second,
        chain(first.url, second.url, rest_seconds=0.0, loading_seconds=0.5) as stage,
    ):
        assert await stage.end() == f"b ({second.url})"
        assert any("skipping a: it is not ready yet" in line for line in stage.said)
        stage.model._loading_seconds = 1000.0  # it is known to load, and not waited for again
        assert await stage.end() == f"b ({second.url})"
        assert len(first.asked("/props")) == 1, "nobody asks twice while it loads"
        loaded.set()
        link = stage.links[0]
        await until(lambda: not link.loading)
        assert await stage.end() == f"a ({first.url})"


async def test_who_loads_is_waited_for_when_nobody_else_is_left() -> None:
    loaded = asyncio.Event()
    first = sound("first").on("/props", Answer(200, [loaded, as_json(PROPS).parts[0]]))
    async with first, chain(first.url, GONE, loading_seconds=0.05) as stage:
        observing = asyncio.create_task(stage.model.observe())
        await until(lambda: bool(any(line.startswith("skipping b") for line in stage.said)))
        assert not observing.done()
        loaded.set()
        assert (await observing).endpoint == f"a ({first.url})"


async def test_a_503_before_the_answer_is_not_waited_out_where_another_is() -> None:
    async with sound().chat(LOADING) as first, sound() as second, chain(first.url, second.url) as stage:
        await stage.model.observe()
        with pytest.raises(ModelUnavailable) as caught:
            await collect(stage.model, ask())
        assert caught.value.another
        assert len(first.asked("/v1/chat/completions")) == 1
        assert await stage.end() == f"b ({second.url})"


async def test_too_many_requests_bars_an_endpoint_for_as_long_as_it_says() -> None:
    busy = as_json({"error": {"message": "slow down"}}, 429, {"Retry-After": "77"})
    async with sound().chat(busy) as first, sound() as second, chain(first.url, second.url, rest_seconds=0.0) as stage:
        await stage.model.observe()
        with pytest.raises(ModelUnavailable) as caught:
            await collect(stage.model, ask())
        assert (caught.value.another, round(caught.value.retry_after_seconds)) == (True, 77)
        assert round(stage.links[0].rest_seconds()) == 77
        for _ in range(3):
            assert await stage.end() == f"b ({second.url})"
        assert len(first.asked("/v1/chat/completions")) == 1


async def test_who_is_busy_is_waited_for_when_nobody_else_is_left() -> None:
    busy = as_json({"error": {"message": "slow down"}}, 429, {"Retry-After": "1"})
    first = sound().chat(busy, stream(delta("at last"), END))
    async with first, FaultyServer().chat(error(500, "no luck")) as second, chain(first.url, second.url) as stage:
        for _ in range(2):
            await stage.model.observe()
            with pytest.raises(ModelUnavailable) as caught:
                await collect(stage.model, ask())
            assert caught.value.another
        assert await stage.end() == f"a ({first.url})"
        assert "no other endpoint answers; asking a again in 1 s" in stage.said


@pytest.mark.parametrize("refusal", [error(401, "Invalid API Key"), error(404, "no such model"), error(400, "no")])
async def test_who_refuses_is_passed(refusal: Answer) -> None:
    async with sound().chat(refusal) as first, sound() as second, chain(first.url, second.url) as stage:
        await stage.model.observe()
        with pytest.raises(ModelRefused) as caught:
            await collect(stage.model, ask())
        assert caught.value.another
        assert await stage.end() == f"b ({second.url})"


async def test_a_prompt_that_is_too_long_is_nobodys_failure() -> None:
    full = error(400, "too long", "exceed_context_size_error", n_prompt_tokens=5000, n_ctx=4096)
    async with sound().chat(full) as first, sound() as second, chain(first.url, second.url) as stage:
        await stage.model.observe()
        with pytest.raises(ContextOverflow) as caught:
            await collect(stage.model, ask())
        assert not caught.value.another
        assert (await stage.model.observe()).endpoint == f"a ({first.url})"


async def test_a_chain_of_one_fails_as_its_endpoint_does() -> None:
    async with chain(GONE) as stage:
        with pytest.raises(ModelUnavailable, match=f"^nothing answers at {GONE}$") as caught:
            await stage.model.observe()
        assert not caught.value.another
        assert stage.said == []


async def test_whoever_counts_is_who_was_met() -> None:
    counted = as_json({"tokens": [{"id": 1, "piece": "x"}, {"id": 2, "piece": "y"}]})
    async with sound() as first, sound() as second, chain(first.url, second.url) as stage:
        for server in (first, second):
            server.on("/tokenize", counted)
        assert len(await stage.model.count_tokens(["some text"])) == 1
        assert first.asked("/tokenize")
        assert second.requests == []


async def test_roles_with_the_same_chain_know_the_same() -> None:
    async with sound() as second:
        said: list[str] = []
        links = tuple(
            ChainLink(name, LlamaCppModel(url), StatusRelay(said.append), rest_seconds=1000.0)
            for name, url in (("a", GONE), ("b", second.url))
        )
        model = ChainedModel({Purpose.EXECUTOR: links, Purpose.SUMMARY: links}, said.append)
        await model.observe(Purpose.EXECUTOR)
        assert (await model.observe(Purpose.SUMMARY)).endpoint == f"b ({second.url})"
        assert len([line for line in said if line.startswith("skipping a")]) == 1
        await model.close()


async def test_two_who_ask_at_once_do_not_take_it_from_each_other() -> None:
    loaded = asyncio.Event()
    first = sound("first").on("/props", Answer(200, [loaded, as_json(PROPS).parts[0]]))
    async with first, chain(first.url, GONE) as stage:
        one, two = (asyncio.create_task(stage.model.observe()) for _ in range(2))
        await until(lambda: bool(first.asked("/props")))
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        loaded.set()
        assert (await two).endpoint == f"a ({first.url})"


async def test_stopping_to_wait_stops_the_asking() -> None:
    first = sound("first").on("/props", Answer(200, [asyncio.Event()]))
    async with first, chain(first.url) as stage:
        one = asyncio.create_task(stage.model.observe())
        await until(lambda: bool(first.asked("/props")))
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        assert not stage.links[0].loading


async def test_errors_that_nobody_waits_for_any_more_are_no_warnings() -> None:
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    broken = asyncio.Event()
    first = FaultyServer().on("/props", Answer(200, [broken], cut=True), as_json(PROPS))
    async with first, sound() as second, chain(first.url, second.url, rest_seconds=0.0, loading_seconds=0.05) as stage:
        assert await stage.end() == f"b ({second.url})"
        broken.set()
        await until(lambda: not stage.links[0].loading)
        async with asyncio.timeout(60):  # on a busy machine its answer comes later than it is waited for
            while (await stage.model.observe()).endpoint != f"a ({first.url})":
                pass
    gc.collect()
    assert lost == []


def test_errors_begin_without_another() -> None:
    assert not ModelError("x").another


def test_an_end_is_signed_with_the_name() -> None:
    end = AnswerEnd(stop="end", figures=AnswerFigures(), endpoint="http://x")  # type: ignore[arg-type] # any stop will do
    assert ChainLink("gpu", LlamaCppModel(GONE), StatusRelay(print)).signed(end).endpoint == "gpu (http://x)"
    assert ChainLink("model", LlamaCppModel(GONE), StatusRelay(print)).signed(end).endpoint == "http://x"


async def test_who_loads_behind_is_not_heard_while_another_answers() -> None:
    first = FaultyServer().on("/health", LOADING)
    async with first, sound() as second, chain(first.url, second.url, loading_seconds=0.3) as stage:
        await stage.model.observe()
        heard = [line for line in stage.said if "loads its model" in line]
        assert heard, "while it was waited for"
        asked = len(first.requests)
        await until(lambda: len(first.requests) > asked)
        await collect(stage.model, ask())
        assert [line for line in stage.said if "loads its model" in line] == heard
