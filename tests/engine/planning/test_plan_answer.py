"""The planner's answer is read strictly; whatever a model says, nothing but a valid list of tasks comes of it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, check_plan
from agent_workbench.core.task_estimates import Intent, Needs
from agent_workbench.engine.planning.plan_answer import GRAMMAR, MAX_TASKS, plan_grammar, read_tasks
from tests.adapters.llama_cpp.grammar_oracle import fits, grammar_oracle

ONE = (
    "Task: Add it\nIntent: code\nService: shop\nGoal: it is there\nApproach: in a.py\nAccept: pytest -q\n"
    "Needs: gpu 24, cores 8, model coder, tag lab\nAfter: \n"
)
TWO = ONE + (
    "Task: Look at it\nIntent: research\nService: \nGoal: one can read it\nApproach: \nAccept: \nNeeds: \nAfter: 1\n"
)
FIRST_FORM = "Task: Add it\nGoal: it is there\nApproach: in a.py\nAccept: pytest -q\nAfter: \n"
NEEDS = Needs(24.0, 8, ("coder",), ("lab",))
EXISTING = Plan((Task(TaskId("T-4"), "old"),))


def test_tasks_are_read_in_order_and_numbered_on() -> None:
    first = Task(TaskId("T-5"), "Add it", "it is there", "in a.py", accept_tests=("pytest -q",))
    second = Task(TaskId("T-6"), "Look at it", "one can read it", depends_on=(TaskId("T-5"),))
    assert read_tasks(TWO, EXISTING) == (
        replace(first, intent=Intent.CODE, service="shop", needs=NEEDS),
        replace(second, intent=Intent.RESEARCH),
    )


def test_an_answer_to_the_first_texts_has_no_intent() -> None:
    (task,) = read_tasks(FIRST_FORM, EXISTING, wording=1)
    assert (task.intent, task.service, task.needs) == (None, "", Needs())


@pytest.mark.parametrize("said", ["Intent: deploy\n", "Intent:\n", ""])
def test_what_has_no_known_intent_is_research(said: str) -> None:
    (task,) = read_tasks(f"Task: a\n{said}Goal: b\n", EXISTING)
    assert task.changes_nothing


@pytest.mark.parametrize(
    ("said", "needs"),
    [
        ("GPU 24 GB", Needs(24.0)),
        ("cores 8", Needs(cores=8)),
        ("model qwen2.5-coder:32b, model b, model b", Needs(models=("qwen2.5-coder:32b", "b"))),
        ("none", Needs()),
        ("gpu 0", Needs()),
    ],
)
def test_needs_are_read(said: str, needs: Needs) -> None:
    (task,) = read_tasks(f"Task: a\nNeeds: {said}\n", EXISTING)
    assert task.needs == needs


def test_room_around_lines_does_not_matter_and_only_the_task_is_needed() -> None:
    assert read_tasks("\n  Task:Add it\n\nGoal :  it is there\r\nAccept: a: b\n\nTask: b\nAccept: None\n", Plan()) == (
        Task(TaskId("T-1"), "Add it", "it is there", accept_tests=("a: b",), intent=Intent.RESEARCH),
        Task(TaskId("T-2"), "b", intent=Intent.RESEARCH),
    )


@pytest.mark.parametrize("said", ["1, 2", "1,2", "tasks 1 and 2", "2, 1", "1, 1, 2"])
def test_dependencies_are_numbers_of_tasks_above(said: str) -> None:
    last = read_tasks(f"Task: a\nTask: b\nTask: c\nAfter: {said}\n", EXISTING)[-1]
    assert set(last.depends_on) == {"T-5", "T-6"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no task"),
        ("\n \n", "no task"),
        ("Sure! Here is a plan.", "none of the labels"),
        ("Goal: b\nTask: a\n", "begins with 'Goal'"),
        (ONE * (MAX_TASKS + 1), "it has 9 tasks"),
        ("Task: a\n" * 500, "it has 500 tasks"),
        ("Task: a\nAccept: c\nGoal: b\n", "in the wrong place"),
        ("Task: a\nGoal: b\nGoal: c\n", "twice"),
        ("1. a\n2. b\n3. c\n", "'1. a'"),
        ("task: a\nGoal: b\n", "'task: a'"),
        ("Task:\nGoal: b\nAccept: c\n", "no words"),
        ("Task: a\nAfter: 1\n", "task 1 comes after task 1"),
        ("Task: a\nAfter: 2\nTask: b\nAfter: 1\n", "task 1 comes after task 2"),
        ("Task: a\nAfter: 0\n", "comes after task 0"),
        ("Task: a\nTask: b\nAfter: T-1\n", "not a list of task numbers"),
        ("Task: a\nNeeds: a fast machine\n", "Needs: a fast machine"),
        ("Task: a\nNeeds: cores many\n", "Needs: cores many"),
        ("Task: a\nIntent: code\nIntent: infra\n", "twice"),
        ("Task: a\x1b]52;c;aGk=\x07\n", "control characters"),
        ("Task: a\x85b\n", "control characters"),
        ("Task: " + "a" * 700, "has 700 characters"),
    ],
)
def test_what_keeps_to_no_form_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PlanError) as refused:
        read_tasks(text, EXISTING)
    assert reason in str(refused.value)


LABELLED = st.lists(
    st.tuples(
        st.sampled_from(["Task", "Intent", "Goal", "Approach", "Accept", "Needs", "After", "Sure"]),
        st.text(max_size=12),
    ),
    max_size=40,
).map(lambda lines: "\n".join(f"{label}: {said}" for label, said in lines))


@given(text=LABELLED | st.text(max_size=200))
def test_any_answer_is_refused_or_gives_a_valid_plan(text: str) -> None:
    try:
        tasks = read_tasks(text, EXISTING)
    except PlanError:
        return
    assert 1 <= len(tasks) <= MAX_TASKS
    assert check_plan(Plan((*EXISTING.tasks, *tasks))) == ()


async def test_the_servers_grammar_is_the_readers_form(tmp_path: Path) -> None:
    wrong = [ONE[:-1], ONE.replace("Add it", ""), ONE + "more", "Task: a\nGoal: b\n", FIRST_FORM]
    wrong += [ONE.replace("code", "deploy"), ONE.replace("cores 8", "cores many")]
    async with grammar_oracle(tmp_path, [ONE, TWO, FIRST_FORM, *wrong]) as server:
        assert await fits(server, plan_grammar(1), FIRST_FORM)
        assert [await fits(server, GRAMMAR, text) for text in (ONE, TWO)] == [True, True]
        assert [await fits(server, GRAMMAR, text) for text in wrong] == [False] * len(wrong)
