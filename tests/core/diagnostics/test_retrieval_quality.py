"""What past commits ask, and the figures that come of what was found."""

import pytest

from agent_workbench.core.diagnostics import FileQuestion, file_question, measure_search


@pytest.mark.parametrize(
    ("message", "answers", "strict"),
    [
        ("Count the quantities of a line", ["shop/cart.py"], True),
        ("Make cart.py count quantities", ["shop/cart.py"], False),
        ("Fix #12", ["shop/cart.py"], None),
        ("Count the quantities of a line", [], None),
        ("Move everything elsewhere", ["a.py", "b.py", "c.py", "d.py"], None),
    ],
)
def test_a_message_asks_where_it_says_something_and_touches_little(
    message: str, answers: list[str], strict: bool | None
) -> None:
    question = file_question(message, answers)
    assert (question.strict if question else None) is strict


def test_what_is_among_the_first_ten_counts_and_the_rank_of_the_first_hit() -> None:
    questions = [FileQuestion("x", ("a", "b"), strict=True), FileQuestion("y", ("c",), strict=True)]
    others = [str(number) for number in range(10)]
    measured = measure_search("m", questions, [["z", "a", *others, "b"], others], 0.5)
    assert (measured.questions, measured.recall, measured.reciprocal_rank) == (2, 0.25, 0.25)
    assert measure_search("m", [], [], 0.0).recall == 0.0
