"""A fleet: a database, a git remote, a person and machines that work, each with a state folder of its own."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from agent_workbench.core.signed import PERSON_PURPOSES, WORKER_PURPOSES, SignedPurpose
from tests.adapters.git.user import REFRESH
from tests.e2e.calc import FINISH, diff_step
from tests.e2e.machine import Machine

PROJECT = "fleet"
POLICY = """\
approvals:
  commit: auto
  rules:
    - {kind: diff, paths: ["src/easy/**"]}
    - {kind: check, commands: [python check.py]}
"""
# One command for all tasks, because a policy names the commands of tasks from a database one by one.
CHECK = """\
import pathlib, sys
made = [path for path in pathlib.Path("src").rglob("*.txt")]
sys.exit(len(made) != 1 or made[0].read_text() != made[0].stem + "\\n")
"""
FILES = {
    "check.py": CHECK,
    "src/easy/.keep": "",
    "src/hard/.keep": "",
    ".gitignore": "__pycache__/\n",
    "memory/.gitignore": "sessions/\n",
}
WORKERS: Mapping[str, tuple[str, ...]] = {
    "cpu-1": (),
    "cpu-2": ("large",),
    "gpu-1": ("gpu",),
    "gpu-2": ("gpu", "large"),
}
"""Names and tags of the machines that work."""


class Counts(NamedTuple):
    """Numbers of tasks: `edits` anywhere, `gpu` and `large` by tag, `model` with steps, `person` with a decision."""

    edits: int = 80
    gpu: int = 50
    large: int = 50
    model: int = 12
    person: int = 8


class FleetScene(Struct, frozen=True):
    """The machines with their clones of one remote, the ids of the tasks, and what the model says."""

    remote: Path
    person: Machine
    workers: Mapping[str, Machine]
    tasks: Mapping[str, tuple[str, ...]]
    scripts: Mapping[str, tuple[str, ...]]

    @property
    def all_tasks(self) -> tuple[str, ...]:
        """The ids of all tasks."""
        return tuple(task for tasks in self.tasks.values() for task in tasks)

    def path_of(self, task: str) -> str:
        """Return the file that a task makes."""
        return f"src/{'hard' if task.startswith('person') else 'easy'}/{task}.txt"

    def definition(self, task: str) -> str:
        """Return the text of a task's file."""
        sort = task.partition("-")[0]
        needs = f"needs: {{tags: [{sort}]}}\n" if sort in {"gpu", "large"} else ""
        edits = f'edits: [{{path: {self.path_of(task)}, content: "{task}\\n"}}]\n'
        made = "" if sort in {"model", "person"} else edits
        return f"id: {task}\ngoal: Write {task}\n{made}{needs}verify: [{{command: python check.py}}]\n"


def clone_of(machine: Machine) -> Path:
    """Return the clone of a machine."""
    return machine.folder / "fleet"


def fleet_scene(folder: Path, environ: Mapping[str, str], counts: Counts) -> FleetScene:
    """Make the remote, the machines with their keys, and the clones; nothing is queued yet.

    `environ` has the address of the database, and that of the model.
    """
    person = Machine(folder / "person", {**environ, **_shared(folder / "person", "laptop")}, forks=True)
    first = person.new_repo("first", FILES)
    remote = folder / "remote.git"
    person.git(first, "clone", "-q", "--bare", str(first), str(remote))
    machines = {
        name: Machine(folder / name, {**environ, **_shared(folder / name, name, tags)}, forks=True)
        for name, tags in WORKERS.items()
    }
    everyone = {"laptop": person, **machines}
    signers = "".join(
        _allowed(name, machine, PERSON_PURPOSES if machine is person else WORKER_PURPOSES)
        for name, machine in everyone.items()
    )
    for machine in everyone.values():
        machine.git(folder, "clone", "-q", str(remote), str(clone_of(machine)))
        machine.git(clone_of(machine), *REFRESH)
        (machine.folder / "signers").write_text(signers)
        (machine.folder / "policy.yml").write_text(POLICY)
    tasks = {
        sort: tuple(f"{sort}-{number:03}" for number in range(1, count + 1)) for sort, count in counts._asdict().items()
    }
    scene = FleetScene(remote, person, machines, tasks, {})
    scripts = {
        task: (diff_step({}, {scene.path_of(task): f"{task}\n"}), FINISH)
        for task in (*tasks["model"], *tasks["person"])
    }
    return FleetScene(remote, person, machines, tasks, scripts)


def _shared(folder: Path, name: str, tags: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the variables that make a machine one of the fleet."""
    return {
        "AGENT_DATABASE__URL_ENV": "AGENT_DATABASE_URL",
        "AGENT_DATABASE__SIGNING_KEY": str(folder / "key"),
        "AGENT_DATABASE__ALLOWED_SIGNERS": str(folder / "signers"),
        "AGENT_WORKER__NAME": name,
        "AGENT_WORKER__POLL_SECONDS": "1",
        # One computer stands for all of them: its load says nothing.
        "AGENT_WORKER__PAUSE_BELOW_PERCENT": "0",
        **({"AGENT_WORKER__TAGS": ",".join(tags)} if tags else {}),
    }


def _allowed(name: str, machine: Machine, purposes: tuple[SignedPurpose, ...]) -> str:
    """Make a machine's key and return the line that allows it for these purposes."""
    key = machine.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    return f'{name} namespaces="{",".join(purposes)}" {public}\n'
