"""What cannot be done is refused in one message: what failed, with which value, what to do, and an exit code."""

import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from msgspec import Struct, field

from tests.e2e.calc import PLAN, calc_repo
from tests.e2e.machine import Done, Machine

PLAN_FILE = "memory/plans/PLAN.yaml"
ESCAPE = "\x1b"


class Case(Struct, frozen=True):
    """A repository of these files, a command line in it, and how it is refused: a code and words of the message."""

    name: str
    command: str
    code: int
    words: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)


def task(line: str) -> Mapping[str, str]:
    """Return a plan of one task with one more line in it, the fifth of the file."""
    return {PLAN_FILE: f"version: 1\ntasks:\n  - id: T-1\n    description: x\n    {line}\n"}


CASES = (
    Case("no verb", "", 2, ("usage: agent",)),
    Case("unknown verb", "fly", 2, ("agent has no verb 'fly'", "`agent --help` lists the verbs")),
    Case(
        "an unknown skill",
        "plan check",
        2,
        ("PLAN.yaml:5:25: there is no skill 'pyton-style'; did you mean 'python-style'?", "known skills: "),
        task("applicable_skills: [pyton-style]"),
    ),
    Case("neither task nor all", "run", 2, ("--task ID", "--all", "a new task in quotes")),
    Case("both task and all", "run --all --task T-1", 2, ("not allowed with",)),
    Case("no task id", "run --task 1!", 2, ("'1!' is not a task id", "such as T-1")),
    Case("unknown task", "run --task T-9 --yes", 2, ("the plan has no task 'T-9'", "tasks of the plan: T-1")),
    Case("task of a person", "run --task T-1", 2, ("belongs to a person", "owner: agent"), task("owner: human")),
    Case("task that is done", "run --task T-1", 2, ("T-1 is done", "pending"), task("status: done")),
    Case("unknown session", "sessions show nope", 2, ("no session begins with 'nope'", "agent sessions list")),
    Case("no session", "sessions verify", 2, ("there is no session yet", "memory/sessions", "`agent tui` starts one")),
    Case("merge without a terminal", "merge T-9", 2, ("needs a terminal", "`git merge agent/T-9`")),
    Case("receipt of no session", "sessions show --prompt 1", 2, ("there is no session yet",)),
    Case("receipt of no prompt", "sessions show --prompt 0", 2, ("'0' is not a prompt", "or `last`")),
    Case("text of no prompt", "sessions show --text", 2, ("--text and --json need a prompt", "--prompt last")),
    Case("JSON of a replay", "replay --json", 2, ("--json tells of a session that is made again", "--rerun")),
    Case("two ways to make it again", "replay --rerun --against x", 2, ("not allowed with",)),
    Case("re-run of no session", "replay --rerun", 2, ("there is no session yet",)),
    Case("session to take up", "run --task T-1 --session nope", 2, ("no session begins with 'nope'",)),
    Case("commands alone", "run --all --commands", 2, ("--commands goes with --yes", "--policy FILE")),
    Case(
        "policy with an unknown tool",
        "run --all --policy p.yml",
        2,
        ("p.yml:1:23", "unknown tool 'run_comand'", "did you mean 'run_command'"),
        {"p.yml": "tools_allowed: [grep, run_comand]\n"},
    ),
    Case("no policy", "run --all --policy none.yml", 2, ("none.yml cannot be read", "name another file")),
    Case(
        "policy with a typo", "run --all --policy p.yml", 2, ("p.yml:1:1", "'approvals'"), {"p.yml": "aprovals: {}\n"}
    ),
    Case(
        "policy that says too much",
        "run --all --policy p.yml",
        2,
        ("p.yml:1:9: python does not belong", "approvals, limits, tools_allowed, sandbox"),
        {"p.yml": "python: x\n"},
    ),
    Case("terminal for tui", "tui", 2, ("needs a terminal", "agent run")),
    Case("terminal for demo", "demo", 2, ("needs a terminal", "agent demo --headless")),
    Case("terminal for replay", "replay", 2, ("needs a terminal", "agent sessions show")),
    Case("event of a replay", "replay --at end", 2, ("'end' is not an event", "agent sessions show")),
    Case("event of a re-run", "replay --at 3 --rerun", 2, ("--at opens a session to be seen",)),
    Case("search for nothing", "sessions search", 2, ("required: words",)),
    Case("terminal for merge", "merge T-1", 2, ("needs a terminal", "git merge agent/T-1")),
    Case("settings that are no YAML", "run --all", 2, (".agent.yml:2:1", "not YAML"), {".agent.yml": "model: [\n"}),
    Case(
        "settings with a typo",
        "plan show",
        2,
        (".agent.yml:2:1", "unknown key 'tools_alowed'", "did you mean 'tools_allowed'", "/docs/reference/settings.md"),
        {".agent.yml": "python: x\ntools_alowed: []\n"},
    ),
    Case(
        "settings of a wrong type",
        "run --all",
        2,
        (".agent.yml:2:20", "limits.command_seconds", "'fast'"),
        {".agent.yml": "limits:\n  command_seconds: fast\n"},
    ),
    Case(
        "settings with a key in them",
        "doctor",
        2,
        (".agent.yml:1:9", "api_key", "model.api_key_env"),
        {".agent.yml": "model: {api_key: abc}\n"},
    ),
    Case(
        "settings that control the terminal",
        "run --all",
        2,
        (".agent.yml:1:1", r"\x1b[31mx"),
        {".agent.yml": '"\\e[31mx": 1\n'},
    ),
    Case("plan that is no YAML", "run --all", 2, (f"{PLAN_FILE}:2:1", "not YAML"), {PLAN_FILE: "tasks: [\n"}),
    Case(
        "plan with a typo",
        "plan check",
        2,
        (f"{PLAN_FILE}:5:5", "unknown key 'acept_tests'", "did you mean 'accept_tests'", "/docs/how-to/plans.md"),
        task("acept_tests: []"),
    ),
    Case("plan with a wrong status", "plan show", 2, (f"{PLAN_FILE}:5:13", "'finished'"), task("status: finished")),
    Case("plan with a circle", "plan check", 2, (PLAN_FILE, "in a cycle: T-1"), task("depends_on: [T-1]")),
    Case(
        "plan with an unknown dependency",
        "run --task T-1",
        2,
        (f"{PLAN_FILE}:5:17", "depends on T-7", "tasks of the plan: T-1"),
        task("depends_on: [T-7]"),
    ),
    Case(
        "plan that controls the terminal",
        "plan show",
        2,
        (f"{PLAN_FILE}:5:11", r"\x1b]52;c;aGk=\x07"),
        task('goal: "\\e]52;c;aGk=\\a"'),
    ),
    Case("task without words", "plan add ", 2, ("the description of the task is empty",)),
    Case("acceptance without a command", "plan add x --accept ", 2, ("an acceptance command is empty",)),
    Case("task after an unknown one", "plan add x --after T-7", 2, ("depends on T-7", "is not in the plan")),
    Case("model address that is none", "run --all --model-url nonsense", 2, ("'nonsense'", "http://127.0.0.1:8080")),
    Case("review of nothing", "consult review", 2, ("nothing to judge", "`agent consult review FILE...`")),
    Case("cause of nothing", "consult debug", 2, ("nothing to judge", "2>&1 | agent consult debug -")),
    Case("cause of an empty text", "consult debug -", 2, ("nothing to judge", "agent consult debug ERROR")),
    Case("better shape of nothing", "consult tdd_refactor", 2, ("nothing to judge", "TEST_PATH IMPL_PATH`")),
    Case("note without a text", "knowledge add x", 2, ("no terminal for the editor", "--text TEXT")),
    Case("no model", "model status", 5, ("no model is configured", "model.path")),
    Case("nothing to serve", "model serve", 2, ("no model file is named", "agent model serve FILE")),
    Case("model file that is not there", "model status --model /nope.gguf", 5, ("/nope.gguf", "GGUF")),
    Case("model file that is none", "model status --model calc.py", 5, ("calc.py is no GGUF file",)),
    Case("nothing at the address", "model status --model-url http://127.0.0.1:9", 5, ("nothing answers at", "start")),
)


