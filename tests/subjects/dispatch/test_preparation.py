"""What a dispatch would queue: once, in order, exactly what was approved; and how the tasks stand afterwards."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Owner, Plan, Task, TaskStatus
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.task_estimates import Intent
from agent_workbench.subjects.dispatch.preparation import Dispatch, PlanApproval, prepare
from agent_workbench.subjects.dispatch.progress import ProgressFacts, TaskState, plan_progress

T1, T2, T3, T4 = (TaskId(f"T-{number}") for number in range(1, 5))
GIVEN = PlanApproval("20261120T101500-ab2cde/P-8", "user")
CHAIN = Plan((Task(T2, "b", depends_on=(T1,)), Task(T1, "a"), Task(T3, "c", depends_on=(T1, T2))))


def prepared(plan: Plan, rows: tuple[QueuedTask, ...] = (), unmerged: tuple[TaskId, ...] = ()) -> Dispatch:
    approvals = {task.id: GIVEN for task in plan.tasks}
    return prepare(plan, approvals, {each.id: each for each in rows}, unmerged)


def queued(plan: Plan, dispatch: Dispatch, **states: QueueState) -> tuple[Plan, tuple[QueuedTask, ...]]:
    """Return the plan and the queue after a dispatch; `states` are those of tasks, such as T_1."""
    rows = []
    for each in dispatch.tasks:
        plan = plan.with_status(each.task.id, TaskStatus.QUEUED, each.name)
        state = states.get(each.task.id.replace("-", "_"), QueueState.QUEUED)
        rows.append(QueuedTask(each.name, "", state=state, depends_on=each.definition.depends_on))
    return plan, tuple(rows)


def left(dispatch: Dispatch) -> dict[str, str]:
    return {each.task: each.text for each in dispatch.left}


def test_tasks_are_queued_behind_what_they_depend_on_under_names_that_repeat() -> None:
    first = prepared(CHAIN)
    assert [each.task.id for each in first.tasks] == [T1, T2, T3]
    names = [each.name for each in first.tasks]
    assert [each.definition.depends_on for each in first.tasks] == [(), (names[0],), (names[0], names[1])]
    assert {each.definition.plan for each in first.tasks} == {GIVEN.plan}
    assert prepared(CHAIN) == first, "who dispatches at the same time queues the same names"
    assert all(name.startswith(f"{task}-") for name, task in zip(names, (T1, T2, T3), strict=True))


def test_a_second_dispatch_queues_nothing_and_one_after_a_stop_the_rest() -> None:
    plan, rows = queued(CHAIN, prepared(CHAIN))
    again = prepared(plan, rows)
    assert (again.tasks, again.queued) == ((), (T1, T2, T3))
    rest = prepared(plan, rows[:1])
    assert [each.name for each in rest.tasks] == [row.id for row in rows[1:]], "they keep the names that the plan has"


def test_a_definition_that_changed_has_another_name_and_no_approval() -> None:
    before = prepared(Plan((Task(T1, "a"),)))
    after = prepare(Plan((Task(T1, "b"),)), {}, {}, ())
    assert (before.unapproved, after.unapproved) == ((), (T1,))
    assert before.tasks[0].name != after.tasks[0].name
    assert before.digest != after.digest


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (Task(T1, "a", owner=Owner.HUMAN), "for a person"),
        (Task(T1, "a", status=TaskStatus.BLOCKED, blocked_because="later"), "blocked: later"),
        (Task(T1, "a", status=TaskStatus.IN_PROGRESS), "a session here has begun it"),
    ],
)
def test_what_cannot_be_queued_is_left_with_the_reason_and_all_behind_it(first: Task, why: str) -> None:
    found = prepared(Plan((first, Task(T2, "b", depends_on=(T1,)))))
    assert found.tasks == ()
    assert why in left(found)[T1]
    assert "waits for T-1" in left(found)[T2]


def test_a_task_begins_with_one_commit() -> None:
    plan = Plan((Task(T1, "a"), Task(T2, "b"), Task(T3, "c", depends_on=(T1, T2))))
    assert "merge them" in left(prepared(plan))[T3]
    research = replace(plan.tasks[1], intent=Intent.RESEARCH)
    assert left(prepared(Plan((plan.tasks[0], research, plan.tasks[2])))) == {}, "research has no commit"
    assert left(prepared(CHAIN)) == {}, "the commits of T-1 are in those of T-2"


def test_a_commit_that_only_this_machine_has_is_merged_first() -> None:
    plan = Plan((Task(T1, "a", status=TaskStatus.DONE), Task(T2, "b", depends_on=(T1,))))
    assert "`agent merge T-1`" in left(prepared(plan, unmerged=(T1,)))[T2]
    (found,) = prepared(plan).tasks
    assert found.definition.depends_on == ()


def test_a_task_that_failed_is_queued_again_by_its_name_alone() -> None:
    plan, rows = queued(CHAIN, prepared(CHAIN), T_1=QueueState.FAILED)
    failed = plan.with_status(T1, TaskStatus.FAILED)
    assert failed.task(T1).queued_as == rows[0].id
    known = {each.id: each for each in rows}
    assert prepare(failed, {T1: GIVEN}, known, ()).tasks == ()
    again = prepare(failed, {T1: GIVEN}, known, (), (T1,)).tasks[0]
    assert again.name == f"{rows[0].id}-2"
    with pytest.raises(PlanError):
        prepare(failed, {}, {}, (), (T4,))


def test_what_waits_for_a_task_that_failed_is_queued_again_behind_the_new_one() -> None:
    plan, rows = queued(CHAIN, prepared(CHAIN), T_1=QueueState.FAILED)
    failed = plan.with_status(T1, TaskStatus.FAILED)
    known = {each.id: each for each in rows}
    approvals = {task.id: GIVEN for task in plan.tasks}
    found = prepare(failed, approvals, known, (), (T1,))
    assert [each.name for each in found.tasks] == [f"{row.id}-2" for row in rows]
    assert [each.replaces for each in found.tasks] == [(), (rows[1].id,), (rows[2].id,)]
    assert found.tasks[1].definition.depends_on == (found.tasks[0].name,)
    # Once more, after a stop: the plan has the new names, and the queue not yet the tasks behind the first.
    again, made = queued(failed, found)
    rest = prepare(again, approvals, known | {made[0].id: made[0]}, ())
    assert [each.name for each in rest.tasks] == [row.id for row in made[1:]]
    begun = {each.id: replace(each, state=QueueState.CLAIMED) for each in rows[1:]}
    assert [each.task.id for each in prepare(failed, approvals, known | begun, (), (T1,)).tasks] == [T1]


def test_an_end_that_does_not_count_is_shown_and_queued_again_by_name_alone() -> None:
    plan, rows = queued(CHAIN, prepared(CHAIN), T_1=QueueState.DONE)
    forged = replace(rows[0], problem="it is not signed")
    known = {each.id: each for each in (forged, *rows[1:])}
    assert "it is not signed" in left(prepared(plan, (forged, *rows[1:])))[T1]
    assert states(plan, (forged, *rows[1:])) == [(T1, "not proved", 0), (T2, "waiting", 1), (T3, "waiting", 2)]
    again = prepare(plan, {task.id: GIVEN for task in plan.tasks}, known, (), (T1,))
    assert [each.name for each in again.tasks] == [f"{row.id}-2" for row in rows]
    proved = plan.with_status(T1, TaskStatus.DONE)
    assert states(proved, (forged, *rows[1:]))[0] == (T1, "done", 0), "the plan has what was proved once"


def states(plan: Plan, rows: tuple[QueuedTask, ...], paused: str = "") -> list[tuple[str, str, int]]:
    facts = ProgressFacts({each.id: each for each in rows}, {}, {}, {}, paused)
    return [(each.task.id, each.state, each.depth) for each in plan_progress(plan, facts)]


def test_a_queue_that_does_not_answer_is_not_an_empty_one() -> None:
    plan, _ = queued(CHAIN, prepared(CHAIN))
    silent = ProgressFacts({}, {}, {}, {}, answered=False)
    assert {each.state for each in plan_progress(plan, silent)} == {TaskState.QUEUED}
    assert {each.why for each in plan_progress(plan, replace(silent, answered=True))} == {
        "the queue does not have it; dispatch again"
    }


def test_progress_is_a_tree_of_states() -> None:
    plan, rows = queued(CHAIN, prepared(CHAIN))
    assert states(CHAIN, ()) == [(T1, "planned", 0), (T2, "planned", 1), (T3, "planned", 2)]
    assert states(plan, rows) == [(T1, "queued", 0), (T2, "waiting", 1), (T3, "waiting", 2)]
    assert states(plan, rows, "no room")[0] == (T1, TaskState.NO_CAPACITY, 0)
    for state, shown, behind in (
        (QueueState.DONE, "done", "queued"),
        (QueueState.CLAIMED, "running", "waiting"),
        (QueueState.PARKED, "parked", "waiting"),
        (QueueState.FAILED, "failed", "waiting"),
        (QueueState.WITHDRAWN, "cancelled", "waiting"),
    ):
        now = (replace(rows[0], state=state), *rows[1:])
        assert states(plan, now)[:2] == [(T1, shown, 0), (T2, behind, 1)]
