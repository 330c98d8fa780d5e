"""Small collections are ranked by rank-bm25, whatever is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.ranking.small_collection import SmallCollection

NOTES = (
    "Retry a request when the server is busy; the timeout grows each time.",
    "Invoices are rounded to cents. Retry never.",
    "The screen is drawn 60 times a second.",
)


def test_the_text_with_more_and_rarer_words_comes_first() -> None:
    found = SmallCollection(NOTES).best("retrying after a server timeout", 9)
    assert [each.number for each in found] == [0, 1]
    assert found[0].stems == ("server", "timeout", "retry")
    assert found[0].score > found[1].score > 0


def test_a_word_in_every_text_of_two_still_ranks() -> None:
    found = SmallCollection(["merge conflict today", "merge merge conflict"]).best("merge", 9)
    assert [each.number for each in found] == [1, 0]
    assert all(each.score > 0 for each in found)


def test_no_more_come_than_are_wanted_and_equals_in_their_order() -> None:
    assert [each.number for each in SmallCollection(["a word"] * 5).best("word", 3)] == [0, 1, 2]


@pytest.mark.parametrize("texts", [[], [""], ["", " \n", "the of"], ["words"]])
def test_what_has_no_such_word_is_not_found(texts: list[str]) -> None:
    assert SmallCollection(texts).best("unheard", 9) == []
    assert SmallCollection(texts).best("", 9) == []


@given(st.lists(st.text(max_size=40), max_size=8), st.text(max_size=40))
def test_whatever_is_asked_is_answered_in_order(texts: list[str], query: str) -> None:
    found = SmallCollection(texts).best(query, 5)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len({each.number for each in found}) == len(found) <= min(5, len(texts))
    assert all(each.stems for each in found)