def agent(machine: Machine, repo: Path, command: str) -> Done:
    """Run a command line; a space at its end is an empty argument."""
    return machine.agent(*command.split(" "), cwd=repo) if command else machine.agent(cwd=repo)


def assert_refused(done: Done, code: int, words: tuple[str, ...]) -> None:
    """Fail unless a command was refused clearly: the code, the words, and nothing of our inside."""
    assert done.code == code, done.said
    for word in words:
        assert word in done.err, done.err
    assert "Traceback" not in done.said
    assert "Warning" not in done.err
    assert ESCAPE not in done.said
    assert_last_line_opens(done.err)


def assert_last_line_opens(said: str) -> None:
    """Fail if an address of a page is anywhere but on the last line, or leads nowhere."""
    *lines, last = said.splitlines()
    assert [line for line in lines if "file://" in line] == []
    if "file://" in last:
        assert Path(unquote(urlsplit(last.strip()).path)).is_file(), last


@pytest.mark.slow(quick=24)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_refusal(machine: Machine, case: Case) -> None:
    repo = calc_repo(machine, case.files)
    before = machine.git(repo, "status", "--porcelain", "--ignored")
    assert_refused(agent(machine, repo, case.command), case.code, case.words)
    # What was never begun leaves nothing behind, not even an empty session.
    assert machine.git(repo, "status", "--porcelain", "--ignored") == before


