"""What must be true after a night: every task ended where it belongs, once, and each effect was approved."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from agent_workbench.core.task_result import RESULT_SUFFIX, TaskResult, decode_result
from tests.e2e.machine import WHOLE, Machine, bodies
from tests.faults.night_chaos import Workers
from tests.faults.night_scene import QUEUE, Scene

Lines = list[dict[str, Any]]


def journals(repo: Path) -> Iterator[tuple[str, Lines]]:
    """Yield each session with the whole lines of its journal."""
    for path in sorted((repo / "memory/sessions").glob("*/journal.jsonl")):
        whole = path.read_bytes().rpartition(b"\n")[0]
        yield path.parent.name, [json.loads(line) for line in whole.splitlines()]


def ended(scene: Scene, end: str) -> set[str]:
    """Return the tasks whose file is in `done` or `failed`."""
    return {path.stem for path in (scene.repo / QUEUE / end).glob("*.yaml")}


def results(scene: Scene, end: str) -> dict[str, TaskResult]:
    """Return the results beside the ended tasks, by the names of their files."""
    found = (scene.repo / QUEUE / end).glob(f"*{RESULT_SUFFIX}")
    return {path.name.removesuffix(RESULT_SUFFIX): decode_result(path.read_text(), path.name) for path in found}


def check_ends(scene: Scene, done: Collection[str], waiting: Collection[str] = ()) -> None:
    """Fail unless exactly `done` are done, what must fail has failed, and `waiting` are still queued."""
    expected = {"done": set(done), "failed": set(scene.failing)}
    for end, tasks in expected.items():
        assert ended(scene, end) == tasks, end
        found = results(scene, end)
        assert found.keys() == tasks, "a result stands beside each task"
        assert {each.status for each in found.values()} <= {end}
    assert {path.stem for path in (scene.repo / QUEUE).glob("*.yaml")} <= set(waiting)
    slow = results(scene, "failed")
    for task in scene.tasks["slow"]:
        assert slow[task].session, "it was begun, and ended by its time limit"


def check_effects(machine: Machine, scene: Scene, done: Collection[str]) -> None:
    """Fail unless the commits of `done` are all there is, each with its one file."""
    branches = machine.git(scene.repo, "branch", "--list", "agent/*", "--format=%(refname:short)").split()
    commits = {branch: machine.git(scene.repo, "rev-list", f"main..{branch}").split() for branch in branches}
    assert {branch for branch, made in commits.items() if made} == {f"agent/{task}" for task in done}
    for task in done:
        (commit,) = commits[f"agent/{task}"]
        changed = machine.git(scene.repo, "diff", "--name-status", f"{commit}~1", commit).split()
        assert changed == ["A", scene.path_of(task)]
        assert machine.git(scene.repo, "show", f"{commit}:{scene.path_of(task)}") == task
        result = results(scene, "done")[task]
        assert (result.commit, result.files) == (commit, (scene.path_of(task),))


def check_journals(machine: Machine, scene: Scene, done: Collection[str]) -> None:
    """Fail unless each effect has one approval, and each task one commit and one end."""
    committed, finished = Counter[str](), Counter[str]()
    for session, lines in journals(scene.repo):
        started = [body["proposal_id"] for body in bodies(lines, "action_started")]
        decided = bodies(lines, "action_decided")
        approved = [body["proposal_id"] for body in decided if body["verdict"] == "approve"]
        assert max(Counter(started).values(), default=1) == 1, f"{session}: something was begun twice"
        assert max(Counter(body["proposal_id"] for body in decided).values(), default=1) == 1, session
        assert set(started) <= set(approved), f"{session}: something was done that nobody approved"
        tasks = {body["task"] for body in bodies(lines, "task_started")}
        assert len(tasks) <= 1, f"{session}: a queued task has a session of its own"
        for task in tasks:
            committed[task] += len(bodies(lines, "task_committed"))
            finished[task] += len(bodies(lines, "task_finished"))
            if task in scene.person:
                proposals = [body["proposal"] for body in bodies(lines, "action_proposed")]
                diffs = {each["id"] for each in proposals if each["kind"] == "diff"}
                by = {body["by"] for body in decided if body["proposal_id"] in diffs}
                assert by <= {"user"}, f"{session}: a policy approved what it does not cover"
        verified = machine.agent("sessions", "verify", session, cwd=scene.repo)
        assert verified.code in WHOLE, f"{session}: {verified.said}"
    assert {task: count for task, count in committed.items() if count} == dict.fromkeys(done, 1)
    assert {finished[task] for task in done} <= {1}


def check_workers(workers: Workers) -> None:
    """Fail if a worker met a defect, or left a process behind."""
    assert "Traceback" not in workers.logs()
    for each in (*workers.killed, *workers.running):
        assert each.survivors() == []
