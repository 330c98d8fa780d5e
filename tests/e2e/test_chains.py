"""Chains of endpoints as a user has them: in `.agent.yml`, trusted first, with keys in variables of any name."""

import json
from pathlib import Path

import pytest

from tests.e2e.calc import GOOD, calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines
from tests.e2e.serving import listening, saying
from tests.fakes.faulty_server import DONE, FaultyServer, as_json, delta, event, stream

# A variable whose name does not look secret: what makes it one is that an endpoint names it.
KEYS = {"FIRST_DOOR": "opensesame-first-0123", "SECOND_DOOR": "opensesame-second-456"}
SETTINGS = """\
endpoints:
  first: {{url: {first}, api_key_env: FIRST_DOOR}}
  dear:
    url: {dear}
    dollars_per_million_tokens: {{input: 1000000, output: 1000000}}
  second:
    url: {second}
    api_key_env: SECOND_DOOR
    dollars_per_million_tokens: {{input: 100, output: 100}}
roles: {{executor: [first, dear, second]}}
cost_cap_daily: 2.5
"""


def priced(text: str) -> FaultyServer:
    """Return a server that gives one answer for ever and tells what it took."""
    usage = event({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100}})
    plain = FaultyServer().on("/health").on("/props").on("/v1/models", as_json({"data": [{"id": "big"}]}))
    return plain.chat(stream(delta(text), delta("", "stop"), usage, DONE))


@pytest.mark.slow
def test_a_task_goes_on_from_one_to_the_next_within_the_cap(machine: Machine) -> None:
    dying = saying(GOOD).chat(stream(delta(GOOD[0]), delta("", "stop"), DONE), stream(delta("Thought: "), cut=True))
    second, dear = priced(GOOD[1]), priced("never")
    with listening(dying) as one, listening(dear) as two, listening(second) as three:
        settings = SETTINGS.format(first=one, dear=two, second=three)
        repo = calc_repo(machine, {".agent.yml": settings})
        refused = machine.agent("run", "--task", "T-1", "--yes", cwd=repo, environ=KEYS)
        assert refused.code == 4
        assert (dying.requests, second.requests) == ([], []), "nobody is asked before the repo is trusted"
        trusted = machine.agent("trust", "--yes", cwd=repo, environ=KEYS)
        assert f"endpoints.second.url: {three} (may be sent your code)" in trusted.out
        done = machine.agent("run", "--task", "T-1", "--yes", "--json", cwd=repo, environ=KEYS)
        shown = machine.agent("sessions", "show", cwd=repo, environ=KEYS)
        looked = machine.agent("doctor", cwd=repo, environ=KEYS)
    assert done.code == 0, done.said
    (passed,) = done.of_kind("endpoint_passed")
    assert passed["endpoint"] == f"first ({one})"
    answers = done.of_kind("model_answered")
    assert [answer["endpoint"] for answer in answers] == [f"first ({one})", f"second ({three})"]
    assert [answer["figures"]["dollars"] for answer in answers] == [0.0, pytest.approx(0.1)]
    assert dear.asked("/v1/chat/completions") == []
    ledger = json.loads((machine.folder / "state" / "agent-workbench" / "spending.json").read_bytes())
    assert list(ledger["days"].values()) == [{"second": 100_000_000}]
    assert "$0.1000 of $2.5 (cost_cap_daily) were spent today (UTC)" in looked.out
    assert "key FIRST_DOOR is set" in looked.out
    _check_keys(machine, repo, dying, second, done.said + shown.said + looked.said + trusted.said)


def _check_keys(machine: Machine, repo: Path, first: FaultyServer, second: FaultyServer, said: str) -> None:
    for server, name in ((first, "FIRST_DOOR"), (second, "SECOND_DOOR")):
        assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEYS[name]}"}
        assert not [
            request for request in server.requests if any(key.encode() in request.body for key in KEYS.values())
        ]
    assert not [key for key in KEYS.values() if key in said]
    for folder in (repo, machine.folder / "state", machine.folder / "cache"):
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert not [path for path in files if any(key.encode() in path.read_bytes() for key in KEYS.values())]


@pytest.mark.slow
def test_a_key_that_the_model_says_is_not_written_down(machine: Machine) -> None:
    key = KEYS["FIRST_DOOR"]
    told = f'Thought: The key is {key}.\nAction: note\n{{"text": "x"}}'
    server = saying((told, *GOOD))
    with listening(server) as url:
        environ = {
            **KEYS,
            "AGENT_ENDPOINTS__FIRST__URL": url,
            "AGENT_ENDPOINTS__FIRST__API_KEY_ENV": "FIRST_DOOR",
            "AGENT_ROLES__EXECUTOR": "first",
        }
        repo = calc_repo(machine)
        done = machine.agent("run", "--task", "T-1", "--yes", "--json", cwd=repo, environ=environ)
    assert done.code == 0, done.said
    assert [each for each in bodies(journal_lines(repo), "action_rejected") if "secret" in each["reason"]]
    assert not [path for path in repo.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_one_endpoint_can_be_named_for_everything(machine: Machine) -> None:
    other, server = saying(GOOD), saying(GOOD)
    with listening(other) as one, listening(server) as two:
        settings = f"endpoints: {{one: {{url: {one}}}, two: {{url: {two}}}}}\nroles: {{executor: [one]}}\n"
        repo = calc_repo(machine, {".agent.yml": settings})
        machine.agent("trust", "--yes", cwd=repo)
        done = machine.agent("run", "--task", "T-1", "--yes", "--endpoint", "two", cwd=repo)
        wrong = machine.agent("run", "--task", "T-1", "--yes", "--endpoint", "tow", cwd=repo)
    assert done.code == 0, done.said
    assert other.requests == []
    assert wrong.code == 2
    assert "there is no endpoint 'tow'; did you mean 'two'?" in wrong.err


@pytest.mark.slow
def test_a_dead_address_does_not_hold_up_the_doctor(machine: Machine) -> None:
    mute = FaultyServer().on("/health", stream(60.0)).on("/props", stream(60.0)).on("/v1/models", stream(60.0))
    with listening(mute) as one, listening(saying(GOOD)) as two:
        settings = f"endpoints: {{mute: {{url: {one}}}, two: {{url: {two}}}}}\nroles: {{executor: [two, mute]}}\n"
        repo = calc_repo(machine, {".agent.yml": settings})
        machine.agent("trust", "--yes", cwd=repo)
        looked = machine.agent("doctor", cwd=repo)
    assert f"{one}: no answer within 10 s; for executor" in looked.out
    assert "endpoint two" in looked.out
