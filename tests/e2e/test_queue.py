"""The queue from the shell: a task is queued, checked and done without a model; nothing else of the user changes."""

import json
from pathlib import Path

import pytest

from agent_workbench.core.task_result import decode_result
from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import calc_repo
from tests.e2e.machine import Machine

QUEUE = Path("tasks/queue/default")
ADD = """\
goal: Make add() add
scope: {allowed_write_globs: [calc.py]}
edits:
  - {path: calc.py, find: left - right, replace: left + right}
verify:
  - command: python test_calc.py
"""
BESIDES = ("memory", "tasks")
POLICY = "approvals: {diff: auto, check: auto, commit: auto}\n"


@pytest.fixture
def repo(machine: Machine) -> Path:
    made = calc_repo(machine)
    (machine.folder / "policy.yaml").write_text(POLICY)
    return made


def work(machine: Machine, repo: Path) -> tuple[int, str]:
    policy = str(machine.folder / "policy.yaml")
    done = machine.agent("worker", "--once", "--unconfined", "--policy", policy, cwd=repo)
    return done.code, done.said


@pytest.mark.slow
def test_edits_are_committed_with_a_result_and_a_journal_that_is_proved(machine: Machine, repo: Path) -> None:
    (repo / "add.yaml").write_text(ADD)
    added = machine.agent("worker", "add", "add.yaml", cwd=repo)
    assert (added.code, added.out) == (0, "add  tasks/queue/default/add.yaml\n"), added.said
    (repo / "add.yaml").unlink()
    assert "tasks" not in machine.run(["git", "status", "--short"], repo).out
    untouched = fingerprint(repo, BESIDES)
    code, said = work(machine, repo)
    assert code == 0, said
    result = decode_result((repo / QUEUE / "done/add.result.json").read_text(), "add.result.json")
    assert (result.status, result.exit_code, result.files) == ("done", 0, ("calc.py",))
    assert [(each.command, each.exit_code) for each in result.checks] == [("python test_calc.py", 0)]
    assert (repo / QUEUE / "done/add.yaml").read_text() == ADD
    subject = machine.run(["git", "log", "-1", "--format=%s", result.branch], repo).out
    assert subject == "[Agent] Complete add: Make add() add\n"
    assert fingerprint(repo, BESIDES) == untouched
    proved = machine.agent("sessions", "verify", result.session, cwd=repo)
    assert (proved.code, proved.out.split()[0]) == (0, "green")
    # The journal alone has the task: it can be forked, and no other run takes it up.
    forked = machine.agent("sessions", "fork", result.session, "--at", "8", cwd=repo)
    assert forked.code == 0, forked.said
    shown = machine.agent("plan", "show", cwd=repo)
    assert "add" not in [line.split()[0] for line in shown.out.splitlines()]


@pytest.mark.slow
def test_a_parked_task_is_taken_up_by_its_name_alone(machine: Machine, repo: Path) -> None:
    (repo / QUEUE).mkdir(parents=True)
    (repo / QUEUE / "add.yaml").write_text(ADD)
    (machine.folder / "policy.yaml").write_text(POLICY.replace("diff: auto", "diff: ask"))
    code, said = work(machine, repo)
    assert code == 3, said
    (item,) = json.loads(machine.agent("inbox", "list", "--json", cwd=repo).out)
    session = item["session"]
    done = machine.agent("run", "--all", "--yes", cwd=repo)
    assert session not in done.out
    named = machine.agent("run", "--session", session, "--task", "add", "--yes", cwd=repo)
    assert (named.code, "add done: committed" in named.out) == (0, True), named.said
    code, said = work(machine, repo)
    assert (repo / QUEUE / "done/add.yaml").exists(), said


@pytest.mark.slow
def test_what_a_withdrawn_task_proposed_waits_for_nobody(machine: Machine, repo: Path) -> None:
    (repo / QUEUE).mkdir(parents=True)
    (repo / QUEUE / "add.yaml").write_text(ADD)
    (machine.folder / "policy.yaml").write_text(POLICY.replace("diff: auto", "diff: ask"))
    code, said = work(machine, repo)
    assert code == 3, said
    assert len(json.loads(machine.agent("inbox", "list", "--json", cwd=repo).out)) == 1
    (repo / QUEUE / "add.yaml").unlink()
    assert json.loads(machine.agent("inbox", "list", "--json", cwd=repo).out) == []
    assert "add Make add() add  parked" in machine.agent("sessions", "list", cwd=repo).out, "its session stays"
    assert f"{QUEUE}: 1 withdrawn" in machine.agent("worker", "status", cwd=repo).out


