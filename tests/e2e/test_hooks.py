"""Hooks of a repository: not before trust, told in order, obeyed where they object, gone with the run."""

import json
import signal
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import CALC, FINISH, GOOD, RIGHT, calc_repo, diff_step
from tests.e2e.machine import Machine, bodies, journal_lines
from tests.e2e.test_inbox import reference

pytestmark = pytest.mark.slow

RUN = ("run", "--task", "T-1", "--yes")
TODO = RIGHT.replace("right", "right  # TODO")
SETTINGS = """\
hooks:
  todo:
    events: [diff_proposed]
    command: sh tools/todo.sh
    unconfined: true
  asks:
    events: [commit_proposed]
    command: 'echo "{\\"decision\\": \\"ask\\", \\"reason\\": \\"it is Friday\\"}"'
    unconfined: true
  log:
    events: [task_started, diff_applied, checks_finished, waits_for_person, task_done]
    command: cat >>LOG; env >>ENV
    unconfined: true
"""
SCRIPT = """\
if grep -q '+.*TODO'; then echo '{"decision": "refuse", "reason": "no TODO"}'; fi
"""


def hooked_repo(machine: Machine, folder: Path) -> Path:
    settings = SETTINGS.replace("LOG", str(folder / "log")).replace("ENV", str(folder / "environ"))
    return calc_repo(machine, {".agent.yml": settings, "tools/todo.sh": SCRIPT})


def test_hooks_from_the_trust_to_the_end(served: Machine, tmp_path: Path) -> None:
    repo, log = hooked_repo(served, tmp_path), tmp_path / "log"
    scripts = {"T-1": (diff_step({"calc.py": CALC}, {"calc.py": TODO}), *GOOD)}
    secret = {"MY_TOKEN": "planted-and-secret"}
    before = served.scripted(scripts, *RUN, cwd=repo, environ=secret)
    assert before.code == 4, before.said
    assert not log.exists()
    shown = served.agent("trust", "--show", cwd=repo).out
    assert "hooks.todo file tools/todo.sh: " in shown
    assert "hooks.log.unconfined: true (runs it with your rights, outside of the sandbox)" in shown
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    assert "hook  " in served.agent("doctor", cwd=repo).out
    checkout = fingerprint(repo, ("memory",))

    parked = served.scripted(scripts, *RUN, cwd=repo, environ=secret)
    assert parked.code == 3, parked.said
    assert "hook todo refuses: no TODO" in parked.said
    assert "hook asks asks: it is Friday" in parked.said
    assert "hook asks asks: it is Friday" in served.agent("inbox", "show", "T-1", cwd=repo).out
    assert served.agent("inbox", "approve", reference(served, repo), cwd=repo).code == 0
    done = served.scripted(scripts, *RUN, cwd=repo, environ=secret)
    assert done.code == 0, done.said

    told = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert told == [
        *("task_started", "checks_finished", "diff_applied", "checks_finished", "waits_for_person", "task_done")
    ]
    assert "planted" not in log.read_text() + (tmp_path / "environ").read_text()
    lines = journal_lines(repo)
    assert len(bodies(lines, "hook_started")) == len(bodies(lines, "hook_answered")) == 3 + len(told)
    assert served.agent("sessions", "verify", cwd=repo).code == 0
    assert ", 3 identical" in served.agent("replay", "--rerun", cwd=repo).out
    assert len(log.read_text().splitlines()) == len(told), "a re-run tells nobody"
    assert fingerprint(repo, ("memory",)) == checkout


def test_a_script_that_changed_while_the_task_ran_is_not_run(served: Machine, tmp_path: Path) -> None:
    repo = hooked_repo(served, tmp_path)
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    running = served.start(*RUN, cwd=repo, scripts={"T-1": GOOD}, halt="ModelAnswered")
    running.until_halted()
    (repo / "tools" / "todo.sh").write_text(f"touch {tmp_path / 'canary'}")
    running.release()
    parked = running.wait()
    assert parked.code == 3, parked.said
    assert "hook todo asks: it, or a file that it names, changed since it was trusted" in parked.said
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_hook_that_hangs_ends_with_the_run(served: Machine, tmp_path: Path, number: int) -> None:
    mark = tmp_path / "began"
    line = f"touch {mark}; sleep 600 & sleep 600"
    hangs = f"hooks: {{hangs: {{events: [diff_proposed], command: '{line}', unconfined: true}}}}"
    repo = calc_repo(served, {".agent.yml": hangs})
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    running = served.start(*RUN, cwd=repo, scripts={"T-1": GOOD})
    running.until(mark.exists, "the hook's start")
    running.send(number)
    assert running.survivors() == []
    again = served.scripted({"T-1": (FINISH,)}, *RUN, cwd=repo)
    assert again.code == 3, again.said
    assert "hook hangs asks: it was interrupted before it answered" in again.said
