"""Secrets of the environment reach no prompt, journal, output, file or child process."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.calc import CALC, GOOD, PLAN, RIGHT, calc_repo, diff_step
from tests.e2e.machine import Machine, bodies, journal_lines, journal_path
from tests.e2e.serving import listening, saying

pytestmark = pytest.mark.slow

SECRETS = {
    "GITHUB_TOKEN": "ghp_planted0123456789abcdef",
    "AWS_SECRET_ACCESS_KEY": "planted/Aws+Secret0123456789",
    "MODEL_API_KEY": "sk-planted-model-key-0123",
    "DB_PASSWORD": "planted hunter2 'with quotes\"",
    "SSHPASS": "planted-ssh-login",
}
ADDRESS = {
    "DATABASE_URL": "postgres://ada:plantedInUrl42@db.example.org/x",
    "GIT_REMOTE": "https://plantedAsUser@git.example.org/x.git",
    "DEPLOY_WITH": "curl -H 'X: glpat-planted0123456789abc' https://example.org",
}
VALUES = (*SECRETS.values(), "plantedInUrl42", "plantedAsUser", "glpat-planted0123456789abc")
# Tries all the ways a check has to what the workbench was started with, and prints it.
NOSY = """\
import glob, os, pathlib, subprocess, sys
print(sorted(os.environ), dict(os.environ), flush=True)
for path in ["/proc/self/environ", f"/proc/{os.getppid()}/environ", *glob.glob("/proc/[0-9]*/environ")]:
    try:
        print(pathlib.Path(path).read_bytes(), flush=True)
    except OSError as error:
        print(error)
sys.exit(subprocess.call([sys.executable, "test_calc.py"]))
"""


def found_in(text: str | bytes) -> list[str]:
    """Return which secrets stand in a text."""
    data = text if isinstance(text, bytes) else text.encode()
    return [value for value in VALUES if value.encode() in data]


def test_secrets_reach_nothing(tmp_path: Path) -> None:
    # Processes that begin with the secrets, as the kernel tells of everybody's environment.
    machine = Machine(tmp_path / "machine")
    plan = PLAN.replace("python test_calc.py", "python nosy.py")
    notes = f"the token is {SECRETS['GITHUB_TOKEN']}\nand {ADDRESS['DATABASE_URL']}\n"
    notes += f"{SECRETS['SSHPASS']} {ADDRESS['GIT_REMOTE']} {ADDRESS['DEPLOY_WITH']}\n"
    repo = calc_repo(machine, {"nosy.py": NOSY, "memory/plans/PLAN.yaml": plan, "notes.txt": notes})
    told = f"I have seen {SECRETS['AWS_SECRET_ACCESS_KEY']}."
    answers = (
        f'Thought: {told}\nAction: note\n{{"text": "x"}}',
        'Thought: I look.\nAction: read_file\n{"path": "notes.txt"}',
        'Thought: Again.\nAction: grep\n{"pattern": "token"}',
        f'Thought: I note it.\nAction: note\n{{"text": "{SECRETS["MODEL_API_KEY"]}"}}',
        diff_step({"calc.py": CALC}, {"calc.py": RIGHT + f"\n# {SECRETS['GITHUB_TOKEN']}\n"}),
        *GOOD,
    )
    server = saying(answers)
    with listening(server) as url:
        environ = {**SECRETS, **ADDRESS, "AGENT_MODEL__URL": url, "AGENT_MODEL__API_KEY_ENV": "MODEL_API_KEY"}
        done = machine.agent("run", "--task", "T-1", "--yes", "--json", cwd=repo, environ=environ)
        shown = machine.agent("sessions", "show", cwd=repo, environ=environ)
        looked = machine.agent("doctor", cwd=repo, environ=environ)
    assert done.code == 0, done.said
    asked = server.asked("/v1/chat/completions")
    assert len(asked) >= len(answers), "every answer was asked for"
    assert {request.headers["authorization"] for request in asked} == {f"Bearer {SECRETS['MODEL_API_KEY']}"}
    assert [found_in(request.body) for request in server.requests if found_in(request.body)] == []
    assert found_in(done.said + shown.said + looked.said) == []
    lines = journal_lines(repo)
    refused = [each for each in bodies(lines, "action_rejected") if "secret environment variable" in each["reason"]]
    assert len(refused) == 3, "the thought, the note and the diff that held one"
    assert "redacted:GITHUB_TOKEN" in journal_path(repo).read_text(), "the file that holds it was read"
    names = done.of_kind("tests_finished")[0]["results"][0]["output"].partition("]")[0]
    assert "'PATH'" in names, "the check told its environment"
    assert not [name for name in (*SECRETS, *ADDRESS) if name in names]
    for folder in (repo / "memory", machine.folder / "state", machine.folder / "cache"):
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != "notes.txt"]
        assert [path for path in files if found_in(path.read_bytes())] == []
    assert committed(machine, repo) == []


def committed(machine: Machine, repo: Path) -> list[str]:
    """Return which secrets stand in what the workbench put into git, messages included."""
    done = subprocess.run(
        ["git", "log", "-p", "--all", "--not", "main"], cwd=repo, env=machine.environ, capture_output=True, check=True
    )
    assert b"left + right" in done.stdout
    return found_in(done.stdout)
