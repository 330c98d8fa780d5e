"""Repositories for the figures of the screen: one that streams, one whose tests flood, one with a long session."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.events import Recorded, TaskFinished
from bench.first_paint import WORKBENCH, prepare
from bench.long_session import long_session
from bench.replay import write_journal
from bench.typed import Typed

TOKENS_PER_SECOND = 200
STREAMS, FLOODS = "true", "seq 1 1000000000"
EVENTS_PER_STEP = 9
SESSION = "20261120T101500-ab2cde"
LEFT_TO_DO = 40


class Scene(Struct, frozen=True):
    """A repository that is set up and trusted, and the environment to start the workbench in."""

    repo: Path
    environment: Mapping[str, str]

    def open(self, *arguments: str) -> Typed:
        """Start `agent tui`; its panes stand when this returns."""
        program = Typed((*WORKBENCH, *arguments), str(self.repo), self.environment)
        program.until("1 Plan")
        return program


def make_scene(folder: Path, address: str, tests: str, *, done: int = 0) -> Scene:
    """Make a repository with a plan of which `done` tasks are done, and each task's acceptance command is `tests`."""
    folder.mkdir()
    environment = prepare(folder)
    state = folder / "state" / "agent-workbench"
    state.mkdir(parents=True, exist_ok=True)
    (state / "welcomed").touch()
    asked = {
        "AGENT_MODEL__URL": address,
        "AGENT_MODEL__ANSWER_TOKENS": "100000",
        "AGENT_APPROVALS__CHECK": "auto",
        "AGENT_LIMITS__COMMAND_SECONDS": "600",
        "AGENT_UI__REVIEW_CONTEXT": "false",
    }
    repo = folder / "repo"
    plan = repo / "memory/plans/PLAN.yaml"
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(_plan(tests, done))
    return Scene(repo, {**environment, **asked})


def _plan(tests: str, done: int) -> str:
    head = "version: 1\ngoal: A shop that adds up\ntasks:\n"
    return head + "".join(
        f"  - id: T-{number}\n    description: Mend part {number}\n    accept_tests: ['{tests}']\n"
        f"    scope: {{allowed_write_globs: ['**']}}\n    status: {'done' if number <= done else 'pending'}\n"
        for number in range(1, done + LEFT_TO_DO + 1)
    )


def _long_story(steps: int) -> tuple[Recorded, ...]:
    """Return the events of about so many steps, in tasks of about a hundred that are all done."""
    story = long_session(steps * EVENTS_PER_STEP, tasks=task_count(steps))
    last = max(place for place, each in enumerate(story) if isinstance(each.event, TaskFinished))
    return story[: last + 1]


def task_count(steps: int) -> int:
    """Return how many tasks a long story of so many steps has."""
    return max(1, steps // 100)


def add_session(folder: Path, scene: Scene, steps: int) -> None:
    """Put a session of about so many steps into the scene in `folder`, as one that was begun there."""
    journal = scene.repo / "memory/sessions" / SESSION
    journal.mkdir(parents=True)
    write_journal(journal, _long_story(steps))
    ours = folder / "state" / "agent-workbench" / "sessions"
    ours.mkdir(exist_ok=True)
    (ours / SESSION).write_text(str(journal.resolve()))


@contextlib.contextmanager
def streaming_server(*options: str) -> Iterator[str]:
    """Run the server that writes at an even pace; give its address."""
    command = (sys.executable, "-m", "bench.token_stream", "--rate", str(TOKENS_PER_SECOND), *options)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