NO_REPO = (
    ("nothing", "is not in a git repository", "git init"),
    ("empty", "has no commit on the branch main yet", "git commit --allow-empty"),
    ("bare", "is a bare repository", "clone it"),
)
VERBS = ("init", "plan show", "plan add x", "run --all --yes", "sessions list", "trust")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("kind", "what", "advice"), NO_REPO, ids=[each[0] for each in NO_REPO])
def test_where_no_work_is_possible(machine: Machine, kind: str, what: str, advice: str, verb: str) -> None:
    folder = machine.folder / kind
    folder.mkdir()
    if kind != "nothing":
        machine.git(folder, "init", "--quiet", *(["--bare"] if kind == "bare" else []))
    before = sorted(path.name for path in folder.iterdir())
    assert_refused(agent(machine, folder, verb), 4, (str(folder), what, advice))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_folder_that_is_gone(machine: Machine) -> None:
    folder = machine.folder / "gone"
    folder.mkdir()
    command = [
        *("bash", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(folder)),
        *(sys.executable, "-m", "agent_workbench", "plan", "show"),
    ]
    assert_refused(machine.run(command, machine.folder), 4, ("the current folder no longer exists",))


def _a_file(machine: Machine) -> Path:
    path = machine.folder / "a-file"
    path.write_text("")
    return path


def _is_missing(machine: Machine) -> Path:
    return Path("/proc/nothing")


@pytest.mark.parametrize("make", [_a_file, _is_missing])
@pytest.mark.parametrize("command", ["run --task T-1 --yes", "demo --headless --folder ../demo"])
def test_a_state_folder_that_cannot_be_written(machine: Machine, make: Callable[[Machine], Path], command: str) -> None:
    repo = calc_repo(machine)
    place = make(machine)
    done = machine.agent(*command.split(" "), cwd=repo, environ={"XDG_STATE_HOME": str(place)})
    assert_refused(done, 4, (str(place),))


def test_a_demo_that_cannot_be_written(machine: Machine) -> None:
    done = machine.agent("demo", "--headless", "--folder", "/proc/nothing/shop", cwd=machine.home)
    assert_refused(done, 4, ("/proc/nothing",))


def test_a_demo_that_would_overwrite_something(machine: Machine) -> None:
    repo = calc_repo(machine)
    done = machine.agent("demo", "--headless", "--folder", str(repo), cwd=repo)
    assert_refused(done, 4, (f"{repo} is not empty", "name another folder"))


def test_sessions_that_would_be_written_outside_of_the_repo(machine: Machine) -> None:
    outside = machine.folder / "outside"
    outside.mkdir()
    repo = calc_repo(machine)
    (repo / "memory/sessions").symlink_to(outside)
    done = machine.agent("run", "--task", "T-1", "--yes", cwd=repo)
    assert_refused(done, 4, ("memory/sessions leads to", "outside /"))
    assert list(outside.iterdir()) == []


def test_names_of_folders_and_files_do_not_control_the_terminal(machine: Machine) -> None:
    repo = machine.folder / f"a{ESCAPE}]0;owned\x07"
    calc_repo(machine).rename(repo)
    (repo / f"{ESCAPE}[2J.so").write_text("")
    for command in ("doctor", "model status", "plan show", "init"):
        done = agent(machine, repo, command)
        assert ESCAPE not in done.said, command
    assert ESCAPE not in machine.agent("init", cwd=repo.parent / f"a{ESCAPE}]0;owned\x07").said
    outside = machine.folder / f"b{ESCAPE}[31m"
    outside.mkdir()
    assert_refused(agent(machine, outside, "plan show"), 4, ("is not in a git repository",))


