"""`agent model list`, `status` and `test`, as a user calls them."""

import json
from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.e2e.serving import listening
from tests.fakes.faulty_server import END, PROPS, FaultyServer, as_json, delta, stream
from tests.fakes.model_servers import ollama, router

CHAINS = """
endpoints:
  near: {url: "URL"}
  far: {url: "http://127.0.0.1:9", api_key_env: FAR_KEY, dollars_per_million_tokens: {input: 1, output: 2.5}}
roles: {executor: [far, near], reflexion: [near], planner: [far]}
cost_cap_daily: 1
"""


def _repo(machine: Machine, url: str) -> Path:
    repo = machine.new_repo("work", {"README.md": "# Hello\n", ".agent.yml": CHAINS.replace("URL", url)})
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    return repo


def test_the_list_says_who_is_asked_for_what_and_asks_nobody(machine: Machine) -> None:
    server = FaultyServer()
    with listening(server) as url:
        done = machine.agent("model", "list", cwd=_repo(machine, url))
    assert (done.code, done.err, server.requests) == (0, "", [])
    first, second, third, last = done.out.splitlines()
    assert first.split() == [
        *("executor", "far", "http://127.0.0.1:9", "$1", "in,", "$2.5", "out", "a", "million", "tokens"),
        *("key", "in", "FAR_KEY,", "which", "is", "not", "set"),
    ]
    assert second.split() == ["executor", "near", url, "free", "no", "key"]
    assert (third.split()[:2], last.split()[:2]) == (["reflexion", "near"], ["planner", "far"])


def test_models_of_a_server_are_listed_loaded_and_unloaded(machine: Machine) -> None:
    server = router("coder:7b", "--large", loaded=("coder:7b",))
    with listening(server) as url:
        repo = _repo(machine, url)

        def said(*words: str) -> tuple[int, list[str]]:
            done = machine.agent("model", *words, cwd=repo)
            return done.code, [" ".join(line.split()) for line in done.out.splitlines()]

        by = f"llama-server at {url}"
        assert said("served") == (0, [f"coder:7b (context 8,192) loaded {by}", f"--large not loaded {by}"])
        assert said("load", "--", "--large") == (0, ["--large is loaded, context 8,192"])
        assert said("unload", "coder:7b") == (0, ["coder:7b is not loaded"])
        assert said("served")[1][0] == f"--large (context 8,192) loaded {by}"
        unknown = machine.agent("model", "load", "nobody", cwd=repo)
    assert unknown.code == 2
    assert "no server of the settings lists a model 'nobody'" in unknown.err
    gone = machine.agent("model", "served", cwd=repo)
    assert (gone.code, f"nothing answers at {url}" in gone.out) == (5, True)


def test_a_server_is_named_by_a_flag(machine: Machine) -> None:
    with listening(ollama("a")) as url:
        done = machine.agent("model", "load", "a", "--model-url", url, cwd=machine.home)
    assert (done.code, done.out) == (0, "a is loaded, context 8,192\n")


def test_the_status_says_who_answers_now_and_what_is_off(machine: Machine) -> None:
    server = FaultyServer().on("/props").on("/tokenize").on("/v1/models", as_json({"data": [{"id": "gpt-like"}]}))
    with listening(server) as url:
        done = machine.agent("model", "status", cwd=_repo(machine, url))
    assert done.code == 5, "nobody plans"
    assert "role      executor, reflexion\nmodel     gpt-like\n" in done.out
    assert "off       answers cannot be held to a grammar; they are still checked\n" in done.out
    assert "tokens    not counted\n" in done.out
    assert "role      planner\nnobody    " in done.out
    assert "FAR_KEY" in done.out


@pytest.mark.slow
def test_a_random_model_is_tried_and_found_unfit(machine: Machine, tiny_model_path: Path) -> None:
    done = machine.agent("model", "test", str(tiny_model_path), cwd=machine.home)
    assert done.code == 1, done.said
    assert "question 10 of 10" in done.err
    assert "grammar   kept: yes" in done.out
    assert "seed      repeats an answer: yes" in done.out
    assert "not fit as executor: " in done.out
    told = machine.agent("model", "test", str(tiny_model_path), "--json", cwd=machine.home)
    assert told.code == 1
    (line,) = told.out.splitlines()
    value = json.loads(line)
    assert (value["model"], value["keeps_grammar"], len(value["questions"])) == (tiny_model_path.name, True, 10)
    assert value["fit"]["executor"]["fit"] is False


def test_an_endpoint_is_tried_by_its_name(machine: Machine) -> None:
    server = FaultyServer().chat(stream(delta("Sure!"), END)).on("/props", as_json(PROPS))
    with listening(server) as url:
        done = machine.agent("model", "test", "near", cwd=_repo(machine, url))
        assert done.code == 1, done.said
        assert f"endpoint  near ({url})" in done.out
        assert "grammar   kept: no" in done.out


def test_a_test_of_what_is_not_there(machine: Machine) -> None:
    dead = machine.agent("model", "test", "http://127.0.0.1:9", cwd=machine.home)
    assert (dead.code, dead.out) == (5, "")
    assert "nothing answers at http://127.0.0.1:9" in dead.err
    unknown = machine.agent("model", "test", "nowhere", cwd=machine.home)
    assert unknown.code == 2
    assert "'nowhere' is not an endpoint, an address or a file" in unknown.err
    for seconds in ("0", "nan", "soon"):
        refused = machine.agent("model", "test", "--seconds", seconds, cwd=machine.home)
        assert (refused.code, f"{seconds!r} is not a number of seconds above 0" in refused.err) == (2, True), (
            refused.err
        )


@pytest.mark.slow
def test_who_has_not_trusted_the_settings_is_told_why_no_model_is_configured(machine: Machine) -> None:
    files = {"README.md": "# Hello\n", ".agent.yml": CHAINS.replace("URL", "http://127.0.0.1:9")}
    repo = machine.new_repo("work", files)
    machine.agent("init", cwd=repo)
    for verb in (("list",), ("status",), ("test",), ("test", "near")):
        told = machine.agent("model", *verb, cwd=repo)
        assert "is not trusted and does not count; `agent trust` shows it" in told.err, told.said
    planned = machine.agent("plan", "new", "a goal", cwd=repo)
    assert "is not trusted and does not count; `agent trust` shows it" in planned.err, planned.said
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    assert machine.agent("model", "list", cwd=repo).err == ""
