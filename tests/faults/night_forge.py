"""The forge in a night: issues that become tasks, a decision in a comment, and the reports."""

import re
from collections import Counter

from agent_workbench.subjects.forge.issues import issue_task_id
from tests.e2e.machine import Machine
from tests.fakes.forge_server import REPO, TOKEN
from tests.fakes.gitea_server import GiteaServer
from tests.faults.night_scene import PROJECT, Scene

REFERENCE = re.compile(r"/approve (\S+/P-\d+@[0-9a-f]+)")
PERSON = "ada"


class ForgeSide:
    """What users do on the forge, and what must be there in the end."""

    def __init__(self, server: GiteaServer) -> None:
        self.server = server

    @property
    def environ(self) -> dict[str, str]:
        """Variables of a worker that knows the forge."""
        return {
            "AGENT_FORGE__URL": self.server.url,
            "AGENT_FORGE__REPO": REPO,
            "AGENT_FORGE__USERS": PERSON,
            "GITEA_TOKEN": TOKEN,
        }

    def queue(self, machine: Machine, scene: Scene) -> None:
        """Open and label an issue for each task of the forge, and let the workbench look."""
        for task in scene.tasks["forge"]:
            number = _issue(task)
            assert issue_task_id(number) == task
            self.server.open_issue(number, f"Write {task}", "As it says.", author="stranger")
            self.server.label(number, PERSON)
        if scene.tasks["forge"]:
            _look(machine, scene)

    def approve(self, machine: Machine, scene: Scene, task: str) -> None:
        """Approve what waits of a task in a comment."""
        _look(machine, scene)
        shown = [found[1] for text in self.server.texts(_issue(task)) if (found := REFERENCE.search(text))]
        self.server.say(_issue(task), PERSON, f"/approve {shown[-1]}")
        _look(machine, scene)

    def check(self, scene: Scene) -> None:
        """Fail unless each task of the forge was reported once, in the form that the forge publishes."""
        assert self.server.faults == []
        heads = Counter(str(pull["head"]["ref"]) for pull in self.server.pulls)
        assert heads == {f"agent/{task}": 1 for task in scene.tasks["forge"]}
        for task in scene.tasks["forge"]:
            ends = [text for text in self.server.texts(_issue(task)) if "COMPLETED" in text]
            assert len(ends) == 1, self.server.texts(_issue(task))


def _issue(task: str) -> int:
    return int(task.rpartition("-")[2])


def _look(machine: Machine, scene: Scene) -> None:
    done = machine.agent("worker", "pull", "--project", PROJECT, cwd=scene.repo)
    assert done.code == 0, done.said
