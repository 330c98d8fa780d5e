"""The plan as an editor gets it: no state of a task is told as another one."""

import pytest

from agent_workbench.acp.event_updates import plan_update
from agent_workbench.core.events import Author, Event, PlanRead
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

T9 = TaskId("T-9")


@pytest.mark.parametrize(
    ("status", "taken", "wire", "word"),
    [
        (TaskStatus.PENDING, False, "pending", ""),
        (TaskStatus.IN_PROGRESS, False, "pending", "(stopped)"),
        (TaskStatus.IN_PROGRESS, True, "in_progress", ""),
        (TaskStatus.BLOCKED, False, "pending", "(blocked)"),
        (TaskStatus.QUEUED, False, "pending", "(queued)"),
        (TaskStatus.FAILED, False, "pending", "(failed)"),
        (TaskStatus.DONE, False, "completed", ""),
    ],
)
def test_only_a_done_task_is_completed(status: TaskStatus, taken: bool, wire: str, word: str) -> None:
    read = PlanRead("PLAN.yaml", Plan((Task(T9, "sum up", status=status),)), Author.USER)
    state = ScriptedSession(*runs.opening(), read).newest.state
    (entry,) = plan_update(state, (T9,) if taken else ()).entries
    assert (entry.status, entry.content) == (wire, " ".join(filter(None, ("T-9", word, "sum up"))))


@pytest.mark.parametrize("events", [(*runs.opening(), *runs.started()), runs.up_to_first_diff()])
def test_the_task_of_the_session_is_in_progress_while_it_works_and_waits(events: tuple[Event, ...]) -> None:
    state = ScriptedSession(*events).newest.state
    (entry,) = [each for each in plan_update(state, ()).entries if each.content.startswith("T-1 ")]
    assert entry.status == "in_progress"
