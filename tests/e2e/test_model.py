"""The model is missing, loading, dying or too small: each says what failed and what to do, and the run can go on."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import GOOD, SCRIPTS, calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines, journal_path
from tests.e2e.serving import listening
from tests.fakes.faulty_server import Answer, FaultyServer, delta, error, stream

RUN = ("run", "--task", "T-1", "--yes")
LOADING = error(503, "Loading model", "unavailable_error")


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize(
    ("environ", "what", "advice"),
    [
        ({}, "no model is configured", "set model.path (a GGUF file) or model.url"),
        ({"AGENT_MODEL__URL": "http://127.0.0.1:9"}, "nothing answers at http://127.0.0.1:9", "start the server"),
        ({"LLAMA_SERVER_URL": "http://127.0.0.1:9"}, "nothing answers at http://127.0.0.1:9", "start the server"),
        ({"AGENT_MODEL__PATH": "/nope.gguf"}, "/nope.gguf cannot be read", "GGUF"),
        ({"AGENT_MODEL__PATH": __file__}, "is no GGUF file", "GGUF"),
    ],
)
def test_no_model(machine: Machine, environ: Mapping[str, str], what: str, advice: str) -> None:
    repo = calc_repo(machine)
    done = machine.agent(*RUN, cwd=repo, environ=environ)
    assert done.code == 5
    assert what in done.out
    assert advice in done.out
    assert done.err.endswith("/docs/how-to/models.md\n")
    assert bodies(journal_lines(repo), "trouble_met")[0]["source"] == "model"


@pytest.mark.slow
def test_it_goes_on_once_there_is_a_model(served: Machine) -> None:
    repo = calc_repo(served)
    assert served.agent(*RUN, cwd=repo, environ={"AGENT_MODEL__URL": "http://127.0.0.1:9"}).code == 5
    done = served.scripted(SCRIPTS, *RUN, cwd=repo)
    assert done.code == 0, done.said
    assert len(list((repo / "memory/sessions").iterdir())) == 1


def test_a_server_that_loads_is_waited_for(machine: Machine) -> None:
    server = FaultyServer().on("/health", LOADING, LOADING, Answer(200, [b"{}"]))
    with listening(server) as url:
        done = machine.agent("model", "status", "--model-url", url, cwd=calc_repo(machine))
    assert done.code == 0, done.said
    assert "loads its model" in done.err
    assert "4096 tokens for one conversation" in done.out
    assert len(server.asked("/health")) >= 3


@pytest.mark.slow
def test_a_run_that_waits_for_a_server_says_so_and_can_be_stopped(machine: Machine) -> None:
    with listening(FaultyServer().on("/health", LOADING)) as url:
        running = machine.start(*RUN, cwd=calc_repo(machine), environ={"AGENT_MODEL__URL": url})
        running.until(lambda: f"the server at {url} loads its model" in running.err.read_text(), "word of it")
        done = running.send(signal.SIGINT)
    assert done.code == 130, done.said
    assert "Traceback" not in done.err


def test_an_answer_that_breaks_off_is_kept_and_never_executed(machine: Machine) -> None:
    said = GOOD[0][:60]
    server = FaultyServer().chat(stream(delta(said), cut=True))
    server.on("/tokenize", Answer(200, [b'{"tokens": [1]}']))
    repo = calc_repo(machine)
    with listening(server) as url:
        done = machine.agent(*RUN, cwd=repo, environ={"AGENT_MODEL__URL": url})
    assert done.code == 5, done.said
    (broken,) = bodies(journal_lines(repo), "model_interrupted")
    assert (broken["partial"], broken["cause"]) == (said, "died")
    assert bodies(journal_lines(repo), "patch_applied") == []


@pytest.mark.slow
def test_a_server_of_ours_that_is_killed_mid_answer(machine: Machine, tiny_model_path: Path) -> None:
    environ = {"AGENT_MODEL__PATH": str(tiny_model_path)}
    repo = calc_repo(machine)
    endless = GOOD[0].replace("I change it.", " ".join(f"Point {each} is so." for each in range(1_000)))
    running = machine.start(*RUN, cwd=repo, scripts={"T-1": (endless,)}, halt="token", environ=environ)
    running.until_halted()
    below = psutil.Process(running.process.pid).children(recursive=True)
    (server,) = [
        each for each in below if "llama_cpp.xllamacpp_server" in " ".join(each.cmdline()) and not each.children()
    ]
    os.kill(server.pid, signal.SIGKILL)
    running.release()
    done = running.wait()
    assert done.code == 5, done.said
    assert "SIGKILL" in done.out
    assert str(machine.state / "logs") in done.out, "where the server's log is"
    (broken,) = bodies(journal_lines(repo), "model_interrupted")
    assert broken["partial"]
    assert endless.startswith(broken["partial"])
    done = machine.start(*RUN, cwd=repo, scripts=SCRIPTS, environ=environ).wait()
    assert done.code == 0, done.said


@pytest.mark.slow
def test_a_context_that_is_full(machine: Machine, tiny_model_path: Path) -> None:
    repo = calc_repo(machine)
    before = fingerprint(repo, ["memory"])
    environ = {"AGENT_MODEL__PATH": str(tiny_model_path), "AGENT_MODEL__CONTEXT_TOKENS": "512"}
    done = machine.agent(*RUN, cwd=repo, environ=environ)
    assert done.code == 5, done.said
    assert "the context is full" in done.out
    assert "of 512" in done.out
    assert "model.context_tokens" in done.out
    assert fingerprint(repo, ["memory"]) == before


@pytest.mark.slow
def test_what_needs_a_person_is_parked_until_it_is_let_through(served: Machine) -> None:
    repo = calc_repo(served)
    command = ("run", "--task", "T-1")
    parked = served.scripted(SCRIPTS, *command, cwd=repo)
    assert parked.code == 3, parked.said
    assert "T-1 waits for a person: check" in parked.out
    policy = served.folder / "policy.yml"
    policy.write_text("approvals: {check: auto}\n")
    parked = served.scripted(SCRIPTS, *command, "--policy", str(policy), cwd=repo)
    assert parked.code == 3, parked.said
    assert "T-1 waits for a person: diff" in parked.out
    policy.write_text("approvals: {check: auto, diff: auto}\n")
    parked = served.scripted(SCRIPTS, *command, "--policy", str(policy), cwd=repo)
    assert "T-1 waits for a person: commit" in parked.out
    assert parked.code == 3, parked.said
    done = served.scripted(SCRIPTS, *command, "--yes", cwd=repo)
    assert done.code == 0, done.said
    lines = journal_lines(repo)
    assert [each["by"] for each in bodies(lines, "action_decided")] == [
        *("policy:check=auto", "policy:diff=auto", "policy:check=auto", "policy:read=auto", "policy:commit=auto")
    ]
    assert len(bodies(lines, "tests_finished")) == 2, "nothing was done twice"


def test_what_a_policy_denies_is_never_done(served: Machine) -> None:
    repo = calc_repo(served)
    policy = served.folder / "policy.yml"
    policy.write_text("approvals: {check: auto, diff: deny, commit: auto}\nlimits: {max_tool_calls_per_task: 3}\n")
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--policy", str(policy), cwd=repo)
    assert done.code == 1, done.said
    assert bodies(journal_lines(repo), "patch_applied") == []
    assert "the policy does not allow this" in journal_path(repo).read_text()


@pytest.mark.slow
def test_a_served_model_is_told_how_to_reach_and_ends_with_its_signal(machine: Machine, tiny_model_path: Path) -> None:
    serving = machine.start("model", "serve", str(tiny_model_path), cwd=machine.home)
    serving.until(lambda: "api_key_env" in serving.out.read_text(), "its address")
    told = serving.out.read_text().split()
    key = next(word for word in told if word.startswith("AGENT_API_KEY=")).partition("=")[2]
    environ = {"AGENT_MODEL__URL": told[told.index("listening") + 1], "AGENT_MODEL__API_KEY_ENV": "AGENT_API_KEY"}
    status = machine.agent("model", "status", cwd=machine.home, environ={**environ, "AGENT_API_KEY": key})
    assert (status.code, status.err) == (0, "")
    assert "model     tiny.gguf" in status.out
    assert "grammar   taken" in status.out
    refused = machine.agent("model", "status", cwd=machine.home, environ={**environ, "AGENT_API_KEY": "wrong"})
    assert refused.code == 5
    assert "key" in refused.err
    serving.send(signal.SIGTERM)
    assert serving.survivors() == []
    assert len(serving.family) >= 2, "a supervisor and the server"


@pytest.mark.slow
def test_a_served_model_ends_when_whoever_serves_it_is_killed(machine: Machine, tiny_model_path: Path) -> None:
    serving = machine.start("model", "serve", str(tiny_model_path), cwd=calc_repo(machine))
    serving.until(lambda: "api_key_env" in serving.out.read_text(), "its address")
    serving.send(signal.SIGKILL)
    assert len(serving.family) >= 2
    assert serving.survivors() == []


PLANNED = """\
Task: Read the numbers from a file
Goal: read("numbers.txt") returns a list
Approach: read() in calc.py
Accept: python -m pytest -q test_read.py
After:
Task: Add them up
Goal: the sum is printed
Approach:
Accept: rm -rf ~
After: 1
"""


@pytest.mark.slow
def test_a_plan_made_from_words(served: Machine) -> None:
    repo = calc_repo(served)
    scripts = {"plan:planner": (PLANNED,)}
    asked = served.scripted(scripts, "plan", "new", "sum a file", cwd=repo)
    assert asked.code == 3, asked.said
    assert "must pass: $ rm -rf ~  (not one of your checks)" in asked.out
    assert "nothing was written; the plan waits" in asked.out
    reference = asked.out.splitlines()[-1]
    assert "plan" in served.agent("inbox", cwd=repo).out
    assert "Add them up" in served.agent("inbox", "show", reference.split("@")[0], cwd=repo).out
    refused = served.agent("inbox", "approve", reference, cwd=repo)
    assert (refused.code, "rm -rf ~" in refused.err) == (2, True), refused.said
    skipped = served.agent("inbox", "skip", reference, cwd=repo)
    assert skipped.code == 0, skipped.said
    inside = {"AGENT_WORKBENCH_COMMAND": "1"}
    own = served.scripted(scripts, "plan", "new", "sum a file", "--yes", cwd=repo, environ=inside)
    assert "a command that the agent runs cannot decide" in own.err
    made = served.scripted(scripts, "plan", "new", "sum a file", "--yes", cwd=repo)
    assert (made.code, made.err) == (0, "")
    assert "2 tasks added to memory/plans/PLAN.yaml" in made.out
    shown = served.agent("plan", "show", cwd=repo).out
    read = "T-2    pending      Read the numbers from a file\n                    $ python -m pytest -q test_read.py"
    assert read in shown
    assert "T-3    pending      Add them up  (after T-2)" in shown
    assert "# My plan; it is mine." in (repo / "memory/plans/PLAN.yaml").read_text()
    again = served.scripted(scripts, "plan", "new", "sum a file", "--yes", "--replace", cwd=repo)
    assert again.code == 0, again.said
    (archived,) = (repo / "memory/plans/archive").iterdir()
    assert "# My plan; it is mine." in archived.read_text()
    assert f"the old one is archived at memory/plans/archive/{archived.name}" in again.out
    assert "T-5    pending      Add them up" in served.agent("plan", "show", cwd=repo).out
    garbled = served.scripted({"plan:planner": ("I would rather not.",) * 3}, "plan", "new", "x", "--yes", cwd=repo)
    assert garbled.code == 5, garbled.said
    assert "the model wrote no plan" in garbled.err


def test_doctor_says_what_is_missing_and_what_to_do(machine: Machine) -> None:
    repo = calc_repo(machine)
    done = machine.agent("doctor", cwd=repo)
    assert (done.code, done.err) == (4, "")
    told = done.out
    assert "✗ model          no model is configured" in told
    assert "→ `agent init` finds models of this machine" in told
    assert "or set model.path (a GGUF file) or model.url" in told
    assert "test_command" not in told
    assert "✓ plan           1 task in memory/plans/PLAN.yaml" in told
    assert "✓ repository" in told


def test_doctor_is_content_where_all_is_there(served: Machine) -> None:
    done = served.agent("doctor", cwd=calc_repo(served))
    assert (done.code, done.err) == (0, "")
    assert "✓ context        8192 tokens for one conversation" in done.out
    assert "✓ grammar        the server keeps to a grammar" in done.out
    assert "✗" not in done.out


def test_doctor_works_where_there_is_no_repository(served: Machine) -> None:
    (served.home / ".agent.yml").write_text("test_command: touch /tmp/never\n")
    done = served.agent("doctor", cwd=served.home)
    assert (done.code, done.err) == (4, "")
    assert "is not in a git repository" in done.out
    assert "✓ model" in done.out
