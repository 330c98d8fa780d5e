"""A task from words on the command line: added to the plan, shown, and done like any other; a typo starts nothing."""

import sys

import pytest

from agent_workbench.engine.policy import TRUSTED
from tests.e2e.calc import FILES, GOOD, PLAN, calc_repo
from tests.e2e.machine import Done, Machine, bodies, journal_lines
from tests.e2e.terminal import in_terminal

FILE = "memory/plans/PLAN.yaml"
WORDS = '-x: make "add" add, in @calc.py and not @../../etc/passwd'
TESTS = {".agent.yml": f"test_command: {sys.executable} test_calc.py\n"}


@pytest.mark.slow
def test_words_become_a_task_that_is_done(served: Machine) -> None:
    repo = calc_repo(served, TESTS)
    untrusted = served.scripted({"T-2": GOOD}, "run", WORDS, "--yes", cwd=repo)
    assert untrusted.code == 4, untrusted.said
    assert (repo / FILE).read_text() == PLAN, "nothing is written before the repository is trusted"
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    done = served.scripted({"T-2": GOOD}, "run", WORDS, "--yes", cwd=repo)
    assert done.code == 0, done.said
    assert "T-2 is added to the plan: -x: make" in done.err
    assert "pinned  calc.py" in done.err
    assert "@../../etc/passwd is no file here" in done.err
    plan = (repo / FILE).read_text()
    assert plan.startswith(PLAN), "comments and order stay"
    assert "status: done" in plan
    (pinned,) = bodies(journal_lines(repo), "chunk_pinned")
    assert pinned["chunk"]["path"] == "calc.py"


@pytest.mark.slow
@pytest.mark.usefixtures("needs_sandbox")
def test_words_alone_run_the_trusted_tests_and_wait_at_the_diff(served: Machine) -> None:
    repo = calc_repo(served, TESTS)
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    parked = served.scripted({"T-2": GOOD}, "run", "make add() add in @calc.py", cwd=repo)
    assert parked.code == 3, parked.said
    lines = journal_lines(repo)
    assert {body["by"] for body in bodies(lines, "action_decided")} == {TRUSTED}
    assert bodies(lines, "action_proposed")[-1]["proposal"]["kind"] == "diff"
    assert next_commands(parked) == ["next: agent inbox show T-2"]
    done = served.scripted({"T-2": GOOD[1:]}, "run", "-t", "T-2", "--yes", cwd=repo)
    assert done.code == 0, done.said
    assert next_commands(done) == ["next: agent merge T-2"]


def next_commands(done: Done) -> list[str]:
    return [line for line in done.err.splitlines() if line.startswith("next: ")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "deploy"), "'deploy' is one word, and no task"),
        (("tui", "--", "-x"), "'-x' is one word, and no task"),
        (("run", "fix", "the", "sum"), "3 arguments are no task"),
        (("run", "fix the sum", "--all"), "say which tasks"),
        (("run",), "say which tasks"),
        (("tui", "--web", "tiu"), "'tiu' is one word, and no task"),
    ],
)
def test_a_typo_starts_nothing(machine: Machine, arguments: tuple[str, ...], said: str) -> None:
    repo = calc_repo(machine)
    done = machine.agent(*arguments, cwd=repo)
    assert (done.code, done.out) == (2, ""), done.said
    assert said in done.err
    assert (repo / FILE).read_text() == PLAN


@pytest.mark.parametrize("plan", ["tasks: [\n", "tasks:\n  - id: 7\n"])
def test_a_broken_plan_is_left_as_it_is(machine: Machine, plan: str) -> None:
    repo = calc_repo(machine, {FILE: plan})
    done = machine.agent("run", "fix the sum", cwd=repo)
    assert done.code == 2, done.said
    assert f"{FILE}:" in done.err
    assert (repo / FILE).read_text() == plan


@pytest.mark.slow
def test_words_of_the_command_are_shown_on_the_screen_before_they_start(machine: Machine) -> None:
    repo = machine.new_repo("calc", {**FILES, ".agent.yml": ""})
    with in_terminal(machine, "tui", "make add() add: in @calc.py", cwd=repo) as terminal:
        terminal.until("skip the tour: Esc")
        terminal.type("\x1b")
        terminal.until("New task T-2")
        terminal.until("no test_command is set")
        assert (repo / FILE).read_text() == PLAN
        terminal.type("a")
        terminal.until("T-2 make")
        terminal.type("q")
        assert terminal.end() == 0
    assert 'description: "make add() add: in @calc.py"' in (repo / FILE).read_text()