@pytest.mark.parametrize("name", ["T-1", "t-1"])
def test_the_id_of_a_task_of_the_plan_is_refused(machine: Machine, repo: Path, name: str) -> None:
    (repo / f"{name}.yaml").write_text(ADD)
    refused = machine.agent("worker", "add", f"{name}.yaml", cwd=repo)
    assert (refused.code, f"the plan has a task {name} too" in refused.err) == (2, True), refused.said
    (repo / QUEUE).mkdir(parents=True)
    (repo / QUEUE / f"{name}.yaml").write_text(ADD)
    code, said = work(machine, repo)
    assert (code, f"the plan has a task {name} too" in said) == (2, True), said
    assert (repo / QUEUE / f"failed/{name}.yaml").exists()
    assert machine.run(["git", "branch", "--list", "agent/*"], repo).out == ""


CHECKS = [
    ("goal: x\n", 0, "input: x"),
    ("gaol: x\n", 2, "input.yaml:1:1: unknown key 'gaol'; did you mean 'goal'?"),
    ("goal: x\napplicable_skills: [nope]\n", 2, "input.yaml:2:21: "),
    ("goal: [", 2, "input.yaml:1:"),
]


@pytest.mark.parametrize(("text", "code", "said"), CHECKS)
def test_a_file_is_checked_with_the_place_of_its_fault(
    machine: Machine, repo: Path, text: str, code: int, said: str
) -> None:
    (repo / "input.yaml").write_text(text)
    checked = machine.agent("worker", "check", "input.yaml", cwd=repo)
    assert checked.code == code
    assert said in checked.said
    assert not (repo / "tasks").exists()


def test_words_become_a_file_with_their_scope_and_checks(machine: Machine, repo: Path) -> None:
    machine.environ["AGENT_TEST_COMMAND"] = "python -m unittest"
    added = machine.agent("worker", "add", "make add() in @calc.py add", cwd=repo)
    assert added.code == 0, added.said
    (file,) = (repo / QUEUE).glob("*.yaml")
    assert added.out.split() == [file.stem, str(file.relative_to(repo))]
    assert "verify:\n  - python -m unittest" in file.read_text()
    again = machine.agent("worker", "add", "make add() in @calc.py add", cwd=repo)
    assert again.out.split()[0] == f"{file.stem}-2"


@pytest.mark.parametrize(("file", "scope"), [("calc.py", "**"), ("src/shop.py", "src/**")])
def test_the_same_words_have_the_same_scope_whichever_verb_takes_them(machine: Machine, file: str, scope: str) -> None:
    repo = calc_repo(machine, {"src/shop.py": "PRICE = 1\n"})
    words = f"make it right in @{file}"
    queued = machine.agent("worker", "add", words, cwd=repo)
    run = machine.agent("run", words, cwd=repo)
    assert queued.code == 0, queued.said
    assert f"  may write  {scope}\n" in queued.err
    assert f"  scope   {scope}\n" in run.err
    (queue_file,) = (repo / QUEUE).glob("*.yaml")
    checked = machine.agent("worker", "check", str(queue_file), cwd=repo)
    assert f"may write  {scope}" in checked.out, "no scope is narrowed where a file says none"


@pytest.mark.slow
def test_a_document_with_an_id_of_its_own_is_queued_once_whatever_became_of_it(machine: Machine, repo: Path) -> None:
    document = repo / "job.yaml"
    document.write_text(f"id: JOB-1\n{ADD}")

    def added() -> tuple[int, str]:
        done = machine.agent("worker", "add", "job.yaml", cwd=repo)
        return done.code, done.out or done.err

    assert added() == (0, f"JOB-1  {QUEUE}/JOB-1.yaml\n")
    assert added() == (0, f"JOB-1 is queued already: nothing was added to {QUEUE}\n")
    (repo / "copy.yaml").write_text(document.read_text())
    code, said = work(machine, repo)
    assert code == 0, said
    assert added() == (0, f"JOB-1 is done already: nothing was added to {QUEUE}\n")
    document.write_text(f"{document.read_text()}priority: 1\n")
    code, said = added()
    assert (code, "JOB-1 is done already, with another definition" in said, "another `id`" in said) == (2, True, True)
    (repo / "copy.yaml").rename(repo / QUEUE / "copy.yaml")
    code, said = work(machine, repo)
    assert (code, "JOB-1 is done already" in said) == (1, True), said
    assert machine.run(["git", "branch", "--list", "agent/*"], repo).out == "+ agent/JOB-1\n"


@pytest.mark.parametrize("said", ["nope.yaml", "word", ""])
def test_what_is_neither_a_file_nor_words_is_refused(machine: Machine, repo: Path, said: str) -> None:
    refused = machine.agent("worker", "add", said, cwd=repo)
    assert refused.code == 2, refused.said
    assert not (repo / "tasks").exists()


def test_a_command_of_the_agent_queues_nothing(machine: Machine, repo: Path) -> None:
    (repo / "add.yaml").write_text(ADD)
    refused = machine.agent("worker", "add", "add.yaml", cwd=repo, environ={"AGENT_WORKBENCH_COMMAND": "1"})
    assert refused.code == 4, refused.said
    assert not (repo / "tasks").exists()
