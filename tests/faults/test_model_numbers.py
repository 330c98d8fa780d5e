"""Numbers that a server makes up: none ends a run, none reaches the journal larger than it can hold."""

import json

import pytest

from agent_workbench.adapters.llama_cpp.server_answers import MOST
from tests.e2e.calc import GOOD, calc_repo
from tests.e2e.conftest import machine
from tests.e2e.machine import Machine, bodies, journal_lines
from tests.e2e.serving import listening
from tests.fakes.faulty_server import DONE, PROPS, Answer, FaultyServer, as_json, delta, stream

__all__ = ["machine"]

RUN = ("run", "--task", "T-1", "--yes")
NUMBERS = {
    "400 digits": "9" * 400,
    "5000 digits": "9" * 5_000,
    "1e308": "1e308",
    "1e999": "1e999",
    "minus 400 digits": "-" + "9" * 400,
    "-1e308": "-1e308",
    "-1": "-1",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "5e-324": "5e-324",
    "true": "true",
    "text": '"12"',
    "digits as text": '"' + "9" * 5_000 + '"',
    "null": "null",
    "list": "[1]",
}
HERE = "NUMBER"


def spelled(value: object, number: str) -> bytes:
    """Return JSON in which the number stands for each `HERE`, spelled as it is."""
    return json.dumps(value).replace(json.dumps(HERE), number).encode()


def answer_with(text: str, number: str) -> Answer:
    """Return an answer that tells the number wherever servers tell numbers."""
    progress = {"prompt_progress": {"processed": HERE, "total": HERE, "cache": HERE, "time_ms": HERE}}
    figures = ("cache_n", "prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "predicted_per_second")
    usage = {
        "prompt_tokens": HERE,
        "completion_tokens": HERE,
        "total_tokens": HERE,
        "prompt_tokens_details": {"cached_tokens": HERE},
    }
    events = (
        {"created": HERE, **progress},
        {"created": HERE, "usage": usage, "choices": []},
        {"timings": dict.fromkeys(figures, HERE), "choices": [{"index": HERE, "delta": {}, "finish_reason": "stop"}]},
    )
    said = [b"data: %b\n\n" % spelled(each, number) for each in events]
    return stream(said[0], delta(text), *said[1:], DONE)


def server_with(number: str) -> FaultyServer:
    settings = {"n_ctx": HERE, "temperature": HERE}
    props = {**PROPS, "default_generation_settings": settings, "total_slots": HERE}
    counted = {"tokens": [{"id": HERE, "piece": "x"}], "count": HERE, "max_model_len": HERE}
    return (
        FaultyServer()
        .chat(*(answer_with(each, number) for each in GOOD))
        .on("/health", Answer(200, [spelled({"status": "ok", "slots_idle": HERE}, number)]))
        .on("/props", Answer(200, [spelled(props, number)]))
        .on("/tokenize", Answer(200, [spelled(counted, number)]))
    )


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.slow(quick=2)
def test_a_server_that_tells_it_everywhere(machine: Machine, number: str) -> None:
    repo = calc_repo(machine)
    with listening(server_with(number)) as url:
        done = machine.agent(*RUN, cwd=repo, environ={"AGENT_MODEL__URL": url})
    assert done.code == 0, done.said
    assert "Traceback" not in done.err
    for answered in bodies(journal_lines(repo), "model_answered"):
        assert all(0 <= each <= 2 * MOST for each in answered["figures"].values())
    for verb in (("sessions", "list"), ("sessions", "show", "--prompt", "1"), ("sessions", "export")):
        told = machine.agent(*verb, cwd=repo)
        assert told.code == 0, told.said


@pytest.mark.slow(quick=4)
@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_a_plain_server_that_tells_it_in_its_list(machine: Machine, number: str) -> None:
    keys = ("n_ctx", "max_model_len", "context_length", "created")
    entry = {"id": "m", **dict.fromkeys(keys, HERE), "meta": {"n_ctx": HERE, "n_params": HERE}}
    server = server_with(number).on("/health").on("/props").on("/tokenize")
    server.on("/v1/models", Answer(200, [spelled({"data": [entry]}, number)]))
    with listening(server) as url:
        status = machine.agent("model", "status", "--model-url", url, cwd=calc_repo(machine))
    assert status.code == 0, status.said
    assert "Traceback" not in status.said


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.slow(quick=2)
def test_an_error_that_tells_it(machine: Machine, number: str) -> None:
    message = f"the request exceeds the available context size: {number.strip(chr(34))} tokens in {number[:250]}"
    error = {"code": HERE, "message": message, "type": "exceed_context_size_error"}
    body = spelled({"error": {**error, "n_prompt_tokens": HERE, "n_ctx": HERE}}, number)
    server = FaultyServer().chat(Answer(400, [body], headers={"Retry-After": number}))
    with listening(server) as url:
        done = machine.agent(*RUN, cwd=calc_repo(machine), environ={"AGENT_MODEL__URL": url})
    assert done.code in {1, 5}, done.said
    # The next command, the address of the page about models, and nothing else.
    assert {line.partition(":")[0] for line in done.err.splitlines()} <= {"next", "file"}, done.err


@pytest.mark.parametrize("wait", ["9" * 400, "9" * 5_000, "1e308", "-5", "nan", "Fri, 31 Dec 9999 23:59:59 GMT"])
@pytest.mark.slow(quick=2)
def test_a_busy_server_that_asks_to_wait_so_long(machine: Machine, wait: str) -> None:
    busy = as_json({"error": {"message": "busy"}}, 429, {"Retry-After": wait})
    server = FaultyServer().chat(busy, busy, answer_with(GOOD[0], "1"), answer_with(GOOD[1], "1"))
    environ = {"AGENT_MODEL__ANSWER_SECONDS": "5"}
    with listening(server) as url:
        done = machine.agent(*RUN, cwd=calc_repo(machine), environ={"AGENT_MODEL__URL": url, **environ})
    assert done.code in {0, 5}, done.said
    assert "Traceback" not in done.err
