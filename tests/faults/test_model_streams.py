"""Streams that trickle, break off, never end or hold what they should not."""

import asyncio
import contextlib
import json
from collections.abc import Callable

import pytest

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.errors import ContextOverflow, ModelRefused, ModelUnavailable
from agent_workbench.core.model import AnswerFigures, PromptProgress, StopCause
from tests.adapters.llama_cpp.answers import Collected, ask, collect
from tests.fakes.faulty_server import DONE, END, Answer, FaultyServer, as_json, delta, event, stream

TEXT = 'Thought: é😀 "done"\n'


async def _answer(answer: Answer, *, seconds: float = 20.0, tokens: int = 64, grammar: str = "") -> Collected:
    async with FaultyServer().chat(answer) as server:
        model = LlamaCppModel(server.url)
        try:
            return await collect(model, ask(answer_seconds=seconds, answer_tokens=tokens, grammar=grammar))
        finally:
            await model.close()


async def test_a_plain_stream() -> None:
    got = await _answer(stream(delta("a"), delta("b"), END))
    assert got.deltas == ["a", "b"]
    assert got.end.stop is StopCause.END


@pytest.mark.parametrize("chunked", [True, False])
async def test_bytes_that_come_one_by_one_are_joined(chunked: bool) -> None:
    whole = delta(TEXT) + END
    got = await _answer(stream(*(whole[at : at + 1] for at in range(len(whole))), chunked=chunked))
    assert got.text == TEXT


async def test_halves_of_a_character_are_joined() -> None:
    halves = (
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00b"}}]}\n',
    )
    got = await _answer(stream(*halves, END))
    assert got.deltas == ["a", "😀b"]


@pytest.mark.parametrize("lone", ["\\ud83d", "\\ude00"])
async def test_a_half_without_its_other_is_replaced(lone: str) -> None:
    piece = b'data: {"choices":[{"delta":{"content":"a%b"}}]}\n' % lone.encode()
    got = await _answer(stream(piece, END))
    assert got.text == "a\ufffd"
    assert got.text.encode()


async def test_a_server_that_trickles_meets_the_deadline() -> None:
    parts = [part for byte in delta("a") * 100 for part in (bytes([byte]), 0.02)]
    with pytest.raises(ModelUnavailable, match=r"not done in time \(1\.8 s\)") as caught:
        await _answer(stream(*parts), seconds=0.3)
    assert "answer_seconds" in caught.value.advice


async def test_a_slow_prompt_is_no_fault() -> None:
    # Far longer than both deadlines: 0.2 s of silence, 1.2 s in all.
    reading = [event({"prompt_progress": {"total": 40, "cache": 0, "processed": at}}) for at in range(1, 41)]
    got = await _answer(stream(*(part for each in reading for part in (each, 0.05)), delta("read"), END), seconds=0.2)
    assert got.text == "read"
    assert len(got.progress) == 40


async def test_a_prompt_that_is_not_read_on_meets_the_deadline() -> None:
    stuck = event({"prompt_progress": {"total": 40, "cache": 0, "processed": 7}})
    with pytest.raises(ModelUnavailable, match="not done in time"):
        await _answer(stream(*(part for _ in range(100) for part in (stuck, 0.05))), seconds=0.2)


async def test_signs_of_life_keep_a_server_alive_that_tells_no_progress() -> None:
    got = await _answer(
        stream(*(part for _ in range(12) for part in (b": ping\n\n", 0.05)), delta("a"), END), seconds=0.2
    )
    assert got.text == "a"


async def test_what_came_before_the_deadline_is_kept() -> None:
    with pytest.raises(ModelUnavailable, match=r"was silent for 0\.5 s") as caught:
        await _answer(stream(delta("so "), delta("far"), asyncio.Event()), seconds=0.5)
    assert caught.value.partial == "so far"


async def test_a_server_that_never_answers_meets_the_deadline() -> None:
    silent = asyncio.Event()
    async with FaultyServer().chat(stream(silent, END)) as server:
        model = LlamaCppModel(server.url)
        with pytest.raises(ModelUnavailable, match=r"was silent for 0\.3 s"):
            await collect(model, ask(answer_seconds=0.3))
        await model.close()


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("cut", [True, False])
async def test_a_stream_that_breaks_off_keeps_what_came(chunked: bool, cut: bool) -> None:
    with pytest.raises(ModelUnavailable, match="closed the connection") as caught:
        await _answer(stream(delta("so "), delta("far"), b'data: {"choi', 0.05, chunked=chunked, cut=cut))
    assert caught.value.partial == "so far"


async def test_an_answer_that_is_whole_survives_a_lost_end() -> None:
    got = await _answer(stream(delta("all"), delta("", "stop"), 0.05, cut=True))
    assert got.text == "all"
    assert got.end.stop is StopCause.END


async def test_a_last_line_without_its_end_counts() -> None:
    got = await _answer(stream(delta("all"), DONE.strip(), chunked=False))
    assert got.text == "all"


