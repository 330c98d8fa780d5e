"""`agent run` is stopped in each phase, by every signal that ends a process, and taken up again."""

import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import GOOD, PLAN, SCRIPTS, calc_repo
from tests.e2e.conftest import served
from tests.e2e.machine import Done, Machine, Running, bodies, journal_lines, journal_path
from tests.llama_fixtures import llama_server, tiny_model_path

__all__ = ["llama_server", "served", "tiny_model_path"]

KILL, TERM, HUP, INT = signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT
INTERRUPTED = 130
RUN = ("run", "--task", "T-1", "--yes", "--json")
# A check that hangs, with a child that ignores what can be ignored; the first `quick` runs do not, nor any after `go`.
SLOW = """\
import pathlib, subprocess, sys, time
runs = pathlib.Path("runs.ignored")
count = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (count + 1))
if count < int(sys.argv[1]) or pathlib.Path("go.ignored").exists():
    sys.exit(subprocess.call([sys.executable, "test_calc.py"]))
stubborn = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); time.sleep(300)"
subprocess.Popen([sys.executable, "-I", "-S", "-c", stubborn])
time.sleep(300)
"""


# Points of `launcher.py`, in the order of a run: before the first prompt, within an answer, with an answer that is not
# read yet, before and after the diff's effect, between the commit's decision and its start, between start and outcome.
POINTS = (
    *("TaskStarted", "ActionStarted", "token", "ModelAnswered", "ActionDecided#2", "ActionStarted#2"),
    *("PatchApplied", "ActionDecided#5", "commit", "TaskCommitted", "TaskFinished"),
)
CASES = [(point, KILL) for point in POINTS] + [("token", TERM), ("commit", HUP), ("PatchApplied", INT)]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "number"), CASES, ids=[f"{point}-{number.name}" for point, number in CASES])
def test_it_goes_on_where_it_was_stopped(served: Machine, point: str, number: signal.Signals) -> None:
    repo = calc_repo(served)
    before = fingerprint(repo, ["memory"])
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt=point)
    running.until_halted()
    first = stop(running, number)
    assert running.survivors() == []
    lines = journal_lines(repo)
    assert [(each["seq"], each["kind"]) for each in first.events] == [
        (each["seq"], each["kind"]) for each in lines[: len(first.events)]
    ]
    assert len(lines) == len(first.events), "what is recorded was told"

    # Nobody knows whether a diff was applied that was only started: it was taken back, and the model says it again.
    scripts = {"T-1": (GOOD[0], *GOOD)} if point == "ActionStarted#2" else SCRIPTS
    second = served.scripted(scripts, *RUN, cwd=repo)
    assert second.code == 0, second.said
    assert journal_lines(repo)[: len(lines)] == lines, "what was recorded stays"
    check_whole(served, repo, lines[0]["body"]["session"], before)


def stop(running: Running, number: signal.Signals) -> Done:
    """Send the signal, and fail unless the command ends as it should."""
    done = running.send(number)
    assert done.code == (-number if number is KILL else INTERRUPTED), done.said
    assert "Traceback" not in done.err
    if number is not KILL:
        assert f"stopped by {number.name}" in done.err
        assert done.events[-1]["kind"] == "session_left"
    return done


def check_whole(machine: Machine, repo: Path, session: str, before: dict[str, str]) -> None:
    """Fail unless the task was done once, with nothing of the user's changed and nothing lost."""
    lines = journal_lines(repo, session)
    for kind in ("action_started", "action_finished", "action_decided"):
        assert max(Counter(each["proposal_id"] for each in bodies(lines, kind)).values()) == 1, kind
    assert [each["status"] for each in bodies(lines, "task_finished")] == ["done"]
    (committed,) = bodies(lines, "task_committed")
    assert machine.git(repo, "rev-parse", "agent/T-1") == committed["commit"]
    assert machine.git(repo, "rev-list", "--count", "main..agent/T-1") == "1"
    assert "left + right" in machine.git(repo, "show", "agent/T-1:calc.py")
    assert len(machine.git(repo, "branch", "--list", "agent/*").splitlines()) == 1
    assert fingerprint(repo, ["memory"]) == before
    plan = (repo / "memory/plans/PLAN.yaml").read_text()
    assert plan.replace("    status: done\n", "") == PLAN
    verified = machine.agent("sessions", "verify", cwd=repo)
    assert verified.code == 0, verified.err


