"""A night's work: a repository, its queue of thirty tasks or fewer, and where each of them has to end."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from tests.e2e.calc import FINISH, diff_step
from tests.e2e.machine import Machine, write_files

PROJECT = "night"
QUEUE = f"tasks/queue/{PROJECT}"
POLICY = """\
approvals:
  check: auto
  commit: auto
  rules:
    - {kind: diff, paths: ["src/easy/**"]}
"""
# It counts itself where nothing of a task is committed, and fails if its file is not there, or there twice.
CHECK = """\
import pathlib, sys, time
name = sys.argv[1]
if name.startswith("slow"):
    time.sleep(600)
found = [path.read_text() for path in pathlib.Path("src").rglob(name + ".txt")]
sys.exit(found != [name + "\\n"])
"""
FILES = {
    "check.py": CHECK,
    "src/easy/.keep": "",
    "src/hard/.keep": "",
    ".gitignore": "__pycache__/\n/policy.yml\n",
    "memory/.gitignore": "sessions/\n",
}


class Counts(NamedTuple):
    """Number of tasks of each sort."""

    edits: int = 10
    model: int = 10
    person: int = 3
    forge: int = 2
    broken: int = 3
    slow: int = 2


class Scene(Struct, frozen=True):
    """The repository; the ids of tasks by their sort; what the model says."""

    repo: Path
    tasks: Mapping[str, tuple[str, ...]]
    scripts: Mapping[str, tuple[str, ...]]

    @property
    def done_alone(self) -> tuple[str, ...]:
        """Tasks that need nobody."""
        return (*self.tasks["edits"], *self.tasks["model"])

    @property
    def failing(self) -> tuple[str, ...]:
        """Tasks that end in `failed/`."""
        return (*self.tasks["broken"], *self.tasks["slow"])

    @property
    def person(self) -> tuple[str, ...]:
        """Tasks whose diff is outside of what the policy approves; those of the forge are the last ones."""
        return (*self.tasks["person"], *self.tasks["forge"])

    def path_of(self, task: str) -> str:
        """Return the file that a task makes."""
        return f"src/{'hard' if task in self.person else 'easy'}/{task}.txt"


def night_scene(machine: Machine, counts: Counts) -> Scene:
    """Make the repository and its policy; nothing is queued yet."""
    repo = machine.new_repo("night", FILES)
    (repo / "policy.yml").write_text(POLICY)
    (repo / QUEUE).mkdir(parents=True)
    tasks = {
        sort: tuple(f"{sort}-{number:02}" for number in range(1, count + 1)) for sort, count in counts._asdict().items()
    }
    tasks["forge"] = tuple(f"task-{number}" for number in range(1, counts.forge + 1))
    scene = Scene(repo, tasks, {})
    scripts = {
        task: (diff_step({}, {scene.path_of(task): f"{task}\n"}), FINISH)
        for task in (*tasks["model"], *tasks["person"], *tasks["forge"])
    }
    return Scene(repo, tasks, scripts)


def queue_all(scene: Scene) -> None:
    """Put the tasks into the queue's folder, except for those of the forge."""
    local = [task for sort, tasks in scene.tasks.items() if sort != "forge" for task in tasks]
    write_files(scene.repo / QUEUE, {f"{task}.yaml": definition(scene, task) for task in local})


def definition(scene: Scene, task: str) -> str:
    """Return the text of a task's file."""
    check = f'verify: [{{command: "python check.py {task}"}}]\n'
    edits = f'edits: [{{path: {scene.path_of(task)}, content: "{task}\\n"}}]\n'
    match task.partition("-")[0]:
        case "edits":
            return f"goal: Write {task}\n{edits}{check}"
        case "broken":
            # A key that there is none of, YAML that is none, and an edit of a file that is not there.
            wrong = (
                "goel: Write it\n",
                "goal: [Write\n",
                "goal: Edit\nedits: [{path: src/no.txt, find: a, replace: b}]\n",
            )
            return wrong[int(task[-2:]) % len(wrong)]
        case "slow":
            return f"goal: Write {task}\n{edits}{check}constraints: {{timeout_seconds: 1}}\n"
        case _:
            return f"goal: Write {task}\n{check}"
