"""A proposed plan: whatever is chosen of it fits the existing plan, or is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus, check_plan
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask

IDS = [TaskId(f"T-{number}") for number in range(1, 7)]


@st.composite
def plans(draw: st.DrawFn) -> ProposedPlan:
    """Draw a plan whose tasks depend on earlier ones, some of them left out."""
    ids = draw(st.permutations(IDS))[: draw(st.integers(1, len(IDS)))]
    tasks = []
    for number, id in enumerate(ids):
        before = draw(st.lists(st.sampled_from(ids[:number]), unique=True)) if number else []
        tasks.append(ProposedTask(Task(id, "x", depends_on=tuple(before)), draw(st.booleans())))
    return ProposedPlan("goal", tuple(tasks), draw(st.booleans()))


EXISTING = st.lists(st.sampled_from(IDS), unique=True).map(
    lambda ids: Plan(tuple(Task(id, "mine", status=TaskStatus.DONE) for id in ids))
)


@given(plan=plans(), existing=EXISTING, data=st.data())
def test_any_choice_of_it_is_a_valid_plan(plan: ProposedPlan, existing: Plan, data: st.DataObject) -> None:
    plan = plan.numbered_after(existing)
    ids = [each.task.id for each in plan.tasks]
    left = data.draw(st.sets(st.sampled_from(ids)))
    chosen = plan.arranged(data.draw(st.permutations(ids)), left, replaces=data.draw(st.booleans()))
    chosen.check(existing)
    assert check_plan(Plan((*existing.tasks, *chosen.taken))) == ()
    assert {task.id for task in chosen.taken} == set(ids) - left


@given(plan=plans(), existing=EXISTING)
def test_numbers_that_are_free_stay(plan: ProposedPlan, existing: Plan) -> None:
    once = plan.numbered_after(existing)
    assert once.numbered_after(existing) == once
    assert [each.taken for each in once.tasks] == [each.taken for each in plan.tasks]


def test_edited_tasks_keep_the_places_of_those_left_out() -> None:
    one, two, three = (ProposedTask(Task(id, "x"), id != IDS[1]) for id in IDS[:3])
    plan = ProposedPlan("goal", (one, two, three))
    edited = plan.edited([replace(one.task, description="y"), three.task])
    assert [(each.task.description, each.taken) for each in edited.tasks] == [("y", True), ("x", False), ("x", True)]
    assert plan.edited([]).tasks == (two,)


@pytest.mark.parametrize(
    "tasks",
    [
        (Task(IDS[0], "a"), Task(IDS[0], "b")),
        (Task(IDS[0], "a", depends_on=(IDS[1],)), Task(IDS[1], "b", depends_on=(IDS[0],))),
        (Task(IDS[5], "the id of an existing task"),),
    ],
)
def test_what_a_user_breaks_is_refused(tasks: tuple[Task, ...]) -> None:
    with pytest.raises(PlanError):
        ProposedPlan("goal").edited(tasks).check(Plan((Task(IDS[5], "mine"),)))
