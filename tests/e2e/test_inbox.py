"""Decisions from another process: a parked session goes on, an open one at once, and a command decides nothing."""

import json
from pathlib import Path

import pytest

from tests.e2e.calc import PLAN as CALC_PLAN
from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines
from tests.e2e.terminal import in_terminal
from tests.e2e.test_unconfined import bare, path_without_bwrap
from tests.e2e.tmux import HAS_TMUX, tmux

__all__ = ["bare", "path_without_bwrap"]

RUN = ("run", "--task", "T-1")
MOST_GATES = 10
PLAN = """\
version: 1
tasks:
  - id: T-1
    description: Make add() add
    accept_tests: [python attack.py]
  - id: T-2
    description: Make add() add twice
    accept_tests: [python test_calc.py]
"""
# What a command can do that knows the workbench, and where its state is.
ATTACK = """\
import os, subprocess, sys
environ = {{**os.environ, "XDG_STATE_HOME": {state!r}, "HOME": {home!r}}}
environ.pop("AGENT_WORKBENCH_COMMAND", None)
agent = [sys.executable, "-P", "-m", "agent_workbench", "inbox"]

def run(*words):
    done = subprocess.run([*agent, *words], cwd={repo!r}, env=environ, capture_output=True, text=True)
    print(words[0], done.returncode, done.stdout, done.stderr)
    return done

reference = (run("show", "T-2").stdout.splitlines() or [{reference!r}])[-1]
sys.exit(run("approve", reference).returncode)
"""


def reference(machine: Machine, repo: Path, name: str = "T-1") -> str:
    """Return the reference below the proposal as the inbox shows it."""
    shown = machine.agent("inbox", "show", name, cwd=repo)
    assert shown.code == 0, shown.said
    return shown.out.splitlines()[-1]


@pytest.mark.slow
def test_a_parked_task_is_brought_to_its_end_from_the_shell(served: Machine) -> None:
    repo = calc_repo(served)
    decided = []
    for _ in range(MOST_GATES):
        done = served.scripted(SCRIPTS, *RUN, cwd=repo)
        if done.code == 0:
            break
        assert done.code == 3, done.said
        (item,) = json.loads(served.agent("inbox", "--json", cwd=repo).out)
        decided.append(item["kind"])
        approved = served.agent("inbox", "approve", reference(served, repo), cwd=repo)
        assert approved.code == 0, approved.said
        assert "it is recorded when the session is opened" in approved.out
    assert decided == ["check", "diff", "commit"], "the same checks after an approved diff need no second approval"
    lines = journal_lines(repo)
    by_user = [body for body in bodies(lines, "action_decided") if body["by"] == "user"]
    assert [body["verdict"] for body in by_user] == ["approve"] * len(decided)
    assert all(body["via"].startswith("inbox: ") for body in by_user)
    assert served.git(repo, "log", "-1", "--format=%s", "agent/T-1") == "[Agent] Complete T-1: Make add() add"
    assert served.agent("sessions", "verify", cwd=repo).code == 0
    assert served.agent("inbox", cwd=repo).out == "nothing waits\n"
    assert not list((served.state / "inbox").iterdir()), "what is recorded is removed"


@pytest.mark.slow
def test_on_a_terminal_what_waits_is_shown_and_asked_about_one_after_another(served: Machine) -> None:
    second = "  - {id: T-2, description: Add, accept_tests: [python test_calc.py]}\n"
    repo = calc_repo(served, {"memory/plans/PLAN.yaml": CALC_PLAN + second})
    for task in ("T-1", "T-2"):
        assert served.scripted(SCRIPTS, "run", "-t", task, cwd=repo).code == 3
    with in_terminal(served, "inbox", cwd=repo) as terminal:
        terminal.until("(1/2) T-1: [a,r,s,n,q,?]")
        assert "$ python test_calc.py" in terminal.shown, "what is decided was shown"
        terminal.type("?\n")
        terminal.until("n - leave it, and show the next one")
        terminal.type("n\n")
        terminal.until("(2/2) T-2: [a,r,s,n,q,?]")
        terminal.type("r\n")
        terminal.until("why, for the model:")
        terminal.type("not today\n")
        terminal.until("it is recorded when")
        assert terminal.end() == 0
    with in_terminal(served, "inbox", cwd=repo) as terminal:
        terminal.until("(1/1) T-1: [a,r,s,n,q,?]")
        terminal.type("r\n")
        terminal.until("why, for the model:")
        terminal.type("\x04")
        assert terminal.end() == 0, "the end of the input decides nothing"
    with in_terminal(served, "inbox", "approve", "T-1", cwd=repo) as terminal:
        terminal.until("approve it? [y/N]")
        assert "$ python test_calc.py" in terminal.shown
        terminal.type("y\n")
        terminal.until("it is recorded when")
        assert terminal.end() == 0
    decided = {each["task"]: each["decided"] for each in json.loads(served.agent("inbox", "--json", cwd=repo).out)}
    assert decided == {"T-1": "approve", "T-2": "reject"}
    named = served.agent("inbox", "approve", "T-1", cwd=repo)
    assert named.code == 2, "without a terminal nothing can be shown first"


@pytest.mark.slow
def test_a_rejection_reaches_the_model_before_any_policy(served: Machine) -> None:
    repo = calc_repo(served)
    assert served.scripted(SCRIPTS, *RUN, cwd=repo).code == 3
    for verb in (("plan", "show"), ("sessions", "list")):
        words = served.agent(*verb, cwd=repo).out.split()
        assert "parked" in words, "every front end has one word for it"
        assert "in_progress" not in words
    assert served.agent("inbox", "approve", reference(served, repo), cwd=repo).code == 0
    assert served.scripted(SCRIPTS, *RUN, cwd=repo).code == 3
    rejected = served.agent("inbox", "reject", reference(served, repo), "--reason", "not like this", cwd=repo)
    assert rejected.code == 0, rejected.said
    # Under --yes the diff would be approved; the person was first.
    served.scripted({"T-1": (SCRIPTS["T-1"][0],)}, *RUN, "--yes", cwd=repo)
    decisions = [
        (body["verdict"], body["by"], body["reason"]) for body in bodies(journal_lines(repo), "action_decided")
    ]
    assert ("reject", "user", "not like this") in decisions


