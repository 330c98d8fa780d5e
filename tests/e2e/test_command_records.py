"""A command that the agent runs without a sandbox: whatever verb it starts, nothing is recorded that is the user's."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.settings import SandboxSettings
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import copy_repo
from tests.adapters.shell.conftest import without_bwrap
from tests.e2e.calc import FILES, calc_repo
from tests.e2e.machine import Machine, write_files
from tests.e2e.test_queue import ADD, POLICY

SECONDS = 120.0
QUEUE = "tasks/queue/default"
SKILL = "---\nname: shout\ndescription: Shouts.\n---\nShout.\n"
RULE = "approvals: {rules: [{kind: check, commands: [make]}]}\n"
MORE = {
    ".agent.yml": RULE,
    "add.yaml": ADD,
    "skills/shout/SKILL.md": SKILL,
    "skills/shout/requirements.txt": "six==1.17.0\n",
}
FORGE = {"AGENT_FORGE__URL": "http://127.0.0.1:1", "AGENT_FORGE__REPO": "acme/shop", "GITEA_TOKEN": "f0rge-t0ken-0123"}
OF_ITS_OWN = {("merge", "add"), ("worker", "add")}
REFUSAL = "a command that the agent runs cannot decide"
# Each verb runs in a session and on a terminal of its own, with a person's environment, and answers yes to everything.
ATTACK = """
import json, os, pty, select, signal, sys
given = json.load(open(sys.argv[1]))
sys.path[:0] = given["path"]
from agent_workbench.cli.main import main
import agent_workbench.bootstrap.repo_context, agent_workbench.adapters.git.repository
results = []
for folder, words, more in given["verbs"]:
    child, terminal = pty.fork()
    if child == 0:
        if os.fork():
            os.wait()
            os._exit(0)
        os.environ.clear()
        os.environ.update(given["environ"] | more)
        os.chdir(folder)
        sys.argv = ["agent", *words]
        code = 70
        try:
            code = main() or 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(1, b"\\nexit code %d\\n" % code)
            os._exit(0)
    said = b""
    os.write(terminal, b"y\\n" * 3)
    while b"exit code" not in said and select.select([terminal], [], [], 60)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        said += piece
    os.close(terminal)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    results.append(said.decode(errors="replace"))
print(json.dumps(results))
"""


def verbs(parked: Mapping[str, str], policy: Path) -> list[tuple[str, ...]]:
    """Return a call of every verb that decides, trusts, merges, queues or stores something for the user."""
    session = parked["session"]
    return [
        ("merge", "add"),
        ("run", "--session", session, "--task", "have", "--yes", "--unconfined"),
        ("inbox", "approve", parked["reference"]),
        ("worker", "--once", "--policy", str(policy), "--unconfined"),
        ("worker", "add", "add.yaml"),
        ("plan", "new", "make it right", "--yes"),
        ("plan", "dispatch", "--yes"),
        ("skills", "setup", "shout", "--yes"),
        ("mcp", "add", "mine", "--url", "http://127.0.0.1:1/mcp"),
        ("rules", "revoke", "1"),
        ("knowledge", "add", "Mine", "--text", "x"),
        ("clean", "all", "--days", "0", "--yes"),
        ("init", "--yes"),
    ]


def digests(*folders: Path) -> dict[str, str]:
    """Return the digest of every file below folders; locks that stay when they are free do not count."""
    found = (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in found}


async def attack(folder: Path, given: Mapping[str, object], prefix: Sequence[str] = ()) -> list[str]:
    """Run the verbs in one command of the agent without a sandbox and return what each printed."""
    folder.mkdir(exist_ok=True)
    (folder / "x.py").write_text(ATTACK)
    (folder / "given.json").write_text(json.dumps(given))
    shell = SandboxedShell(SandboxSettings(), str(folder), without_bwrap())
    line = " ".join([*prefix, sys.executable, "-I", "x.py", "given.json"])
    outcome = await shell.run(Command(line, str(folder), SECONDS, {"PATH": os.defpath}), lambda _: None)
    assert outcome.exit_code == 0, outcome.output
    results: list[str] = json.loads(outcome.output.splitlines()[-1])
    return results


@pytest.fixture
def parked(machine: Machine) -> tuple[Path, dict[str, str]]:
    """A repository with a task that is done and not merged, and one whose diff waits."""
    repo = calc_repo(machine)
    policy = machine.folder / "policy.yaml"
    for name, approvals in (("add", POLICY), ("have", POLICY.replace("diff: auto", "diff: ask"))):
        policy.write_text(approvals)
        (repo / QUEUE).mkdir(parents=True, exist_ok=True)
        (repo / QUEUE / f"{name}.yaml").write_text(ADD)
        done = machine.agent("worker", "--once", "--unconfined", "--policy", str(policy), cwd=repo)
        assert done.code in {0, 3}, done.said
    (item,) = json.loads(machine.agent("inbox", "--json", cwd=repo).out)
    reference = machine.agent("inbox", "show", "have", cwd=repo).out.splitlines()[-1]
    policy.write_text(POLICY)
    write_files(repo, MORE)
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    machine.new_repo("other", {**FILES, ".agent.yml": "test_command: make everything\n"})
    return repo, {"session": item["session"], "reference": reference}


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_no_verb_records_what_a_command_decides(
    machine: Machine, parked: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    repo, waiting = parked
    policy, work = machine.folder / "policy.yaml", tmp_path / "work"
    of_its_own = {"XDG_STATE_HOME": str(work / "state"), "XDG_CONFIG_HOME": str(work / "config"), "HOME": str(work)}
    called: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
        *((str(repo), words, {}) for words in verbs(waiting, policy)),
        (str(repo.parent / "other"), ("trust", "--yes"), {}),
        # With a state folder of the command's own, what is the user's is still the user's.
        *((str(repo), words, of_its_own) for words in verbs(waiting, policy) if words[:2] in OF_ITS_OWN),
        *((str(repo), ("merge", "add", "--pull-request"), {**FORGE, **folders}) for folders in ({}, of_its_own)),
    ]
    given = {"path": sys.path, "verbs": called, "environ": machine.environ}
    before = fingerprint(repo), digests(machine.state, machine.home, repo / ".git")
    results = await attack(work, given, ("env", "-i", "setsid", "-w", "nohup"))
    passed = [(words, said) for (_, words, _), said in zip(called, results, strict=True) if REFUSAL not in said]
    assert passed == []
    assert (fingerprint(repo), digests(machine.state, machine.home, repo / ".git")) == before


@pytest.mark.slow
async def test_a_command_decides_in_a_repository_and_a_state_folder_of_its_own(
    machine: Machine, tmp_path: Path
) -> None:
    """So do the tests of a project that run `agent`, when they are run by a task."""
    work = tmp_path / "work"
    repo = work / "calc"
    copy_repo(repo, FILES)
    write_files(repo, {f"{QUEUE}/add.yaml": ADD, "policy.yaml": POLICY})
    environ = {**machine.environ, "XDG_STATE_HOME": str(work / "state"), "XDG_CACHE_HOME": str(work / "cache")}
    called: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
        (str(repo), ("worker", "--once", "--policy", "policy.yaml", "--unconfined"), {}),
        (str(repo), ("merge", "add"), {}),
    ]
    results = await attack(work, {"path": sys.path, "verbs": called, "environ": environ})
    assert ["exit code 0" in said for said in results] == [True, True], results
    assert "left + right" in (repo / "calc.py").read_text()