@pytest.mark.parametrize(
    "words",
    [
        (ESCAPE,),
        ("plan", "show", f"{ESCAPE}[31mx"),
        ("index", "--ev", f"{ESCAPE}[2J"),
        ("run", f"--{ESCAPE}]0;x\x07"),
        *(("replay", "--against", ESCAPE, "--rerun"), ("search", "x", "-n", ESCAPE), ("tui", "--port", ESCAPE)),
    ],
)
def test_what_was_typed_does_not_control_the_terminal(machine: Machine, words: tuple[str, ...]) -> None:
    assert_refused(machine.agent(*words, cwd=machine.home), 2, ("agent",))


def test_a_policy_that_nobody_writes_is_refused(machine: Machine) -> None:
    repo = calc_repo(machine)
    os.mkfifo(repo / "p.yml")
    assert_refused(agent(machine, repo, "run --all --policy p.yml"), 2, ("p.yml", "is a pipe", "into a file"))


@pytest.mark.parametrize("verb", ["status --model", "serve"])
def test_a_model_that_is_a_pipe_is_refused(machine: Machine, verb: str) -> None:
    repo = calc_repo(machine)
    os.mkfifo(repo / "m.gguf")
    assert_refused(agent(machine, repo, f"model {verb} m.gguf"), 5, ("m.gguf cannot be read: not a regular",))


def test_a_policy_from_a_pipe_that_is_written_is_read(machine: Machine) -> None:
    repo = calc_repo(machine)
    script = f"exec {sys.executable} -m agent_workbench run --all --policy <(sleep 0.2; echo 'python: x')"
    assert_refused(machine.run(["bash", "-c", script], repo), 2, ("python does not belong in a policy",))


def test_a_plan_whose_last_tasks_wait_says_for_what(machine: Machine) -> None:
    tasks = "- {id: T-1, description: x, status: failed}\n- {id: T-2, description: y, depends_on: [T-1]}\n"
    repo = calc_repo(machine, {PLAN_FILE: f"version: 1\ntasks:\n{tasks}"})
    done = machine.agent("run", "--all", "--yes", cwd=repo)
    assert done.code == 0
    assert "T-2 waits for T-1" in done.out
    assert not (repo / "memory/sessions").exists(), "nothing was done, so there is nothing to look back at"


def test_words_over_several_lines_stay_one_line_of_the_plan(machine: Machine) -> None:
    repo = calc_repo(machine)
    assert machine.agent("plan", "add", "one\ntwo", cwd=repo).code == 0
    shown = machine.agent("plan", "show", cwd=repo)
    assert shown.out.splitlines()[-1] == "T-2    pending      one two"
    assert (repo / PLAN_FILE).read_text().startswith(PLAN.splitlines()[0])


@pytest.mark.parametrize(("module", "word"), [("argparse", "--version"), ("termios", "merge")])
def test_an_interrupt_counts_while_the_command_is_still_loaded(machine: Machine, module: str, word: str) -> None:
    folder = machine.folder / "shadows"
    folder.mkdir()
    (folder / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    done = machine.agent(word, cwd=machine.folder, environ={"PYTHONPATH": str(folder)})
    assert (done.code, done.said) == (130, "")


def test_a_terminal_that_knows_few_characters_is_no_error(machine: Machine) -> None:
    repo = calc_repo(machine)
    plan = repo / "memory" / "plans" / "PLAN.yaml"
    plan.write_text(plan.read_text().replace("Make add() add", "Make add() año"))
    done = machine.agent("plan", "show", cwd=repo, environ={"PYTHONIOENCODING": "ascii"})
    assert (done.code, done.err) == (0, "")
    assert "Make add() a?o" in done.out


def test_a_port_in_use_is_said_once(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = machine.agent("tui", "--web", "--port", str(port), cwd=calc_repo(machine))
    assert_refused(done, 2, (f"cannot listen on 127.0.0.1:{port}: Address already in use", "another --port"))
    assert done.err.count("127.0.0.1") == 1


def test_output_that_cannot_be_written_is_said(machine: Machine) -> None:
    repo = calc_repo(machine)
    script = f"{sys.executable} -m agent_workbench plan show > /dev/full"
    assert_refused(machine.run(["bash", "-c", script], repo), 4, ("the output cannot be written: No space left",))


def test_a_plan_without_tasks_has_nothing_to_do(machine: Machine) -> None:
    repo = calc_repo(machine, {PLAN_FILE: "version: 1\ntasks: []\n"})
    done = machine.agent("run", "--all", "--yes", "--json", cwd=repo)
    assert (done.code, done.err) == (0, "no task is ready\nnext: agent plan show\n")
    assert done.of_kind("run_ended") == [{"exit_code": 0, "reason": "no task is ready", "outcomes": []}]