def test_what_is_wrong_with_a_decision_is_said(served: Machine) -> None:
    repo = calc_repo(served)
    assert served.scripted(SCRIPTS, *RUN, cwd=repo).code == 3
    ref = reference(served, repo)
    wrong = ref[:-1] + ("0" if ref[-1] != "0" else "1")
    for words, code, why in (
        (("approve", wrong), 1, "is not what was shown"),
        (("approve", ref.partition("@")[0]), 2, "is not a reference"),
        (("approve", f"../../x/P-1@{'0' * 32}"), 2, "is not a reference"),
        (("approve", ref, "--hunks", "1"), 2, "has no hunks to choose from"),
        (("approve", ref, "--hunks", "a"), 2, "does not list hunks"),
        (("show", "T-9"), 2, "no pending proposal is called 'T-9'"),
    ):
        done = served.agent("inbox", *words, cwd=repo)
        assert (done.code, why in done.err) == (code, True), done.said
    assert served.agent("inbox", "skip", ref, cwd=repo).code == 0
    again = served.agent("inbox", "approve", ref, cwd=repo)
    assert (again.code, "was decided already: skipped by" in again.err) == (1, True), again.said
    assert "(skipped, not recorded yet)" in served.agent("inbox", cwd=repo).out


@pytest.mark.slow
@pytest.mark.xdist_group("pty")
@pytest.mark.skipif(not HAS_TMUX, reason="machine lacks: tmux")
def test_an_open_session_takes_decisions_up_at_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine", {"AGENT_UI__REVIEW_CONTEXT": "false"})
    shop = tmp_path / "shop"
    with tmux(machine, tmp_path) as screen:
        screen.start("demo", "--folder", str(shop), columns=100, rows=30)
        screen.skip_tour()
        screen.shows("start T-1: Enter")
        screen.press("Enter")
        for shown in ("before any change", "line.cents + line.quantity"):
            screen.shows("approve: a", shown)
            (item,) = json.loads(machine.agent("inbox", "--json", cwd=shop).out)
            assert item["holder"].startswith("pid ")
            done = machine.agent("inbox", "approve", reference(machine, shop), "--json", cwd=shop)
            assert done.code == 0, done.said
            assert json.loads(done.out)["recorded"] is True
        screen.press("q")
        screen.ends()
    by_user = [body for body in bodies(journal_lines(shop), "action_decided") if body["by"] == "user"]
    assert [body["via"].partition(":")[0] for body in by_user] == ["inbox", "inbox"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["served", "bare"])
def test_a_command_decides_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    machine: Machine = request.getfixturevalue(kind)
    repo = calc_repo(machine, {"memory/plans/PLAN.yaml": PLAN, "attack.py": "raise SystemExit(1)\n"})
    assert machine.scripted(SCRIPTS, "run", "--task", "T-2", "--unconfined", cwd=repo).code == 3
    words = {"state": str(machine.state.parent), "home": str(machine.home), "repo": str(repo)}
    waiting = reference(machine, repo, "T-2")
    (repo / "attack.py").write_text(ATTACK.format(reference=waiting, **words))
    machine.git(repo, "commit", "--quiet", "--all", "--message", "attack")
    machine.scripted(SCRIPTS, *RUN, "--yes", "--unconfined", cwd=repo)
    parked = waiting.partition("/")[0]
    (attacker,) = [path.name for path in (repo / "memory/sessions").iterdir() if path.name != parked]
    finished = bodies(journal_lines(repo, attacker), "tests_finished")
    results = [result for body in finished for result in body["results"]]
    assert results
    assert all(result["exit_code"] != 0 for result in results)
    assert any("approve" in result["output"] for result in results), results
    assert not (machine.state / "inbox").exists()
    (item,) = json.loads(machine.agent("inbox", "--task", "T-2", "--json", cwd=repo).out)
    assert item["decided"] == ""


TWO = PLAN.replace("python attack.py", "python test_calc.py")


@pytest.mark.slow
def test_a_run_goes_on_with_what_was_decided_while_it_worked_on_another_task(served: Machine) -> None:
    repo = calc_repo(served, {"memory/plans/PLAN.yaml": TWO})
    shown = served.folder / "shown"
    notifier = served.folder / "bin" / "notify-send"
    notifier.parent.mkdir()
    notifier.write_text(f'#!/bin/sh\necho "$*" >> {shown}\n')
    notifier.chmod(0o755)
    environ = {"AGENT_UI__NOTIFY": "[desktop]", "PATH": f"{notifier.parent}:{served.environ['PATH']}"}
    running = served.start(
        "run", "--all", cwd=repo, scripts={**SCRIPTS, "T-2": SCRIPTS["T-1"]}, halt="ActionProposed#2", environ=environ
    )
    running.until_halted()
    assert served.agent("inbox", "approve", reference(served, repo), cwd=repo).code == 0
    running.release()
    done = running.wait()
    assert done.code == 3, done.said
    assert "T-1 waits for a person: diff" in done.out
    assert "T-2 waits for a person: check" in done.out
    told = [line.partition("-- Agent Workbench ")[2] for line in shown.read_text().splitlines()]
    assert [line.count("waits for a person: ") for line in told] == [1, 2, 2], told
    assert "T-1 waits for a person: diff" in told[2]
