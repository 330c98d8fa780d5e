"""Estimates are medians of recorded tasks, with their quartiles and the size of the sample."""

import pytest

from agent_workbench.core.task_estimates import Complexity, Intent, Spread, TaskFigures, complexity, estimate

CODE = tuple(TaskFigures(steps, steps * 100, steps / 2, steps / 10, Intent.CODE) for steps in (4, 9, 6))
OLD = TaskFigures(100, 100, 100.0, 100.0)


def test_nothing_recorded_gives_no_estimate() -> None:
    assert estimate(Intent.CODE, ()) is None


def test_after_three_tasks_the_estimate_is_their_median() -> None:
    found = estimate(Intent.CODE, (*CODE, OLD))
    assert found is not None
    assert (found.steps, found.samples, found.intent) == (Spread(6, 5, 7.5), 3, Intent.CODE)
    assert [each.median for each in (found.tokens, found.minutes, found.dollars)] == [600, 3.0, 0.6]


@pytest.mark.parametrize("intent", [Intent.INFRA, None])
def test_with_few_of_a_kind_all_kinds_count(intent: Intent | None) -> None:
    found = estimate(intent, (*CODE, OLD))
    assert found is not None
    assert (found.steps.median, found.samples, found.intent) == (7.5, 4, None)


def test_one_task_is_its_own_quartiles() -> None:
    found = estimate(Intent.CODE, (OLD,))
    assert found is not None
    assert (found.steps, found.samples) == (Spread(100, 100, 100), 1)


@pytest.mark.parametrize(
    ("intent", "tasks", "expected"),
    [
        (Intent.INFRA, 1, Complexity.SIMPLE),
        (Intent.INFRA, 2, Complexity.SIMPLE),
        (Intent.INFRA, 3, Complexity.MEDIUM),
        (None, 2, Complexity.SIMPLE),
        (None, 9, Complexity.MEDIUM),
        (Intent.CODE, 1, Complexity.COMPLEX),
        (Intent.RESEARCH, 5, Complexity.COMPLEX),
    ],
)
def test_research_and_code_are_complex_else_the_number_of_tasks_counts(
    intent: Intent | None, tasks: int, expected: Complexity
) -> None:
    assert complexity(intent, tasks) is expected
