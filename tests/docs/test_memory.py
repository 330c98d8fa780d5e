"""The project's own plan and its recorded sample session are what the product reads, and replay of it runs nothing."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.plans.plan_file import PlanFile
from agent_workbench.api.sessions.session_opening import replayed_session
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import session_id
from agent_workbench.core.intents import Intent, Leave, SeekReplay, StepReplay
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.plan import TaskStatus, check_plan
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.state.session_state import SessionState
from tests.architecture.source_tree import ROOT

# What Python tells of before it starts a program, connects, or opens a file.
ACTS = ("subprocess.", "os.posix_spawn", "os.fork", "os.exec", "os.system", "socket.", "open", "os.remove", "os.rename")


def sample() -> Path:
    sessions = ROOT / "memory" / "sessions"
    (kept,) = [line for line in (ROOT / "memory/.gitignore").read_text().splitlines() if line.startswith("!")]
    return sessions / session_id(kept.removeprefix("!/sessions/").rstrip("/"))


async def test_the_plan_reads_and_holds() -> None:
    plan = await PlanFile(ROOT, "memory/plans/PLAN.yaml", compose_text).read()
    assert check_plan(plan) == ()
    assert {task.status for task in plan.tasks} == {TaskStatus.DONE, TaskStatus.PENDING}
    assert all(task.accept_tests for task in plan.tasks if task.status is TaskStatus.DONE)


def test_the_sample_session_proves_itself_and_tells_the_whole_demo() -> None:
    report = verify_journal(sample())
    assert report.problems == ()
    state = fold_all(read_journal(sample()).events)
    runs = (*state.past, *filter(None, [state.run]))
    assert [(run.task, run.status, run.reflexions) for run in runs] == [
        ("T-1", TaskStatus.DONE, 1),
        ("T-2", TaskStatus.DONE, 0),
    ]
    assert all(run.commit for run in runs)


@pytest.fixture
def events() -> tuple[Recorded, ...]:
    return read_journal(sample()).events


async def test_a_replay_is_the_same_each_time_and_runs_nothing(events: tuple[Recorded, ...]) -> None:
    last = len(events) - 1
    there = [StepReplay(1)] * last
    and_back = [StepReplay(-1)] * last
    expected = [fold_all(events[: number + 1]) for number in range(len(events))]
    await replayed(events, [])  # the first replay imports its modules
    with watched() as acts:
        first = await replayed(events, [*there, *and_back])
        second = await replayed(events, [SeekReplay(1.0), *and_back, *there])
    assert first == expected[1:] + expected[-2::-1]
    assert second == expected[-1:] + expected[-2::-1] + expected[1:]
    assert acts == []


async def replayed(events: tuple[Recorded, ...], intents: list[StepReplay | SeekReplay]) -> list[SessionState]:
    """Return the state that is shown after each intent."""
    session = await replayed_session(events)
    updates = session.live()
    await anext(updates)
    found = []
    for intent in intents:
        found.append((await shown_after(session, updates, intent)).state)
    await session.submit(Leave())
    return found


async def shown_after(session: SessionHandle, updates: AsyncIterator[SessionUpdate], intent: Intent) -> SessionUpdate:
    await session.submit(intent)
    return await anext(updates)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what Python does to the world meanwhile; a hook can never be taken away, so it is only switched off."""
    acts: list[str] = []
    on = True

    def hook(name: str, arguments: object) -> None:
        if on and name.startswith(ACTS):
            acts.append(f"{name} {arguments}")

    sys.addaudithook(hook)
    try:
        yield acts
    finally:
        on = False


def test_what_is_done_would_be_seen(tmp_path: Path) -> None:
    with watched() as acts:
        (tmp_path / "file").write_text("x")
    assert [each.split()[0] for each in acts] == ["open"]
