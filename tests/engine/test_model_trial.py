"""Trial of a model: a real random one, and servers that say what is right, wrong, or nothing."""

import asyncio
from collections.abc import Sequence

import pytest

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.local_machine import SystemClock
from agent_workbench.core.diagnostics import Fitness, ModelReport, QuestionKind
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.model import Purpose
from agent_workbench.engine.endpoint_findings import fitness
from agent_workbench.engine.model_trial import CODE, questions, try_model
from tests.engine.stage import call
from tests.fakes.faulty_server import END, FaultyServer, as_json, delta, stream
from tests.llama_fixtures import LlamaServer

CORRECTED = "--- a/calc.py\n+++ b/calc.py\n@@ -1,3 +1,3 @@\n def add(first, second):\n"
CORRECTED += '     """Return the sum."""\n-    return first - second\n+    return first + second\n'
RENAMED = "--- a/calc.py\n+++ b/calc.py\n@@ -6,3 +6,3 @@\n-def mean(values):\n+def mean(numbers):\n"
RENAMED += (
    '     """Return the average."""\n-    return sum(values) / len(values)\n+    return sum(numbers) / len(numbers)\n'
)
RIGHT = (
    call("read_file", '{"path": "test_calc.py"}'),
    call("list_files", '{"glob": "docs/**"}'),
    call("grep", '{"text": "TODO"}'),
    call("write_diff", CORRECTED),
    call("run_tests"),
    call("note", '{"text": "BANANA"}'),
    call("write_diff", RENAMED),
    call("finish", '{"summary": "done"}'),
    "Reflexion: mean divides by zero for an empty list.",
    "Task: mean of nothing\nGoal: 0\nAccept: pytest\nTask: add a median\nGoal: it is there\nAccept: pytest\n",
)
KEPT = "kept 3-4 by grammar"
MODELS = as_json({"data": [{"id": "other", "context_length": 32768}]})


def saying(answers: Sequence[str]) -> FaultyServer:
    """Return a llama.cpp that gives these answers in order, and the last for ever."""
    return FaultyServer().chat(*(stream(delta(answer), END) for answer in answers))


async def tried(server: FaultyServer, seconds: float = 60.0) -> tuple[ModelReport, list[str]]:
    progress: list[str] = []
    async with server:
        model = LlamaCppModel(server.url)
        try:
            return await try_model(model, SystemClock(), progress.append, seconds), progress
        finally:
            await model.close()


def verdicts(report: ModelReport) -> dict[Purpose, Fitness]:
    return {each.role: each for each in fitness(report)}


def test_what_is_right_is_taken_for_right_and_nothing_else() -> None:
    asked = questions()
    assert len(asked) == len(RIGHT) == 10
    for number, question in enumerate(asked):
        for other, answer in enumerate(RIGHT):
            found = question.judge(answer)
            assert found.right == (number == other), (question.name, answer)
        assert question.judge(RIGHT[number]).valid
        assert question.judge(RIGHT[number]).kept
        assert not question.judge("Sure! I can help you with that.").right


@pytest.mark.parametrize("old", ["first - second", "nowhere"])
def test_a_diff_that_applies_and_is_wrong_is_not_right(old: str) -> None:
    (question,) = (each for each in questions() if each.name == "correct a line")
    wrong = CORRECTED.replace("first - second", old).replace("first + second", "first * second")
    found = question.judge(call("write_diff", wrong))
    assert (found.valid, found.right) == (old in CODE, False)
    assert found.why


@pytest.mark.slow
async def test_a_random_model_has_the_form_and_is_fit_for_nothing(llama_server: LlamaServer) -> None:
    model = llama_server.model()
    report = await try_model(model, SystemClock(), lambda _: None)
    await model.close()
    assert len(report.asked) == 10
    assert [each.why for each in report.asked if each.ended and not each.kept] == []
    assert (report.keeps_grammar, report.repeats, report.stopped) == (True, True, "")
    assert report.right_share < 0.5
    assert report.tokens_per_second > 0
    assert report.prefill_tokens_per_second > report.tokens_per_second
    assert report.reads is not None
    assert report.reads.prompt_tokens > report.reads.new_tokens > 0
    assert not verdicts(report)[Purpose.EXECUTOR].fit


async def test_a_model_that_does_all_that_is_asked_is_fit() -> None:
    report, progress = await tried(saying([*RIGHT, KEPT, "same"]))
    assert (report.right_share, report.valid_share, report.keeps_grammar) == (1.0, 1.0, True)
    assert (report.repeats, report.repeats_cached) == (True, True)
    assert all(each.fit for each in fitness(report) if each.role is not Purpose.EXECUTOR)
    assert len([line for line in progress if line.startswith("question ")]) == 10


@pytest.mark.parametrize(("tokens", "fit"), [(2048, False), (8192, True)])
async def test_a_small_context_is_too_small_for_steps(tokens: int, fit: bool) -> None:
    server = saying([*RIGHT, KEPT, "same"])
    server.on("/props", as_json({"default_generation_settings": {"n_ctx": tokens}}))
    report, _ = await tried(server)
    verdict = verdicts(report)[Purpose.EXECUTOR]
    assert verdict.fit == fit
    assert ("too small" in verdict.because) == (not fit)


async def test_a_plain_server_is_tried_without_what_it_lacks() -> None:
    server = saying([*RIGHT, "same"]).on("/props").on("/tokenize").on("/v1/models", MODELS)
    report, _ = await tried(server)
    assert not [request for request in server.asked("/v1/chat/completions") if "grammar" in request.json]
    assert (report.keeps_grammar, report.reads, report.right_share) == (False, None, 1.0)
    verdict = verdicts(report)[Purpose.EXECUTOR]
    assert verdict.fit
    assert any("no grammar" in remark for remark in verdict.but)
    assert any("cache" in remark for remark in verdict.but)


async def test_a_server_that_ignores_the_grammar_is_found_out() -> None:
    report, _ = await tried(saying(["Sure! I can help you with that."]))
    assert report.keeps_grammar is False
    assert [each.kind for each in report.asked if each.valid] == [QuestionKind.REFLEXION], "any words are a reflexion"
    assert not any(each.fit for each in fitness(report))


async def test_answers_that_differ_are_no_repetition() -> None:
    report, _ = await tried(saying([*RIGHT, KEPT, "one", "another"]))
    assert (report.repeats, report.repeats_cached) == (False, False)


async def test_what_came_until_the_time_was_over_counts() -> None:
    silent = asyncio.Event()
    server = FaultyServer().chat(*(stream(delta(answer), END) for answer in RIGHT[:3]), stream(silent))
    report, _ = await tried(server, seconds=2.0)
    assert len(report.asked) == 3
    assert report.stopped == "2 s were over"
    assert (report.repeats, report.keeps_grammar) == (None, None)


async def test_a_server_that_dies_on_the_way_ends_the_test_with_what_came() -> None:
    server = FaultyServer().chat(stream(delta(RIGHT[0]), END), stream(delta("Thou"), cut=True))
    report, _ = await tried(server)
    assert [each.kind for each in report.asked] == [QuestionKind.CALL]
    assert "closed the connection" in report.stopped


async def test_nobody_there_is_an_error() -> None:
    model = LlamaCppModel("http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match="nothing answers"):
        await try_model(model, SystemClock(), lambda _: None)
    await model.close()


async def test_a_model_that_loads_for_too_long_is_an_error() -> None:
    loading = as_json({"error": {"message": "Loading model", "code": 503}}, 503)
    with pytest.raises(ModelUnavailable, match="not ready within 1 s"):
        await tried(FaultyServer().on("/health", loading), seconds=1.0)
