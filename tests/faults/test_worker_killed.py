"""Workers that are killed, stopped or in each other's way: each task is done once, and nothing of it is lost."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import calc_repo
from tests.e2e.conftest import machine
from tests.e2e.machine import Machine, bodies, journal_lines, write_files

pytestmark = pytest.mark.slow

__all__ = ["machine"]

QUEUE = "tasks/queue/default"
TASK = """\
goal: Make add() add
edits:
  - {path: calc.py, find: left - right, replace: left + right}
verify:
  - command: python test_calc.py
scope: {allowed_write_globs: [calc.py]}
"""
POLICY = "approvals: {diff: auto, check: auto, commit: auto}\n"
ASKS = "approvals: {diff: ask, check: auto, commit: auto}\n"
ONCE = ("worker", "--once", "--unconfined", "--policy")
# Between claim and session, before the first step, in the middle, between commit and journal, before the queue knows
# of the end, and before it is reported.
POINTS = ("claim", "note", "PatchApplied", "commit", "SessionLeft", "finish")


def queue_repo(machine: Machine, *names: str, policy: str = POLICY) -> tuple[Path, str]:
    """Make a repository with these tasks queued, and a policy outside of it."""
    repo = calc_repo(machine)
    write_files(repo, {f"{QUEUE}/{name}": TASK for name in names})
    path = machine.folder / "policy.yml"
    path.write_text(policy)
    return repo, str(path)


def queued(repo: Path, folder: str = "") -> list[str]:
    """Return the names of the files in the queue, or in a folder of it."""
    place = repo / QUEUE / folder
    names = sorted(each.name for each in place.iterdir() if each.is_file()) if place.exists() else []
    return [name for name in names if not name.startswith(".")]


def result_of(repo: Path, task: str, folder: str = "done") -> dict[str, object]:
    found: dict[str, object] = json.loads((repo / QUEUE / folder / f"{task}.result.json").read_text())
    return found


def check_done_once(machine: Machine, repo: Path, task: str) -> None:
    """Fail unless exactly one session did the task, each action in it once, and the queue knows."""
    result = result_of(repo, task)
    assert (result["status"], result["reason"]) == ("done", "committed")
    journals = [journal_lines(repo, each.parent.name) for each in (repo / "memory/sessions").glob("*/journal.jsonl")]
    started = [lines for lines in journals if any(each["task"] == task for each in bodies(lines, "task_started"))]
    assert len(started) == 1, "one session began it"
    (lines,) = started
    assert lines[0]["body"]["session"] == result["session"]
    for kind in ("action_started", "action_finished", "action_decided"):
        assert max(Counter(each["proposal_id"] for each in bodies(lines, kind)).values()) == 1, kind
    assert len(bodies(lines, "task_finished")) == 1
    assert machine.git(repo, "rev-parse", f"agent/{task}") == result["commit"]
    assert machine.git(repo, "rev-list", "--count", f"main..agent/{task}") == "1"
    assert machine.agent("sessions", "verify", str(result["session"]), cwd=repo).code == 0


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_killed_is_continued_by_the_next(machine: Machine, point: str) -> None:
    repo, policy = queue_repo(machine, "a.yaml")
    before = fingerprint(repo, ["memory", "tasks"])
    running = machine.start(*ONCE, policy, cwd=repo, halt=point)
    running.until_halted()
    running.send(signal.SIGKILL)
    assert running.survivors() == []
    again = machine.agent(*ONCE, policy, cwd=repo)
    assert again.code == 0, again.said
    check_done_once(machine, repo, "a")
    assert fingerprint(repo, ["memory", "tasks"]) == before
    assert queued(repo) == []
    assert queued(repo, "done") == ["a.result.json", "a.yaml"]
    status = json.loads(machine.agent("worker", "status", "--json", cwd=repo).out)
    assert (status["workers"], status["queued"], status["interrupted"], status["done"]) == ([], [], [], 1)


def test_a_worker_that_is_told_to_end_ends_between_two_steps(machine: Machine) -> None:
    repo, policy = queue_repo(machine, "a.yaml", "b.yaml")
    running = machine.start("worker", "--watch", *ONCE[2:], policy, cwd=repo, halt="PatchApplied")
    running.until_halted()
    running.process.send_signal(signal.SIGTERM)
    running.release()
    done = running.wait()
    assert done.code == 130, done.said
    assert "stopped by SIGTERM" in done.err
    kinds = [each["kind"] for each in journal_lines(repo)]
    assert kinds.count("action_started") == kinds.count("action_finished"), "what was begun was finished"
    assert kinds[-1] == "session_left"
    again = machine.agent(*ONCE, policy, cwd=repo)
    assert again.code == 0, again.said
    check_done_once(machine, repo, "a")
    check_done_once(machine, repo, "b")


def test_two_workers_never_do_the_same_task(machine: Machine) -> None:
    repo, policy = queue_repo(machine, "a.yaml", "b.yaml", "c.yaml")
    first = machine.start(*ONCE, policy, cwd=repo, halt="claim")
    first.until_halted()
    second = machine.agent(*ONCE, policy, cwd=repo)
    assert "b done: committed" in second.out
    first.release()
    assert "a done: committed" in first.wait().out
    for task in ("a", "b"):
        check_done_once(machine, repo, task)
    assert queued(repo) == ["c.yaml"]


def test_a_parked_task_goes_on_when_it_is_decided(machine: Machine) -> None:
    repo, policy = queue_repo(machine, "a.yaml", policy=ASKS)
    parked = machine.start(*ONCE, policy, cwd=repo, halt="park")
    parked.until_halted()
    parked.send(signal.SIGKILL)
    still = machine.agent(*ONCE, policy, cwd=repo)
    waits = "No task is free; 1 waiting for a person: `agent inbox`"
    assert (still.code, still.out.splitlines()[-1]) == (0, waits), "nobody decided"
    status = json.loads(machine.agent("worker", "status", "--json", cwd=repo).out)
    assert [(each["task"], each["what"][:5]) for each in status["parked"]] == [("a", "diff:")]
    reference = machine.agent("inbox", "show", "a", cwd=repo).out.splitlines()[-1]
    assert machine.agent("inbox", "approve", reference, cwd=repo).code == 0
    decided = machine.agent(*ONCE, policy, cwd=repo)
    assert decided.code == 0, decided.said
    check_done_once(machine, repo, "a")


def test_a_parked_task_goes_on_under_a_policy_that_decides_it(machine: Machine) -> None:
    repo, policy = queue_repo(machine, "a.yaml", policy=ASKS)
    assert machine.agent(*ONCE, policy, cwd=repo).code == 3
    Path(policy).write_text(POLICY)
    done = machine.agent(*ONCE, policy, cwd=repo)
    assert done.code == 0, done.said
    check_done_once(machine, repo, "a")


def test_files_are_taken_by_name_and_one_that_is_no_task_is_put_aside(machine: Machine) -> None:
    repo, policy = queue_repo(machine, "b.yaml", "a.yml", "c.yaml")
    (repo / QUEUE / "a.yml").write_text("goal: [")
    os.utime(repo / QUEUE / "a.yml", (1, 1))  # one that was just written may not be whole yet
    assert machine.agent(*ONCE, policy, cwd=repo).code == 0
    assert queued(repo) == ["c.yaml"]
    assert queued(repo, "done") == ["b.result.json", "b.yaml"]
    assert queued(repo, "failed") == ["a.result.json", "a.yml"]
    assert "a.yml:1" in str(result_of(repo, "a", "failed")["reason"])


@pytest.mark.parametrize(
    ("text", "code", "folder"),
    [
        (TASK.replace("python test_calc.py", "'false'"), 1, "failed"),
        (TASK.replace("left - right,", "nowhere,"), 1, "failed"),
        ("goal: Make add() add\n", 5, ""),
    ],
    ids=["its check fails", "its edit fits nowhere", "no model"],
)
def test_the_exit_code_says_what_became_of_the_task(machine: Machine, text: str, code: int, folder: str) -> None:
    repo, policy = queue_repo(machine)
    write_files(repo, {f"{QUEUE}/a.yaml": text})
    done = machine.agent(*ONCE, policy, cwd=repo)
    assert done.code == code, done.said
    assert queued(repo, folder)[-1] == "a.yaml"


def test_no_folder_and_no_tasks(machine: Machine) -> None:
    repo, policy = queue_repo(machine)
    none = machine.agent(*ONCE, policy, cwd=repo)
    assert none.code == 4
    assert "Queue directory not found: tasks/queue/default" in none.err
    (repo / QUEUE).mkdir(parents=True)
    empty = machine.agent(*ONCE, policy, cwd=repo)
    assert (empty.code, empty.out.splitlines()[-1]) == (0, "No tasks in queue")


def test_tasks_that_need_no_model_are_done_while_others_wait_for_it(machine: Machine) -> None:
    repo, policy = queue_repo(machine, "b.yaml")
    write_files(repo, {f"{QUEUE}/a.yaml": "goal: Make add() add\n"})
    running = machine.start("worker", "--watch", *ONCE[2:], policy, cwd=repo)
    running.until(lambda: "b.result.json" in queued(repo, "done"), "b is done")
    status = json.loads(machine.agent("worker", "status", "--json", cwd=repo).out)
    (worker,) = status["workers"]
    assert ("a", "model") in [(each["task"], each["waits_for"]) for each in worker["jobs"]]
    done = running.send(signal.SIGTERM)
    assert done.code == 130, done.said
    assert done.out.count("waiting for the model: no model is configured") == 1


def test_the_log_says_why_a_worker_ends(machine: Machine) -> None:
    repo, policy = queue_repo(machine)
    (repo / QUEUE).mkdir(parents=True)
    log = machine.folder / "worker.log"
    running = machine.start("worker", "--watch", "--log-file", str(log), *ONCE[2:], policy, cwd=repo)
    running.until(lambda: log.exists() and "works on" in log.read_text(), "it works")
    write_files(repo, {".agent.yml": "test_command: python evil.py\n", f"{QUEUE}/a.yaml": TASK})
    done = running.wait()
    assert done.code == 4, done.said
    assert "is not trusted" in log.read_text()