@pytest.mark.parametrize("last", [delta("more "), b": nothing\n" * 100, b"x" * 4000])
async def test_an_endless_stream_is_cut(last: bytes) -> None:
    with pytest.raises(ModelUnavailable, match="sent more than") as caught:
        await _answer(stream(delta("first "), last, endless=True), tokens=1)
    assert caught.value.partial.startswith("first ")


async def test_a_thought_without_end_is_cut_by_its_pieces() -> None:
    thought = event({"choices": [{"delta": {"reasoning_content": "hm"}}]})
    with pytest.raises(ModelUnavailable, match="more than 1008 pieces of text"):
        await _answer(stream(thought, endless=True), tokens=1)


async def test_an_endless_error_is_cut() -> None:
    endless = Answer(400, [b"x" * 64_000], endless=True)
    with pytest.raises(ModelRefused) as caught:
        await _answer(endless)
    assert len(str(caught.value)) < 500


async def test_an_error_in_the_middle_keeps_what_came() -> None:
    broken = event({"error": {"code": 500, "message": "slot \x1b[31mlost", "type": "server_error"}})
    with pytest.raises(ModelUnavailable, match=r"slot  ?\[31mlost") as caught:
        await _answer(stream(delta("so far"), broken))
    assert caught.value.partial == "so far"


@pytest.mark.parametrize("field", ["data", "error"])
async def test_an_overflow_in_the_middle_is_an_overflow(field: str) -> None:
    fault = {"code": 400, "message": "too many", "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 5}
    body = {"error": fault} if field == "data" else fault
    with pytest.raises(ContextOverflow) as caught:
        await _answer(stream(f"{field}: {json.dumps(body)}\n\n".encode()))
    assert (caught.value.prompt_tokens, caught.value.context_tokens) == (9, 5)


async def test_an_empty_stream_is_an_overflow() -> None:
    with pytest.raises(ContextOverflow):
        await _answer(stream())


@pytest.mark.parametrize("line", [b"data: {nonsense\n\n", b"data: []\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
async def test_what_is_no_json_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(ModelUnavailable, match="other than JSON"):
        await _answer(stream(delta("so far"), line, END))


@pytest.mark.parametrize(
    "shape",
    [
        {"choices": "none"},
        {"choices": [1]},
        {"choices": [{"delta": {"content": 5}}]},
        {"timings": {"prompt_n": "a", "predicted_ms": None}},
        {"usage": {"prompt_tokens": True, "completion_tokens": -3}},
    ],
)
async def test_wrong_shapes_hold_nothing(shape: object) -> None:
    got = await _answer(stream(delta("a"), event(shape), END))
    assert got.text == "a"
    assert got.end.figures.prompt_tokens == 0


async def test_numbers_that_are_none_are_zero() -> None:
    got = await _answer(stream(delta("a"), b'data: {"timings":{"prompt_n":NaN,"predicted_n":1e999}}\n', END))
    assert got.end.figures == AnswerFigures()


async def test_figures_come_from_usage_where_there_are_no_timings() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20}}
    got = await _answer(stream(delta("a", "stop"), event({"choices": [], "usage": usage}), DONE))
    assert got.end.figures == AnswerFigures(prompt_tokens=30, cached_tokens=20, answer_tokens=4)


async def test_an_answer_that_was_not_streamed_counts() -> None:
    whole = as_json({"choices": [{"message": {"content": TEXT}, "finish_reason": "length"}]})
    got = await _answer(whole)
    assert got.text == TEXT
    assert got.end.stop is StopCause.LENGTH


async def test_an_answer_that_was_taken_for_a_thought_counts_where_it_was_held_to_a_grammar() -> None:
    thought = [event({"choices": [{"delta": {"reasoning_content": part}}]}) for part in ("an ", "answer")]
    assert (await _answer(stream(*thought, END), grammar='root ::= "an answer"')).text == "an answer"
    free = await _answer(stream(*thought, END))
    assert (free.text, free.thought) == ("", "an answer")


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_thoughts_before_an_answer_are_told_and_no_part_of_it(key: str) -> None:
    thought = event({"choices": [{"delta": {key: "hm"}}]})
    got = await _answer(stream(thought, thought, delta("\n\n"), delta("so"), END))
    assert (got.text, got.thoughts) == ("so", ["hm", "hm"])


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_thoughts_within_the_text_are_told_and_no_part_of_the_answer(size: int) -> None:
    text = " \n<think>\nis 1 < 2 </thinks> </ so?\n</think>\n\nThought: <think> it is.\n"
    got = await _answer(stream(*(delta(text[at : at + size]) for at in range(0, len(text), size)), END))
    assert got.text == "Thought: <think> it is.\n"
    assert got.thought == "\nis 1 < 2 </thinks> </ so?\n"


async def test_a_thought_that_the_prompt_began_is_known_by_its_end_the_next_time() -> None:
    whole = stream(delta("hm"), delta("</think>"), delta("\n\nso"), END)
    models = as_json({"data": [{"id": "m"}]})
    async with FaultyServer().on("/props").on("/v1/models", models).chat(whole) as server:
        model = LlamaCppModel(server.url)
        await collect(model, ask())
        got = await collect(model, ask())
        assert (await model.observe()).thinks
        await model.close()
    assert (got.text, got.thought) == ("so", "hm")


async def test_the_end_of_a_thought_that_a_model_writes_by_chance_is_text() -> None:
    async with FaultyServer().chat(stream(delta("it ends with </think> here"), END)) as server:
        model = LlamaCppModel(server.url)
        await collect(model, ask())
        got = await collect(model, ask())
        assert not (await model.observe()).thinks
        await model.close()
    assert (got.text, got.thought) == ("it ends with </think> here", "")


async def test_a_thought_that_breaks_off_leaves_no_answer() -> None:
    thought = event({"choices": [{"delta": {"reasoning_content": "so far"}}]})
    with pytest.raises(ModelUnavailable, match="closed the connection") as caught:
        await _answer(stream(thought, cut=True))
    assert caught.value.partial == ""


async def test_a_thought_that_is_cut_at_the_limit_is_no_answer() -> None:
    thought = event({"choices": [{"delta": {"reasoning_content": "so far"}}]})
    got = await _answer(stream(thought, delta("", "length"), DONE), grammar='root ::= "a"')
    assert (got.text, got.thought, got.end.stop) == ("", "so far", StopCause.LENGTH)


async def test_no_room_for_a_single_token_is_an_overflow() -> None:
    usage = event({"choices": [], "usage": {"prompt_tokens": 512, "completion_tokens": 0}})
    with pytest.raises(ContextOverflow) as caught:
        await _answer(stream(delta("", "length"), usage, DONE))
    assert caught.value.prompt_tokens == 512


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, [b"<html>\n<p>who are you</p>"], kind="text/html"),
        Answer(200, [b"<html>"], kind="text/event-stream"),
        Answer(200, [b"hello\r\n"], kind="text/plain"),
    ],
)
async def test_a_page_in_place_of_an_answer_is_no_answer_and_no_overflow(answer: Answer) -> None:
    with pytest.raises(ModelUnavailable, match=r"sent something other than JSON: b'(<html>|hello)'"):
        await _answer(answer)


