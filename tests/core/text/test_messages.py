"""Short titles, made of the words in which a task was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.text.amounts import TITLE_CHARS, short_title

WORDS = "Make total() respect the quantity of each line"


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (WORDS, WORDS),
        (f"{WORDS}, because orders of two are billed as one", WORDS),
        (f"{WORDS}. Then round the prices.", WORDS),
        (f"{WORDS} (see the issue)", WORDS),
        (f"{WORDS}\n\nOrders of two are billed as one.", WORDS),
        ("Please, make the total respect the quantities. All.", "Please, make the total respect the quantities"),
        (
            "Give every line of the cart a discount in percent that is shown",
            "Give every line of the cart a discount in…",
        ),
        ("x" * 200, "x" * 49 + "…"),
        ("", ""),
    ],
)
def test_a_title_is_the_first_clause(words: str, title: str) -> None:
    assert short_title(words) == title


@given(st.text(max_size=200))
def test_a_title_is_one_short_line(words: str) -> None:
    title = short_title(words)
    assert len(title) <= TITLE_CHARS
    assert len(title.splitlines()) <= 1
    assert short_title(title) == title
