import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import fields

from agent_workbench.adapters.plans.plan_parser import read_plan
from agent_workbench.adapters.plans.plan_renderer import render_flow, render_plan
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import (
    Budget,
    Constraints,
    Owner,
    PathScope,
    Plan,
    Task,
    TaskEdit,
    TaskOrigin,
    TaskStatus,
)
from agent_workbench.core.task_estimates import Intent, Needs

AWKWARD = [
    "",
    "yes",
    "null",
    "~",
    "1e3",
    "0o17",
    "12:30",
    "- x",
    "a: b",
    "a #b",
    "#",
    "'",
    '"',
    "\\",
    "{",
    "*a",
    "&a",
    "!x",
]
CLEAN = st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"), max_size=60)
TEXTS = st.one_of(
    CLEAN, st.sampled_from([*AWKWARD, " x", "x ", "a\n\nb", "a\n", "\na", " a\nb", "a\n\n", "---", "...", "a\n b"])
)
NUMBERS = st.none() | st.floats(0, 1e14)
COUNTS = st.none() | st.integers(0, 10**18 - 1)
MANY = st.lists(TEXTS, max_size=3).map(tuple)


# Such that no acceptance command is one of them.
DENIED = st.lists(st.sampled_from(["nobody runs this", 'nor * "this"', "#no: [!x]*"]), max_size=3).map(tuple)


def tasks(number: int) -> st.SearchStrategy[Task]:
    return st.builds(
        Task,
        id=st.just(TaskId(f"T-{number}")),
        description=TEXTS.filter(lambda text: bool(text.strip())),
        goal=TEXTS,
        suggested_approach=TEXTS,
        accept_tests=MANY,
        budget=st.builds(Budget, COUNTS, NUMBERS, NUMBERS),
        owner=st.sampled_from(Owner),
        status=st.sampled_from(TaskStatus),
        depends_on=st.sets(st.integers(1, number - 1), max_size=2).map(
            lambda numbers: tuple(TaskId(f"T-{each}") for each in numbers)
        )
        if number > 1
        else st.just(()),
        applicable_skills=MANY,
        scope=st.builds(PathScope, MANY, MANY),
        constraints=st.builds(Constraints, COUNTS, COUNTS, NUMBERS, DENIED),
        source=TEXTS,
        parent_issue=TEXTS,
        subtask=st.sampled_from(["", "1/4"]),
    )


PLANS = st.builds(
    Plan,
    st.integers(0, 3).flatmap(lambda count: st.tuples(*(tasks(number + 1) for number in range(count)))),
    TEXTS,
)


@given(PLANS)
def test_what_is_written_reads_back(plan: Plan) -> None:
    assert read_plan(render_plan(plan), "plan", compose_text).plan == plan


@given(tasks(1))
def test_a_task_on_one_line_reads_back(task: Task) -> None:
    line = render_flow(task)
    assert "\n" not in line
    assert read_plan(f"[{line}]", "plan", compose_text).plan.tasks == (task,)


@given(TEXTS)
@example("a\n  b\n")
def test_any_text_reads_back_in_both_parsers(text: str) -> None:
    import yaml  # the parser in Python must agree with the one in C

    rendered = render_plan(Plan((), text))
    assert (yaml.safe_load(rendered).get("goal") or "") == text


def test_a_plan_reads_well() -> None:
    task = Task(
        TaskId("T-1"),
        "Say hello: in French",
        suggested_approach="look\n\n  then leap",
        accept_tests=("pytest -q tests/test_greet.py", "true"),
        budget=Budget(minutes=30.0),
        scope=PathScope(("src/**",)),
        source="gitea:owner/repo#7",
        applicable_skills=(),
    )
    assert (
        render_plan(Plan((task, Task(TaskId("T-2"), "Next", depends_on=(TaskId("T-1"),))), "Greet"))
        == """\
version: 1
goal: Greet
tasks:
  - id: T-1
    description: "Say hello: in French"
    suggested_approach: |-
      look

        then leap
    accept_tests:
      - pytest -q tests/test_greet.py
      - "true"
    budget:
      minutes: 30.0
    status: pending
    scope:
      allowed_write_globs:
        - src/**
    source: gitea:owner/repo#7
  - id: T-2
    description: Next
    status: pending
    depends_on:
      - T-1
"""
    )


@pytest.mark.parametrize("text", ["\x1b[31m", "\ud800", "\r"])
def test_control_characters_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="contains control characters"):
        render_plan(Plan((Task(TaskId("T-1"), text),)))


def test_every_field_of_a_task_is_written() -> None:
    names = {field.name for field in fields(Task)} - {"origin"}
    full = Task(
        TaskId("T-1"),
        *("x",) * 3,
        accept_tests=("x",),
        budget=Budget(1),
        owner=Owner.HUMAN,
        depends_on=(TaskId("T-2"),),
        applicable_skills=("x",),
        scope=PathScope(("x",)),
        constraints=Constraints(1),
        source="x",
        parent_issue="x",
        subtask="1/2",
        blocked_because="x",
        edits=(TaskEdit("x", content=""),),
        queued_as="T-2-abcdef",
        plan="20261120T101500-ab2cde/P-8",
        intent=Intent.INFRA,
        service="kuma",
        needs=Needs(gpu_vram_gb=24, cores=4, models=("m",), tags=("t",)),
        origin=TaskOrigin.FORGE,
    )
    assert "forge" not in render_flow(full)
    assert all(f"{name}: " in render_flow(full) for name in names)