async def test_a_character_that_is_cut_in_two_is_no_part_of_what_came() -> None:
    whole = delta("é")
    cut = whole[: whole.index("é".encode()) + 1]
    with pytest.raises(ModelUnavailable, match="closed the connection") as caught:
        await _answer(stream(delta("so far"), cut, cut=True))
    assert caught.value.partial == "so far"
    with pytest.raises(ModelUnavailable, match="other than JSON") as caught:
        await _answer(stream(delta("so far"), cut + b'"}}]}\n\n', END))
    assert caught.value.partial == "so far"


@pytest.mark.parametrize("garbage", [b"zz\r\nhello\r\n", b"-1\r\n", b"\x00\xff\x00", b"5\r\nhelloworld\r\n0\r\n\r\n"])
async def test_broken_chunks_are_a_broken_connection(garbage: bytes) -> None:
    async with FaultyServer().chat(
        Answer(200, [garbage], headers={"Transfer-Encoding": "chunked"}, chunked=False)
    ) as server:
        model = LlamaCppModel(server.url)
        with pytest.raises(ModelUnavailable, match=r"the server at http://\S+ closed the connection$"):
            await collect(model, ask(answer_seconds=5))
        await model.close()


async def test_an_error_in_an_answer_that_was_not_streamed_is_one() -> None:
    with pytest.raises(ModelUnavailable, match="out of memory"):
        await _answer(as_json({"error": {"message": "out of memory", "type": "server_error"}}))


async def test_a_withheld_answer_is_a_refusal() -> None:
    with pytest.raises(ModelRefused, match="content_filter"):
        await _answer(stream(delta("a", "content_filter"), DONE))


async def test_progress_is_passed_on() -> None:
    progress = event({"choices": [], "prompt_progress": {"total": 10, "cache": 4, "processed": 6, "time_ms": 1}})
    got = await _answer(stream(progress, delta("a"), END))
    assert got.progress == [PromptProgress(6, 10, 4)]


async def _closed_by(leave: Callable[[asyncio.Task[None]], object]) -> bool:
    """Read the first piece of an endless answer, leave, and return whether the server saw the connection go."""
    began = asyncio.Event()
    async with FaultyServer().chat(stream(delta("a"), 0.01, delta("b"), endless=True)) as server:
        model = LlamaCppModel(server.url)

        async def read() -> None:
            async with contextlib.aclosing(model.answer(ask(answer_tokens=100_000))) as items:
                async for _ in items:
                    began.set()
                    if leave is _by_itself:
                        return

        task = asyncio.create_task(read())
        await began.wait()
        leave(task)
        await asyncio.wait({task})
        async with asyncio.timeout(5):
            await server.gone.wait()
        await model.close()
        return True


def _by_itself(_: object) -> None:
    return None


async def test_closing_the_iterator_closes_the_connection() -> None:
    assert await _closed_by(_by_itself)


async def test_cancelling_closes_the_connection() -> None:
    assert await _closed_by(lambda task: task.cancel())
