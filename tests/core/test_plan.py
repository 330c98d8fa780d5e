import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Owner, Plan, Task, TaskStatus, check_plan, next_id


def task(number: int, *needs: int, status: TaskStatus = TaskStatus.PENDING, owner: Owner = Owner.AGENT) -> Task:
    depends_on = tuple(TaskId(f"T-{each}") for each in needs)
    return Task(TaskId(f"T-{number}"), f"task {number}", depends_on=depends_on, status=status, owner=owner)


def test_a_task_is_found_by_its_id() -> None:
    plan = Plan((task(1), task(2)))
    assert plan.task(TaskId("T-2")) == task(2)
    with pytest.raises(PlanError, match="no task 'T-3'") as refused:
        plan.task(TaskId("T-3"))
    assert refused.value.advice == "tasks of the plan: T-1, T-2"
    with pytest.raises(PlanError) as refused:
        Plan().task(TaskId("T-3"))
    assert refused.value.advice == "tasks of the plan: none"


def test_a_status_changes_for_one_task() -> None:
    plan = Plan((task(1), task(2))).with_status(TaskId("T-2"), TaskStatus.DONE)
    assert [each.status for each in plan.tasks] == ["pending", "done"]
    assert plan.with_status(TaskId("T-9"), TaskStatus.DONE) == plan


DONE, FAILED, BLOCKED, RUNNING = TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.IN_PROGRESS


@pytest.mark.parametrize(
    ("tasks", "wanted"),
    [
        ((), None),
        ((task(1), task(2)), "T-1"),
        ((task(1, status=DONE), task(2)), "T-2"),
        ((task(1, status=DONE), task(2, 1)), "T-2"),
        ((task(1, 2), task(2)), "T-2"),
        ((task(1, status=FAILED), task(2, 1)), None),
        ((task(1, status=BLOCKED), task(2)), "T-2"),
        ((task(1, status=RUNNING), task(2)), "T-1"),
        ((task(1, owner=Owner.HUMAN), task(2, 1)), None),
        ((task(1, owner=Owner.HUMAN, status=DONE), task(2, 1)), "T-2"),
        ((task(1, 7),), None),
    ],
)
def test_which_task_is_next(tasks: tuple[Task, ...], wanted: str | None) -> None:
    found = Plan(tasks).next_task()
    assert (found.id if found else None) == wanted


def test_what_a_task_waits_for() -> None:
    plan = Plan((task(1, status=DONE), task(2), task(3, 1, 2)))
    assert plan.waits_for(plan.tasks[2]) == ("T-2",)


@pytest.mark.parametrize(
    ("tasks", "problems"),
    [
        ((task(1), task(2, 1)), ()),
        ((task(1), task(1)), ("task id T-1 is used 2 times",)),
        ((task(1, 2),), ("task T-1 depends on T-2, which is not in the plan",)),
        ((task(1, 1),), ("these tasks depend on each other in a cycle: T-1",)),
        ((task(1, 2), task(2, 1), task(3)), ("these tasks depend on each other in a cycle: T-1, T-2",)),
    ],
)
def test_what_is_wrong_with_a_plan(tasks: tuple[Task, ...], problems: tuple[str, ...]) -> None:
    assert check_plan(Plan(tasks)) == problems


@given(st.lists(st.lists(st.integers(1, 8), max_size=3), max_size=8))
def test_a_plan_without_problems_can_be_done_to_its_end(needs: list[list[int]]) -> None:
    plan = Plan(tuple(task(number, *each) for number, each in enumerate(needs, 1)))
    done = []
    while (ready := plan.next_task()) is not None:
        assert not plan.waits_for(ready)
        plan = plan.with_status(ready.id, DONE)
        done.append(ready.id)
    assert (len(done) == len(needs)) == (not check_plan(plan))


def test_the_next_id_is_one_nobody_has() -> None:
    assert next_id(()) == "T-1"
    odd = replace(task(1), id=TaskId("T-x"))
    assert next_id((task(3), task(1), odd, replace(odd, id=TaskId("fix-9")))) == "T-4"


@given(st.lists(st.integers(0, 50)))
def test_ids_are_never_given_twice(numbers: list[int]) -> None:
    tasks = tuple(task(number) for number in numbers)
    assert next_id(tasks) not in {each.id for each in tasks}
