"""Git objects that a journal names, after commits, rollbacks and forks."""

from collections.abc import Sequence

from agent_workbench.core.events import (
    CheckpointTaken,
    Event,
    Recorded,
    SessionForked,
    TaskCommitted,
    TaskRolledBack,
    TaskStarted,
)
from agent_workbench.core.history.git_objects import GitObjects, git_objects
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.workspace import Checkpoint, WorkspaceFacts

T1, T2 = TaskId("T-1"), TaskId("T-2")
BASE, ONE, TWO, MADE = map(CommitId, ("a" * 40, "b" * 40, "c" * 40, "d" * 40))


def found(events: Sequence[Event]) -> GitObjects:
    return git_objects([Recorded(seq, "", event) for seq, event in enumerate(events)])


def started(task: TaskId, branch: str) -> TaskStarted:
    return TaskStarted(task, Task(task, "It"), WorkspaceFacts("/w", branch, BASE, "t"), ())


def saved(seq: int, commit: CommitId) -> CheckpointTaken:
    return CheckpointTaken(1, Checkpoint(f"refs/agent/s/{seq}", commit, "t"))


def test_the_newest_checkpoint_is_the_position_and_the_commit_the_tip() -> None:
    objects = found([started(T1, "agent/T-1"), saved(1, ONE), saved(2, TWO), TaskCommitted(T1, MADE, "agent/T-1", "m")])
    branch = objects.branches["agent/T-1"]
    assert (branch.base, branch.position, branch.tip, branch.commits) == (BASE, TWO, MADE, (MADE,))
    assert objects.checkpoints == {"refs/agent/s/1": ONE, "refs/agent/s/2": TWO}


def test_after_a_rollback_there_is_no_tip_and_a_new_start_has_the_base() -> None:
    begun: list[Event] = [started(T1, "agent/T-1"), saved(1, ONE), TaskCommitted(T1, MADE, "agent/T-1", "m")]
    rolled_back = found([*begun, TaskRolledBack(T1, BASE, "no")]).branches["agent/T-1"]
    assert (rolled_back.tip, rolled_back.position) == (None, BASE)
    again = found([*begun, TaskRolledBack(T1, BASE, "no"), started(T1, "agent/T-1")]).branches["agent/T-1"]
    assert (again.tip, again.commits) == (BASE, (MADE,))


def test_checkpoints_belong_to_the_task_that_was_started_last() -> None:
    objects = found([started(T1, "agent/T-1"), saved(1, ONE), started(T2, "agent/T-2"), saved(3, TWO)])
    assert {name: each.position for name, each in objects.branches.items()} == {"agent/T-1": ONE, "agent/T-2": TWO}


def test_a_fork_has_a_branch_of_its_own_and_not_those_of_its_parent() -> None:
    fork = SessionForked(
        "0", WorkspaceFacts("/w", "agent/T-1-abcdef", BASE, "t"), Checkpoint("refs/agent/f/2", TWO, "t")
    )
    objects = found([started(T1, "agent/T-1"), saved(1, ONE), fork])
    assert {name: (each.task, each.position) for name, each in objects.branches.items()} == {
        "agent/T-1-abcdef": (T1, TWO)
    }
    assert objects.checkpoints == {"refs/agent/s/1": ONE, "refs/agent/f/2": TWO}
