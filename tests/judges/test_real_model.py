"""Judge of all that a model of random numbers cannot show: a real one of 135 million parameters does tasks of a user.

It is too small to solve them. What is asserted holds with any model.
"""

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.journeys import FILES, WORDS
from tests.e2e.machine import WHOLE, Machine, bodies, journal_lines, journal_path
from tests.judges.weights import smollm2

SETTINGS = f"""\
model: {{path: %s, context_tokens: 4096, answer_tokens: %d}}
test_command: {sys.executable} test_calc.py
limits: {{max_tool_calls_per_task: 3, command_seconds: 20}}
sampling: {{executor: {{temperature: 0, seed: 7}}}}
"""
ANSWER_TOKENS = 400
LOOP = "Write a poem of fifty lines in which each line is the same."
# A loop is stopped after about 100 tokens of it; the line that is repeated, and prose before it, come first.
LOOP_TOKENS = ANSWER_TOKENS // 2
TEMPLATE = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
# What a chat template adds to a message, with the joints of the texts, which are counted one by one.
MOST_TEMPLATE_TOKENS = 16
pytestmark = pytest.mark.timeout(1200)
Lines = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def weights() -> Path:
    """The model's file."""
    return smollm2()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine without a server: the workbench starts its own."""
    machine = Machine(tmp_path / "machine")
    yield machine
    machine.end()


def trusted_repo(machine: Machine, weights: Path, answer_tokens: int = ANSWER_TOKENS) -> Path:
    """Make a repository with a failing test, whose settings name the model, and trust it."""
    repo = machine.new_repo("calc", {**FILES, ".agent.yml": SETTINGS % (weights, answer_tokens)})
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    return repo


def answers(lines: Lines) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return each prompt of a journal that was answered, with its answer, whole or cut."""
    kinds = {"prompt_built", "model_answered", "model_interrupted"}
    asked = [line for line in lines if line["kind"] in kinds]
    return [(one["body"], two["body"]) for one, two in pairwise(asked) if one["kind"] == "prompt_built"]


def text_of(journal: Path, value: object) -> str:
    """Return a text of the journal; long ones are in files beside it."""
    return (journal.parent / "blobs" / value["blob"]).read_text() if isinstance(value, dict) else str(value)


def check_answers(repo: Path, lines: Lines) -> None:
    """Fail unless each answer of a session was counted by its server and holds no token of the template."""
    assert answers(lines)
    for prompt, answer in answers(lines):
        template = answer["figures"]["prompt_tokens"] - prompt["tokens"]
        assert 0 < template <= MOST_TEMPLATE_TOKENS * prompt["messages"], "the server read what was counted"
        said = text_of(journal_path(repo), answer.get("text", answer.get("partial")))
        assert not [mark for mark in TEMPLATE if mark in said], said


def check_session(machine: Machine, repo: Path, before: Mapping[str, str]) -> None:
    """Fail unless a session verifies and re-runs to the byte, and the checkout is as it was."""
    assert machine.agent("sessions", "verify", cwd=repo).code in WHOLE
    rerun = machine.agent("replay", "--rerun", cwd=repo)
    assert rerun.code == 0, rerun.said
    assert fingerprint(repo, ["memory"]) == before


def test_a_task_is_worked_on_to_a_true_end(machine: Machine, weights: Path) -> None:
    repo = trusted_repo(machine, weights)
    before = fingerprint(repo, ["memory"])
    done = machine.agent("run", WORDS, "--yes", cwd=repo)
    lines = journal_lines(repo)
    assert done.code in {0, 1, 3}, done.said
    ended = [f"T-1 {each['status']}: {each['reason']}" for each in bodies(lines, "task_finished")]
    if done.code == 1:
        assert ended == [done.out.splitlines()[-1]], done.said
    steps = [each for each in bodies(lines, "action_proposed") if each["proposal"]["kind"] != "check"]
    refused = [each["reason"] for each in bodies(lines, "action_rejected")]
    cut = [answer["cause"] for _, answer in answers(lines) if "cause" in answer]
    assert all(refused)
    assert len(steps) + len(refused) + len(cut) >= len(answers(lines)), "each is a step, refused with a reason, or cut"
    check_answers(repo, lines)
    check_session(machine, repo, before)


def test_an_answer_that_is_cut_is_told_and_never_executed(machine: Machine, weights: Path) -> None:
    repo = trusted_repo(machine, weights, answer_tokens=12)
    before = fingerprint(repo, ["memory"])
    done = machine.agent("run", WORDS, "--yes", cwd=repo)
    lines = journal_lines(repo)
    assert (done.code, "cut at the token limit" in done.out) == (1, True), done.said
    assert {answer.get("cause") for _, answer in answers(lines)} == {"length"}
    assert {answer["figures"]["answer_tokens"] for _, answer in answers(lines)} == {12}
    assert {each["proposal"]["kind"] for each in bodies(lines, "action_proposed")} == {"check"}
    check_answers(repo, lines)
    check_session(machine, repo, before)


def test_a_loop_is_stopped(machine: Machine, weights: Path) -> None:
    repo = trusted_repo(machine, weights)
    assert machine.agent("chat", LOOP, cwd=repo).code == 0
    lines = journal_lines(repo)
    (stopped,) = bodies(lines, "model_interrupted")
    assert stopped["cause"] == "repetition"
    assert stopped["figures"]["answer_tokens"] < LOOP_TOKENS
    check_answers(repo, lines)


def test_ctrl_c_within_an_answer_ends_all_of_it(machine: Machine, weights: Path) -> None:
    repo = trusted_repo(machine, weights)
    before = fingerprint(repo, ["memory"])
    running = machine.start("run", WORDS, "--yes", cwd=repo, halt="token")
    running.until_halted()
    done = running.send(signal.SIGINT)
    assert (done.code, running.survivors()) == (130, []), done.said
    *_, cut, left = journal_lines(repo)
    assert (cut["kind"], cut["body"]["cause"], left["kind"]) == ("model_interrupted", "stopped", "session_left")
    check_session(machine, repo, before)