@pytest.mark.slow
@pytest.mark.parametrize(("quick", "number"), [(0, TERM), (1, KILL)], ids=["base-TERM", "diff-KILL"])
def test_checks_that_run_end_with_it(served: Machine, quick: int, number: signal.Signals) -> None:
    plan = PLAN.replace("python test_calc.py", f"python slow.py {quick}")
    files = {"slow.py": SLOW, ".gitignore": "__pycache__/\n*.ignored\n", "memory/plans/PLAN.yaml": plan}
    repo = calc_repo(served, files)
    before = fingerprint(repo, ["memory"])
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS)
    running.until(lambda: _hangs(running), "the check that hangs")
    stop(running, number)
    assert running.survivors() == []
    worktree = Path(bodies(journal_lines(repo), "task_started")[0]["workspace"]["path"])
    (worktree / "go.ignored").write_text("")
    second = served.scripted(SCRIPTS, *RUN, cwd=repo)
    assert second.code == 0, second.said
    finished = bodies(journal_lines(repo), "action_finished")
    assert [each["result"] for each in finished].count("unknown") == 1, "nobody knows what came of the first check"
    assert fingerprint(repo, ["memory"]) == before
    assert served.agent("sessions", "verify", cwd=repo).code == 0


def _hangs(running: Running) -> bool:
    try:
        below = psutil.Process(running.process.pid).children(recursive=True)
        return any("SIG_IGN" in " ".join(each.cmdline()) for each in below)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
def test_a_torn_last_line_is_set_aside(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="PatchApplied")
    running.until_halted()
    stop(running, KILL)
    path = journal_path(repo)
    with path.open("ab") as journal:
        journal.write(b'{"v":1,"seq":99,"ti')
    done = served.scripted(SCRIPTS, *RUN, cwd=repo)
    assert done.code == 0, done.said
    assert done.of_kind("session_resumed")[0]["torn_bytes"] == 19
    assert served.agent("sessions", "verify", cwd=repo).code == 0


@pytest.mark.slow
def test_a_server_of_ours_ends_with_it(tmp_path: Path, tiny_model_path: Path) -> None:
    machine = Machine(tmp_path / "machine", {"AGENT_MODEL__PATH": str(tiny_model_path)})
    repo = calc_repo(machine)
    running = machine.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="token")
    running.until_halted()
    stop(running, KILL)
    assert len(running.family) >= 2, "a supervisor and the server"
    assert running.survivors() == []
    done = machine.scripted(SCRIPTS, *RUN, cwd=repo)
    assert done.code == 0, done.said


@pytest.mark.slow
def test_a_second_session_on_the_same_task_is_told_who_holds_it(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="token")
    running.until_halted()
    held = served.agent(*RUN, cwd=repo)
    assert held.code == 7, held.said
    assert f"{running.process.pid}" in held.err
    assert "Traceback" not in held.err
    session = journal_path(repo, running_session(running)).parent.name
    again = served.agent(*RUN, "--session", session, cwd=repo)
    assert again.code == 7, again.said
    assert f"{running.process.pid}" in again.err
    listed = served.agent("sessions", "list", cwd=repo)
    assert "open: " in listed.out
    stop(running, KILL)


def running_session(running: Running) -> str:
    """Return the id of the session that a running command printed first."""
    return str(Done(0, running.out.read_text(), "").events[0]["session"])


@pytest.mark.slow
def test_output_that_nobody_reads_does_not_stop_the_work(served: Machine) -> None:
    repo = calc_repo(served)
    prefix = ("bash", "-c", '"$@" | head -1; exit ${PIPESTATUS[0]}', "bash")
    done = served.start(*RUN, cwd=repo, scripts=SCRIPTS, prefix=prefix).wait()
    assert done.code == 0, "that nobody reads is no reason to end"
    assert len(done.events) == 1
    lines = journal_lines(repo)
    assert bodies(lines, "session_left")[-1]["reason"] == "ended"
    assert [each["status"] for each in bodies(lines, "task_finished")] == ["done"]


@pytest.mark.slow
def test_it_goes_on_after_a_hang_up_under_nohup(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="ActionStarted#2", prefix=("nohup",))
    running.until_halted()
    running.process.send_signal(HUP)
    running.release()
    done = running.wait()
    assert done.code == 0, done.said
    assert journal_lines(repo)[-1]["body"] == {"reason": "ended"}
